//! Finds the telling lines of a text of any length, in one pass and constant memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::dfa::DFA;
use aho_corasick::{Anchored, BuildError, MatchError, MatchKind};

use super::context::{self, CONTEXTS};
use super::scan::Scan;
use super::{Cause, Code, Confidence, Text, numbers, texts, xid};

/// Lines are handled in pieces of at most this many bytes.
pub const PIECE: usize = 4096;
/// What is kept of a line's piece for its next one, so that words on the border are seen whole.
const OVERLAP: usize = 256;
/// Fragments of one text may stand in lines so far from each other: a line may have been wrapped.
const NEAR: u64 = 1;
/// The two words of a pair stand at most so many bytes from each other.
const CLOSE: u64 = 200;
/// So much of a line is shown.
const SHOWN: usize = 240;

/// What a fragment is for.
#[derive(Debug, Clone, Copy)]
enum Use {
    /// Alternative `tell` of a text.
    Tell { text: usize, tell: usize },
    /// One side of a pair.
    Side { pair: usize, second: bool },
    /// The line is about something else.
    Unless,
    /// The line has a number.
    Anchor,
    /// It says something of the surroundings.
    Context(usize),
}

/// A text that was recognised.
#[derive(Debug, Clone)]
pub struct Told {
    /// Which.
    pub text: &'static Text,
    /// The first line that says it, as it was read.
    pub line: String,
    /// Its number, from 1.
    pub number: u64,
    /// How many lines say it.
    pub times: u64,
    /// What it is about.
    pub found: Option<String>,
    /// Its causes here, best first.
    pub causes: &'static [Cause],
}

/// A cause with its rank.
#[derive(Debug, Clone)]
pub struct Ranked {
    /// The check that names it.
    pub id: &'static str,
    /// All considered.
    pub confidence: Confidence,
    /// Why it fits.
    pub why: String,
    /// Which of the recognised texts says so first.
    pub told: usize,
}

/// What a text came to.
#[derive(Debug)]
pub struct Reading {
    /// The recognised texts, the weightiest first.
    pub told: Vec<Told>,
    /// Their causes, best first; none: nothing was recognised.
    pub causes: Vec<Ranked>,
}

/// The texts, made ready to be looked for.
pub struct Tables {
    automaton: DFA,
    start: StateID,
    texts: Vec<&'static Text>,
    /// By fragment: all that it is for.
    uses: Vec<Vec<Use>>,
    /// By text and alternative: the fragments.
    tells: Vec<Vec<Vec<usize>>>,
    /// By pair: the text that it tells.
    pairs: Vec<usize>,
    unless: Vec<Vec<usize>>,
    codes: BTreeMap<Code, usize>,
}

/// Reads a text piece by piece.
pub struct Reader<'t> {
    tables: &'t Tables,
    state: StateID,
    scan: Scan,
    /// By fragment: the line that had it last, from 1.
    seen: Vec<u64>,
    /// By pair and side: the line that had it last, and where in the text it ended.
    sides: Vec<[(u64, u64); 2]>,
    line: u64,
    /// How many bytes came before those of `plain`.
    before: u64,
    plain: Vec<u8>,
    anchored: bool,
    /// Texts that the current line has.
    hits: Vec<usize>,
    told: BTreeMap<usize, Told>,
    numbers: BTreeMap<u32, Told>,
    contexts: Vec<bool>,
}

/// The tables could not be made into an automaton: a defect of this program, which its tests would show.
#[derive(Debug, thiserror::Error)]
#[error("the table of error texts is not usable: {0}")]
pub struct BadTable(String);

impl From<BuildError> for BadTable {
    fn from(error: BuildError) -> Self {
        Self(error.to_string())
    }
}

impl From<MatchError> for BadTable {
    fn from(error: MatchError) -> Self {
        Self(error.to_string())
    }
}

/// The fragments, each once.
#[derive(Default)]
struct Fragments {
    words: Vec<&'static str>,
    uses: Vec<Vec<Use>>,
    index: BTreeMap<&'static str, usize>,
}

impl Fragments {
    fn add(&mut self, word: &'static str, what: Use) -> usize {
        let at = *self.index.entry(word).or_insert_with(|| {
            self.words.push(word);
            self.uses.push(Vec::new());
            self.words.len() - 1
        });
        self.uses[at].push(what);
        at
    }
}

