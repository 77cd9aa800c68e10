//! The arguments of the static program, which has no library for them: `--name value` or `--name=value`.

use std::ffi::OsString;
use std::time::Duration;

use super::{Wish, bytes};

pub(super) const USAGE: &str = "\
usage: gpu-preflight-healthcheck [--open] [--cuda] [--min-free-memory AMOUNT] [--timeout DURATION] [--ignore ID[,ID]]
         [--format text|json] [--config FILE] [--host-root DIR] [--driver-root DIR] [--verbose]
Says whether the GPUs of the container that it runs in can be used now, and exits 0 if so, or 1.
This program is static and asks everything but NVML and libcuda; `gpu-preflight healthcheck` asks
these as well.";

/// What the arguments say.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed {
    Wish(Wish),
    /// Only to be printed.
    Text(String),
}

/// Reads the arguments behind the program's name.
pub(super) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Parsed, String> {
    let mut wish = Wish::default();
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        let text = arg.to_str().ok_or_else(|| format!("{:?} is no argument of it", arg.display().to_string()))?;
        let (name, attached) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        match (name, attached.is_some()) {
            ("--open", false) => wish.open = true,
            ("--verbose" | "-v", false) => wish.verbose = true,
            // It says that it could not: whoever is killed for that would be killed for nothing.
            ("--cuda", false) => wish.cuda = true,
            ("--help" | "-h", false) => return Ok(Parsed::Text(USAGE.to_owned())),
            ("--version" | "-V", false) => {
                return Ok(Parsed::Text(concat!("gpu-preflight-healthcheck ", env!("CARGO_PKG_VERSION")).to_owned()));
            }
            (
                "--min-free-memory" | "--timeout" | "--ignore" | "--format" | "--config" | "--host-root"
                | "--driver-root",
                _,
            ) => {
                let value = attached.or_else(|| args.next()?.into_string().ok());
                let value = value.ok_or_else(|| format!("{name} has no value"))?;
                take(&mut wish, name, &value)?;
            }
            _ => return Err(format!("{text:?} is no argument of it")),
        }
    }
    Ok(Parsed::Wish(wish))
}

fn take(wish: &mut Wish, name: &str, value: &str) -> Result<(), String> {
    let odd = || format!("{name} {value:?} is not understood");
    match name {
        "--min-free-memory" => wish.min_free_memory = Some(bytes(value).ok_or_else(odd)?),
        "--timeout" => wish.timeout = duration(value).ok_or_else(odd)?,
        "--ignore" => wish.ignore.extend(value.split(',').map(|id| id.trim().to_owned())),
        "--format" if value == "json" => wish.json = true,
        "--format" if value == "text" => wish.json = false,
        "--format" => return Err(odd()),
        "--config" => wish.config = Some(value.into()),
        "--host-root" => wish.host_root = Some(value.into()),
        _ => wish.driver_root = Some(value.to_owned()),
    }
    Ok(())
}

/// A second or so at least: a deadline that nothing can keep makes every answer an empty one.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    const SHORTEST: Duration = Duration::from_millis(200);
    const LONGEST: Duration = Duration::from_secs(600);
    humantime::parse_duration(text).ok().filter(|duration| (SHORTEST..=LONGEST).contains(duration))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(args: &[&str]) -> Result<Parsed, String> {
        parse(args.iter().map(OsString::from))
    }

    #[test]
    fn values_may_be_attached_or_follow() {
        let args =
            ["--open", "--min-free-memory=2GiB", "--timeout", "3s", "--ignore=a,b", "--ignore", "c", "--format=json"];
        let expected = Wish {
            open: true,
            min_free_memory: Some(2 << 30),
            timeout: Duration::from_secs(3),
            ignore: ["a", "b", "c"].map(str::to_owned).into(),
            json: true,
            ..Wish::default()
        };
        assert_eq!(of(&args), Ok(Parsed::Wish(expected)));
        assert_eq!(of(&[]), Ok(Parsed::Wish(Wish::default())));
        let Ok(Parsed::Wish(wish)) = of(&["--host-root", "/h", "--driver-root=/d", "--config", "/c"]) else { panic!() };
        assert_eq!(
            (wish.host_root, wish.driver_root.as_deref(), wish.config),
            (Some("/h".into()), Some("/d"), Some("/c".into()))
        );
    }

    #[test]
    fn what_it_does_not_understand_is_said() {
        for args in [
            &["--opne"][..],
            &["--open=yes"],
            &["--timeout"],
            &["--timeout", "soon"],
            &["--timeout=0s"],
            &["--min-free-memory", "much"],
            &["--format", "sarif"],
            &["--cuda=yes"],
            &["now"],
        ] {
            assert!(of(args).is_err(), "{args:?}");
        }
        assert!(matches!(of(&["--help"]), Ok(Parsed::Text(text)) if text.starts_with("usage")));
    }
}
