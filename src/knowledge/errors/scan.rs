//! Bytes as fragments are written: lower case, single blanks, no escapes, no colours.
//!
//! Engines and log drivers wrap what a program printed: `\"`, `\n`, `\u003e` in JSON, once more in each layer; a
//! terminal's colours stand in it raw or as `\u001b[31m`. A byte goes in, at most one comes out, and what is open
//! at the end of a piece goes on in the next.

/// What the last bytes were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    /// Behind a backslash; further ones are other layers' escapes.
    Backslash,
    /// In `\uXXXX`: digits seen, their value.
    Unicode(u8, u16),
    /// Behind an escape character.
    Escape,
    /// In `ESC [ … m`.
    Sequence,
}

/// Where in the text it is.
#[derive(Debug, Clone)]
pub(super) struct Scan {
    state: State,
    blank: bool,
}

impl Scan {
    pub(super) const fn new() -> Self {
        Self { state: State::Text, blank: true }
    }

    /// What a byte adds, if anything.
    #[inline]
    pub(super) fn byte(&mut self, byte: u8) -> Option<u8> {
        if self.state == State::Text && byte > b' ' && byte != b'\\' {
            self.blank = false;
            return Some(byte.to_ascii_lowercase());
        }
        self.rare(byte)
    }

    fn rare(&mut self, byte: u8) -> Option<u8> {
        match self.state {
            State::Text => match byte {
                0x1b => {
                    self.state = State::Escape;
                    None
                }
                b'\\' => {
                    self.state = State::Backslash;
                    None
                }
                _ => self.put(byte),
            },
            State::Backslash => {
                if byte == b'\\' {
                    return None;
                }
                self.state = State::Text;
                match byte {
                    b'n' | b'r' | b't' => self.put(b' '),
                    b'u' => {
                        self.state = State::Unicode(0, 0);
                        None
                    }
                    _ => self.put(byte),
                }
            }
            State::Unicode(seen, value) => {
                let Some(digit) = char::from(byte).to_digit(16) else {
                    self.state = State::Text;
                    return self.put(byte);
                };
                let value = (value << 4) | u16::try_from(digit).unwrap_or_default();
                self.state = State::Unicode(seen + 1, value);
                if seen < 3 {
                    return None;
                }
                self.state = if value == 0x1b { State::Escape } else { State::Text };
                match u8::try_from(value) {
                    Ok(0x1b) => None,
                    Ok(ascii) if ascii.is_ascii() => self.put(ascii),
                    _ => self.put(b'?'),
                }
            }
            State::Escape => {
                self.state = if byte == b'[' { State::Sequence } else { State::Text };
                if byte == b'\n' { self.put(byte) } else { None }
            }
            State::Sequence => {
                // Digits and `;`, until the letter that ends it. What is no sequence ends with its line.
                if !(byte.is_ascii_digit() || byte == b';' || byte == b'?') {
                    self.state = State::Text;
                }
                if byte == b'\n' { self.put(byte) } else { None }
            }
        }
    }

    fn put(&mut self, byte: u8) -> Option<u8> {
        if byte > b' ' && byte != 0x7f {
            self.blank = false;
            return Some(byte.to_ascii_lowercase());
        }
        (!std::mem::replace(&mut self.blank, true)).then_some(b' ')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        let mut scan = Scan::new();
        String::from_utf8_lossy(&text.bytes().filter_map(|b| scan.byte(b)).collect::<Vec<_>>()).into_owned()
    }

    #[test]
    fn escapes_of_engines_and_colours_of_terminals_are_gone() {
        for (text, wanted) in [
            (r#"driver \"\" with  capabilities: [[gpu]]"#, r#"driver "" with capabilities: [[gpu]]"#),
            (
                r"Auto-detected mode as 'legacy'\nnvidia-container-cli: x",
                "auto-detected mode as 'legacy' nvidia-container-cli: x",
            ),
            (r"condition: cuda\u003e=12.4", "condition: cuda>=12.4"),
            (r#"exec: \\\"nvidia-smi\\\": executable"#, r#"exec: "nvidia-smi": executable"#),
            ("\u{1b}[31mCUDA\u{1b}[0m error", "cuda error"),
            (r"\u001b[1;31mCUDA\u001b[0m error", "cuda error"),
            ("a\r\n\tb", "a b"),
            ("\u{663e}\u{5361} CUDA", "\u{663e}\u{5361} cuda"),
        ] {
            assert_eq!(plain(text), wanted);
        }
    }
}
