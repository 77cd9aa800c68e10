//! What the kernel's log files say of the GPU.

use std::collections::{BTreeSet, VecDeque};
use std::io::{Read as _, Seek as _, SeekFrom};

use super::look::fact;
use crate::collect::tree::Tree;
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
    let mut lines = VecDeque::new();
    let mut seen = BTreeSet::new();
    let mut looked = false;
    let mut refused = None;
    for path in FILES {
        match tail(tree, path) {
            Ok(None) => {}
            Ok(Some(text)) => {
                looked = true;
                // syslog and kern.log hold the same lines
                for line in text.lines().filter(|line| is_of_the_driver(line)) {
                    let line: String = line.chars().take(LINE).collect();
                    if seen.insert(line.clone()) {
                        lines.push_back(line);
                    }
                    if lines.len() > LINES {
                        lines.pop_front();
                    }
                }
            }
            Err(unseen) => refused = Some(unseen),
        }
    }
    match refused {
        Some(unseen) if lines.is_empty() => Err(unseen),
        None if !looked => Err(Unseen::new("/var/log", "no log file of the kernel's is there")),
        _ => Ok(lines.into()),
    }
}

fn is_of_the_driver(line: &str) -> bool {
    ["NVRM", "nvidia", "NVIDIA", "nouveau", "Xid"].iter().any(|word| line.contains(word))
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
