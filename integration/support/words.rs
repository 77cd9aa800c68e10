//! What every word of the hook and the runtime keeps to.

use super::process::Ended;

/// Phrases by which docker and podman reclassify an error.
pub(crate) const FORBIDDEN: [&str; 7] = [
    "permission denied",
    "operation not permitted",
    "no such file or directory",
    "not found",
    "executable file not found",
    "is a directory",
    "not a directory",
];

/// The first line is at most this long, in bytes.
pub(crate) const FIRST_LINE: usize = 400;

/// All of it is at most this long: 64 KiB fill the pipe that runc reads at the end.
pub(crate) const ALL: usize = 4096;

/// Fails the test unless the words of a refusal keep to the contract: short, of printable ASCII, without a
/// forbidden phrase, nothing on stdout.
pub(crate) fn check(ended: &Ended) {
    assert_eq!(ended.stdout, "", "runc prints a hook's stdout too");
    assert!(ended.line().len() <= FIRST_LINE, "{} bytes: {}", ended.line().len(), ended.line());
    assert!(ended.stderr.len() <= ALL, "{} bytes", ended.stderr.len());
    let lower = ended.stderr.to_lowercase();
    for phrase in FORBIDDEN {
        assert!(!lower.contains(phrase), "{phrase:?} in {}", ended.stderr);
    }
    let odd = ended.stderr.chars().find(|c| !matches!(c, ' '..='~' | '\n'));
    assert_eq!(odd, None, "{:?}", ended.stderr);
}

/// Fails the test unless it is a refusal of that check and exit code, in proper words.
pub(crate) fn check_refusal(ended: &Ended, code: i32, id: &str) {
    assert_eq!(ended.code(), code, "{ended:?}");
    assert!(ended.line().contains(id), "{id} is not in {:?}", ended.line());
    check(ended);
}

/// Fails the test unless it starts without a word.
pub(crate) fn check_start(ended: &Ended) {
    assert_eq!((ended.code(), ended.stderr.as_str(), ended.stdout.as_str()), (0, "", ""), "{ended:?}");
}
