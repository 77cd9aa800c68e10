//! What the kernel's log files say of the GPU.

use std::collections::BTreeSet;
use std::io::{Read as _, Seek as _, SeekFrom};

use super::look::fact;
use crate::collect::tree::Tree;
use crate::model::observed::NO_LOG_FILE;
use crate::model::{Observed, Unseen};

/// Oldest content first: `dmesg` is of the last boot.
const FILES: [&str; 4] = ["/var/log/dmesg", "/var/log/messages", "/var/log/syslog", "/var/log/kern.log"];
/// Only the end of each file is looked at.
const TAIL: u64 = 256 << 10;
const LINES: usize = 200;
const LINE: usize = 400;

/// Lines that speak of the driver, newest last, at most 200. The journal is not a text and not read, so
/// a machine without any of these files is unknown.
pub fn kernel_log(tree: &Tree) -> Observed<Vec<String>> {
    fact("host.kernel_log", read(tree))
}

fn read(tree: &Tree) -> Result<Vec<String>, Unseen> {
    let mut texts = Vec::new();
    let mut refused = None;
    for path in FILES {
        match tail(tree, path) {
            Ok(text) => texts.extend(text),
            Err(unseen) => refused = Some(unseen),
        }
    }
    let lines = last_of_each(texts.iter().flat_map(|text| text.lines()).filter(|line| is_of_the_driver(line)));
    match refused {
        Some(unseen) if lines.is_empty() => Err(unseen),
        None if texts.is_empty() => Err(Unseen::new("/var/log", NO_LOG_FILE)),
        _ => Ok(lines),
    }
}

/// The newest lines in their order. syslog and kern.log hold the same ones, and one may go back further:
/// of two the later counts, so that what follows a line here has followed it on the machine.
fn last_of_each<'a>(lines: impl DoubleEndedIterator<Item = &'a str>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let cut = lines.rev().map(|line| line.chars().take(LINE).collect::<String>());
    let mut kept: Vec<String> = cut.filter(|line| seen.insert(line.clone())).take(LINES).collect();
    kept.reverse();
    kept
}

/// Besides the driver's own lines, those of modules that were turned away for their signature, which do
/// not always name the module, the kernel's first line at each boot, and its last one of a sleep.
fn is_of_the_driver(line: &str) -> bool {
    ["NVRM", "nvidia", "NVIDIA", "nouveau", "Xid", "PM: suspend exit", "PM: hibernation: hibernation exit"]
        .iter()
        .any(|word| line.contains(word))
        || ["Linux version ", "is rejected", "rejected by service", "module verification failed"]
            .iter()
            .any(|words| line.contains(words))
        || line.contains("unsigned module loading is restricted")
}

fn tail(tree: &Tree, path: &str) -> Result<Option<String>, Unseen> {
    let Some(mut file) = tree.file(path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    let read = || {
        let size = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(size.saturating_sub(TAIL)))?;
        file.take(TAIL).read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(size > TAIL)
    };
    let cut = read().map_err(|e| Unseen::new(path, format!("reading failed ({:?})", e.kind())))?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    // the first line of a tail is half a line
    Ok(Some(if cut { text.split_once('\n').map_or_else(String::new, |(_, rest)| rest.to_owned()) } else { text }))
}

#[cfg(test)]
mod tests {
    use super::super::look::testing::Laid;
    use super::*;

    #[test]
    fn only_lines_of_the_driver_are_kept_and_each_once() {
        let xid = "Aug  1 12:00:00 h kernel: [1.0] NVRM: Xid (PCI:0000:65:00): 79, pid=1, GPU has fallen off the bus.";
        let laid = Laid::out(&[]);
        laid.write("/var/log/syslog", format!("Aug  1 h systemd[1]: Started x.\n{xid}\n"));
        laid.write("/var/log/kern.log", format!("{xid}\nAug  1 h kernel: nouveau 0000:01:00.0: DRM\n"));
        let seen = kernel_log(&laid.tree());
        let seen = seen.seen().unwrap();
        assert_eq!(seen.len(), 2);
        assert_eq!(seen[0], xid);
    }

    #[test]
    fn a_file_that_goes_back_further_does_not_make_old_lines_new() {
        let (loaded, xid) = ("NVRM: loading NVIDIA UNIX x86_64 Kernel Module", "NVRM: Xid (PCI:0000:65:00): 79");
        let laid = Laid::out(&[]);
        laid.write("/var/log/syslog", format!("2 {loaded}\n"));
        laid.write("/var/log/kern.log", format!("1 {loaded}\n1 {xid}\n2 {loaded}\n"));
        let seen = kernel_log(&laid.tree());
        assert_eq!(seen.seen().unwrap().last().unwrap(), &format!("2 {loaded}"));
    }

    #[test]
    fn modules_that_were_turned_away_and_boots_are_kept_as_well() {
        let kept = [
            "kernel: [    0.000000] Linux version 6.8.0-31-generic (buildd@lcy02) #31-Ubuntu SMP",
            "kernel: Loading of unsigned module is rejected",
            "kernel: Loading of module with unavailable key is rejected",
            "systemd-modules-load[1]: Failed to insert module: Key was rejected by service",
            "kernel: vboxdrv: module verification failed: signature and/or required key missing - tainting kernel",
            "kernel: Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7",
        ];
        let text = kept.join("\nkernel: usb 1-1: new device\n");
        assert_eq!(kernel_log(&Laid::out(&[("/var/log/kern.log", &text)]).tree()).seen().unwrap(), &kept);
    }

    #[test]
    fn only_the_end_of_a_long_log_is_read() {
        let laid = Laid::out(&[]);
        let lines = (0..40_000).map(|n| format!("NVRM: line {n}")).collect::<Vec<_>>().join("\n");
        laid.write("/var/log/messages", &lines);
        let seen = kernel_log(&laid.tree());
        let seen = seen.seen().unwrap();
        assert_eq!((seen.len(), seen.last().unwrap().as_str()), (200, "NVRM: line 39999"));
        assert!(kernel_log(&Laid::out(&[]).tree()).known().is_err());
        let quiet = Laid::out(&[("/var/log/kern.log", "usb 1-1: new device\n")]);
        assert_eq!(kernel_log(&quiet.tree()), Observed::Known(Vec::new()));
    }
}
