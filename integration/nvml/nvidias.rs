//! NVIDIA's own libnvidia-ml and libcuda, where no driver runs: what they answer is understood, and nothing breaks.

use serde_json::{Value, json};

use super::{LIMIT, ids, of_driver};
use crate::support::host::SimHost;
use crate::support::{needs, programs};

/// In place of the libraries without code.
const REAL: &str =
    r#"rm usr/lib/*/lib*.so*; cp -a "$GPU_PREFLIGHT_TEST_DRIVER"/usr/lib/*/nvidia/current/lib*.so.* usr/lib/*/"#;

fn host(modules: &'static str, args: &[&str]) -> Option<Value> {
    if !needs::root() || !needs::tools(&["cc", "unshare"]) {
        return None;
    }
    let libraries = needs::driver()?;
    let host = SimHost { modules, ..SimHost::spoilt(REAL) };
    let command = [programs::cli().into_os_string(), "host".into(), "--format=json".into()];
    let run = host.run(command.into_iter().chain(args.iter().map(Into::into)));
    let ended = run.env("GPU_PREFLIGHT_TEST_DRIVER", libraries).limit(LIMIT).end();
    let document = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    crate::schema::check_report(&document);
    Some(document)
}

#[test]
fn without_a_driver_that_alone_is_said() {
    for args in [&[][..], &["--cuda"]] {
        let Some(document) = host("", args) else { return };
        assert_eq!(of_driver(&document), ["\"driver-not-loaded\""], "{args:?}: {document:#}");
        assert_eq!(document["verdict"], "fail");
        // they would have the driver's own helper load modules
        let facts = &document["facts"]["host"];
        assert!(facts.get("nvml").is_none() && facts.get("cuda_start").is_none(), "{facts:#}");
    }
}

#[test]
fn what_they_answer_is_told_as_they_mean_it() {
    let Some(document) = host(SimHost::default().modules, &["--cuda"]) else { return };
    let facts = &document["facts"]["host"];
    assert_eq!(facts["nvml"]["trouble"], json!({"failed": ["nvmlInit_v2", 9]}), "{facts:#}");
    assert!(
        document["unknown"].to_string().contains("nvmlInit_v2 answers with code 9, Driver Not Loaded"),
        "{document:#}"
    );
    // no device, or whatever a newer one calls that
    assert!(facts["cuda_start"]["answered"].as_u64().is_some_and(|code| code != 0), "{facts:#}");
    assert!(ids(&document).contains(&("cuda-does-not-start".to_owned(), "error".to_owned())), "{document:#}");
}