impl Tables {
    /// Makes them ready, which takes some milliseconds.
    pub fn new() -> Result<Self, BadTable> {
        let mut fragments = Fragments::default();
        let (mut tells, mut pairs, mut unless) = (Vec::new(), Vec::new(), Vec::new());
        let texts: Vec<_> = texts::all().collect();
        for (text, literal) in texts.iter().enumerate() {
            let alternatives =
                literal.tells.iter().enumerate().map(|(tell, words)| {
                    words.iter().map(|word| fragments.add(word, Use::Tell { text, tell })).collect()
                });
            tells.push(alternatives.collect());
            for (first, second) in literal.pairs {
                let pair = pairs.len();
                pairs.push(text);
                for (words, second) in [(first, false), (second, true)] {
                    for word in *words {
                        fragments.add(word, Use::Side { pair, second });
                    }
                }
            }
            unless.push(literal.unless.iter().map(|word| fragments.add(word, Use::Unless)).collect());
        }
        for anchor in numbers::ANCHORS {
            fragments.add(anchor, Use::Anchor);
        }
        for (number, context) in CONTEXTS.iter().enumerate() {
            for word in context.words {
                fragments.add(word, Use::Context(number));
            }
        }
        let automaton = DFA::builder().match_kind(MatchKind::Standard).build(&fragments.words)?;
        let start = automaton.start_state(Anchored::No)?;
        let codes = texts::codes();
        Ok(Self { automaton, start, texts, uses: fragments.uses, tells, pairs, unless, codes })
    }
}

impl<'t> Reader<'t> {
    /// One for one text.
    pub fn new(tables: &'t Tables) -> Self {
        Self {
            tables,
            state: tables.start,
            scan: Scan::new(),
            seen: vec![0; tables.uses.len()],
            sides: vec![[(0, 0); 2]; tables.pairs.len()],
            line: 1,
            before: 0,
            plain: Vec::with_capacity(PIECE + OVERLAP),
            anchored: false,
            hits: Vec::new(),
            told: BTreeMap::new(),
            numbers: BTreeMap::new(),
            contexts: vec![false; CONTEXTS.len()],
        }
    }

    /// The next piece of at most [`PIECE`] bytes: a line with its end, or a part of a longer one.
    pub fn piece(&mut self, raw: &[u8]) {
        for byte in raw {
            let Some(byte) = self.scan.byte(*byte) else { continue };
            self.plain.push(byte);
            self.state = self.tables.automaton.next_state(Anchored::No, self.state, byte);
            if self.tables.automaton.is_special(self.state) && self.tables.automaton.is_match(self.state) {
                self.matched();
            }
        }
        let whole = raw.last() == Some(&b'\n');
        if self.anchored || !self.hits.is_empty() {
            self.settle(raw);
        }
        if whole {
            self.line += 1;
        }
        let kept = if whole { 0 } else { OVERLAP.min(self.plain.len()) };
        let gone = self.plain.len() - kept;
        self.before += gone as u64;
        self.plain.drain(..gone);
    }

    /// The fragments that end here.
    fn matched(&mut self) {
        let tables = self.tables;
        for at in 0..tables.automaton.match_len(self.state) {
            let fragment = tables.automaton.match_pattern(self.state, at).as_usize();
            self.seen[fragment] = self.line;
            for what in &tables.uses[fragment] {
                match *what {
                    Use::Anchor => self.anchored = true,
                    Use::Context(number) => self.contexts[number] = true,
                    Use::Unless => {}
                    Use::Side { pair, second } => {
                        let at = self.before + self.plain.len() as u64;
                        let sides = &mut self.sides[pair];
                        sides[usize::from(second)] = (self.line, at);
                        let (line, other) = sides[usize::from(!second)];
                        let text = tables.pairs[pair];
                        if line == self.line && at - other <= CLOSE && !self.hits.contains(&text) {
                            self.hits.push(text);
                        }
                    }
                    Use::Tell { text, tell } => {
                        let near = |word: &usize| {
                            let seen = self.seen[*word];
                            seen > 0 && self.line - seen <= NEAR
                        };
                        if !self.hits.contains(&text) && tables.tells[text][tell].iter().all(near) {
                            self.hits.push(text);
                        }
                    }
                }
            }
        }
    }

