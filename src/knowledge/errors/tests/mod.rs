//! Texts as programs print them, and what has to be read from them.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::reader::PIECE;
use super::{Reader, Reading, Tables};

mod notes;
mod programs;
mod wordings;
mod wordings_of_images;

static TABLES: LazyLock<Tables> = LazyLock::new(|| Tables::new().expect("usable tables"));

fn read(text: &str) -> Reading {
    let mut reader = Reader::new(&TABLES);
    for line in text.as_bytes().split_inclusive(|b| *b == b'\n') {
        for piece in line.chunks(PIECE) {
            reader.piece(piece);
        }
    }
    reader.end()
}

fn ids(text: &str) -> Vec<&'static str> {
    read(text).causes.iter().map(|cause| cause.id).collect()
}

/// Text, and the causes of which the first is the first.
#[track_caller]
fn check(rows: &[(&str, &str)]) {
    let wrong: Vec<_> =
        rows.iter().map(|(text, id)| (text, id, ids(text))).filter(|(_, id, got)| got.first() != Some(*id)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Text, and a cause that has to be among the first three.
#[track_caller]
fn check_among(rows: &[(&str, &str)]) {
    let wrong: Vec<_> = rows
        .iter()
        .map(|(text, id)| (text, id, ids(text)))
        .filter(|(_, id, got)| !got.iter().take(3).any(|g| g == *id))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_is_harmless_is_called_so() {
    for text in [
        "I successful NUMA node read from SysFS had negative value (-1), but there must be at least one NUMA node, so returning NUMA node zero.",
        "oneDNN custom operations are on. You may see slightly different numerical results",
        "This TensorFlow binary is optimized to use available CPU instructions in performance-critical operations.",
        "Failed to detect the name of this container.",
        "ALSA lib confmisc.c:855:(parse_card) cannot find card '0'",
        "nvidia: module verification failed: signature and/or required key missing - tainting kernel",
        "| NVIDIA-SMI 570.86.15   Driver Version: 570.86.15   CUDA Version: 12.8  |",
        "Auto-detected mode as 'legacy'",
    ] {
        assert_eq!(ids(text), ["benign"], "{text}");
    }
    // What is wrong counts, whatever harmless stands beside it.
    let both = ids("oneDNN custom operations are on.\nCUDA error 804\nALSA lib x");
    assert!(both[0] == "compat-on-unsupported-gpu" && !both.contains(&"benign"), "{both:?}");
}

#[test]
fn texts_that_nobody_knows() {
    for text in [
        "",
        "\n\n",
        "hello",
        "Segmentation fault (core dumped)",
        "no such file or directory",
        "permission denied",
        "ModuleNotFoundError: No module named 'torch'",
        "\u{0}\u{1}\u{2}",
        "connection refused",
        "killed",
    ] {
        assert!(read(text).causes.is_empty(), "{text:?}: {:?}", read(text));
    }
}

#[test]
fn lines_are_found_among_noise_and_wrapped() {
    let noise = "2026-11-03T10:00:00Z INFO step 17 loss 0.3 of the run on host-7\n".repeat(500);
    let text = format!(
        "{noise}RuntimeError: CUDA unknown error - this may be\n    due to an incorrectly set up environment\n{noise}"
    );
    let reading = read(&text);
    assert_eq!((reading.told[0].number, reading.told[0].times), (501, 2));
    let json = r#"{"log":"nvidia-container-cli: device error: 7: unknown device: unknown.\n","stream":"stderr"}"#;
    assert_eq!(ids(json)[0], "visible-devices-index-out-of-range");
    let long = format!(
        "{}CUDA error 804: forward compatibility was attempted on non supported HW{}",
        "x ".repeat(100_000),
        " y".repeat(100_000)
    );
    let reading = read(&long);
    assert_eq!(reading.causes[0].id, "compat-on-unsupported-gpu");
    assert!(reading.told[0].line.len() < 300, "{}", reading.told[0].line.len());
}

#[test]
fn several_texts_of_one_log_are_ranked_together() {
    // The kernel names what nvidia-smi can only suspect.
    let log = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\nmodprobe: ERROR: could not insert 'nvidia': Key was rejected by service";
    assert_eq!(ids(log)[0], "secure-boot-module-rejected");
    let causes = read(log).causes;
    assert!(
        causes.len() <= 8 && causes.iter().enumerate().all(|(n, c)| causes[..n].iter().all(|other| other.id != c.id))
    );
}

#[test]
fn tables_are_well_formed() {
    for text in super::texts::all() {
        assert!(
            !text.name.is_empty() && (!text.tells.is_empty() || !text.pairs.is_empty() || !text.codes.is_empty()),
            "{}",
            text.name
        );
        assert!(text.refine.is_some() || !text.causes.is_empty(), "{}", text.name);
        let paired = text.pairs.iter().flat_map(|(of, said)| of.iter().chain(said.iter()));
        for word in text.tells.iter().flat_map(|words| words.iter()).chain(text.unless).chain(paired) {
            assert!(word.len() >= 3 && !word.contains("  ") && !word.contains('\\'), "{}: {word:?}", text.name);
            assert_eq!(word.to_ascii_lowercase(), **word, "{}", text.name);
        }
        assert!(text.causes.windows(2).all(|two| two[0].confidence >= two[1].confidence), "{}", text.name);
        let benign = text.causes.iter().all(|cause| cause.id == "benign");
        assert!(benign || text.causes.len() >= 2 || text.refine.is_some(), "{}: one answer", text.name);
        for cause in text.causes {
            assert!(cause.why.ends_with('.') && cause.why.is_ascii(), "{}: {}", text.name, cause.why);
            assert!(!cause.why.contains("{found}") || text.after.is_some(), "{}: {}", text.name, cause.why);
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..2000), cut in 1..64_usize) {
        let mut reader = Reader::new(&TABLES);
        for piece in bytes.chunks(cut) {
            reader.piece(piece);
        }
        let _ = reader.end();
    }

    #[test]
    fn pieces_of_texts_are_read(parts in proptest::collection::vec(prop_oneof![
        Just("cuda error ".to_owned()), Just("nvrm: xid (".to_owned()), Just("): ".to_owned()), Just("device error: ".to_owned()),
        Just("unknown device".to_owned()), Just("driver version: ".to_owned()), Just("cuda version: ".to_owned()), Just("\\u00".to_owned()),
        Just("\u{1b}[".to_owned()), Just("found version ".to_owned()), "[0-9.]{0,6}", "\\PC{0,8}", Just("\n".to_owned())], 0..30), cut in 1..200_usize) {
        let text = parts.concat();
        let mut reader = Reader::new(&TABLES);
        for piece in text.as_bytes().chunks(cut) {
            reader.piece(piece);
        }
        let reading = reader.end();
        prop_assert!(reading.causes.len() <= 8);
    }
}
