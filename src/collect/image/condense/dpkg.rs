//! dpkg's list of what is installed.

use super::is_kept;

/// Lines are names and versions; what is kept in all.
const LONGEST_LINE: usize = 1024;
const MOST_BYTES: usize = 1 << 20;

/// Reads one that goes by, and keeps of the packages of interest name, state and version, in the same form.
#[derive(Debug, Default)]
pub(in crate::collect::image) struct Status {
    /// The line that is not whole yet; of a long one its beginning.
    line: Vec<u8>,
    /// What is kept of the stanza so far.
    stanza: String,
    is_kept: bool,
    kept: String,
}

impl Status {
    /// The next bytes.
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.take(&bytes[..end]);
            self.end_line();
            bytes = &bytes[end + 1..];
        }
        self.take(bytes);
    }

    fn take(&mut self, bytes: &[u8]) {
        let room = LONGEST_LINE.saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_line(&mut self) {
        if self.line.is_empty() {
            self.end_stanza();
            return;
        }
        let is_long = self.line.len() >= LONGEST_LINE;
        if let Some((field, value)) = std::str::from_utf8(&self.line).ok().and_then(|line| line.split_once(": "))
            && matches!(field, "Package" | "Status" | "Version")
            && !is_long
            && self.stanza.len() < LONGEST_LINE
        {
            self.is_kept |= field == "Package" && is_kept(value);
            self.stanza.extend([field, ": ", value, "\n"]);
        }
        self.line.clear();
    }

    fn end_stanza(&mut self) {
        if self.is_kept && self.kept.len() < MOST_BYTES {
            self.kept.extend([self.stanza.as_str(), "\n"]);
        }
        self.stanza.clear();
        self.is_kept = false;
    }

    /// What is left of it.
    pub(super) fn finish(mut self) -> String {
        self.end_line();
        self.line.clear();
        self.end_stanza();
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Package: bash\nStatus: install ok installed\nVersion: 5.2\n\n\
        Package: libnccl2\nStatus: install ok installed\nDepends: libc6\nDescription: NCCL\n Package: not\nVersion: 2.27.3-1+cuda12.9\n\n\
        Package: libc6\nVersion: 2.36-9+deb12u10";

    #[test]
    fn the_pieces_do_not_matter() {
        let expected = "Package: libnccl2\nStatus: install ok installed\nVersion: 2.27.3-1+cuda12.9\n\n\
            Package: libc6\nVersion: 2.36-9+deb12u10\n\n";
        for length in [1, 7, 100, 10_000] {
            let mut condenser = Status::default();
            STATUS.as_bytes().chunks(length).for_each(|piece| condenser.push(piece));
            assert_eq!(condenser.finish(), expected, "{length}");
        }
        let mut again = Status::default();
        again.push(expected.as_bytes());
        assert_eq!(again.finish(), expected, "what is left of it is such a database");
    }

    #[test]
    fn nothing_grows_without_an_end() {
        let mut condenser = Status::default();
        for n in 0..40_000 {
            condenser.push(format!("Package: cuda{n}\nVersion: 1\nVersion: 1\n\n").as_bytes());
        }
        condenser.push(&vec![b'x'; 4 << 20]);
        assert!(condenser.line.len() <= LONGEST_LINE && condenser.finish().len() <= MOST_BYTES + LONGEST_LINE);
        let mut condenser = Status::default();
        (0..100_000).for_each(|_| condenser.push(b"Version: 1\n"));
        assert!(condenser.stanza.len() <= LONGEST_LINE * 2);
    }
}