    /// A piece with hits, or with a number.
    fn settle(&mut self, raw: &[u8]) {
        let bytes = std::mem::take(&mut self.plain);
        let plain = String::from_utf8_lossy(&bytes);
        if std::mem::take(&mut self.anchored) {
            for code in numbers::in_line(&plain) {
                match code {
                    Code::Xid(number) => self.xid(number, raw),
                    code => self.hits.extend(self.tables.codes.get(&code)),
                }
            }
        }
        let mut hits = std::mem::take(&mut self.hits);
        hits.sort_unstable();
        hits.dedup();
        for text in hits.drain(..) {
            self.tell(text, &plain, raw);
        }
        // Both keep what they have allocated.
        (self.hits, self.plain) = (hits, bytes);
    }

    fn tell(&mut self, number: usize, plain: &str, raw: &[u8]) {
        if self.tables.unless[number].iter().any(|word| self.seen[*word] == self.line) {
            return;
        }
        if let Some(told) = self.told.get_mut(&number) {
            told.times += 1;
            return;
        }
        let text = self.tables.texts[number];
        let causes = match text.refine {
            None => text.causes,
            Some(refine) => match refine(plain) {
                Some(causes) => causes,
                None => return,
            },
        };
        let found = text.after.and_then(|word| word_behind(plain, word));
        let told = Told { text, line: shown(raw, text), number: self.line, times: 1, found, causes };
        self.told.insert(number, told);
    }

    fn xid(&mut self, number: u32, raw: &[u8]) {
        let line = self.line;
        let told = self.numbers.entry(number).or_insert_with(|| Told {
            text: &texts::XID,
            line: shown(raw, &texts::XID),
            number: line,
            times: 0,
            found: Some(
                xid::meaning(number).map_or_else(|| number.to_string(), |(text, _)| format!("{number} ({text})")),
            ),
            causes: xid::causes(number),
        });
        told.times += 1;
    }

    /// What it came to.
    pub fn end(self) -> Reading {
        let mut told: Vec<Told> = self.told.into_values().chain(self.numbers.into_values()).collect();
        let telling = |told: &Told| told.causes.iter().any(|cause| cause.id != context::BENIGN);
        if told.iter().any(telling) {
            told.retain(telling);
        }
        if told.iter().any(|told| !told.text.general) {
            told.retain(|told| !told.text.general);
        }
        told.sort_by_key(|told| (Reverse(told.causes.first().map(|c| c.confidence)), told.number));
        let causes = context::ranked(&told, &self.contexts);
        Reading { told, causes }
    }
}

/// The word behind another one.
fn word_behind(line: &str, word: &str) -> Option<String> {
    let (_, rest) = line.split_once(word)?;
    let rest = rest.trim_start_matches([' ', ':', '"', '\'', '=']);
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "._-/:=,<>!+".contains(c))).unwrap_or(rest.len());
    let found = rest[..end].trim_end_matches(['.', ',', ':', '-', '/']);
    (!found.is_empty()).then(|| found.chars().take(80).collect())
}

/// A line for people: without control characters, around what tells.
fn shown(raw: &[u8], text: &Text) -> String {
    let line = String::from_utf8_lossy(raw);
    let line = line.trim();
    if line.len() <= SHOWN {
        return line.to_owned();
    }
    let lower = line.to_ascii_lowercase();
    let tells = text.tells.iter().flat_map(|words| words.iter());
    let pairs = text.pairs.iter().flat_map(|(_, said)| said.iter());
    let at = tells.chain(pairs).find_map(|word| lower.find(word)).unwrap_or(0);
    let mut from = at.saturating_sub(SHOWN / 3);
    let mut to = (from + SHOWN).min(line.len());
    while !line.is_char_boundary(from) {
        from -= 1;
    }
    while !line.is_char_boundary(to) {
        to -= 1;
    }
    let dots = |cut: bool| if cut { "..." } else { "" };
    format!("{}{}{}", dots(from > 0), &line[from..to], dots(to < line.len()))
}
