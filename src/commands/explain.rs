//! `gpu-preflight explain`: what an error text means, from an argument or a whole log, or the page of a name.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, IsTerminal, Read};

use crate::cli::{Common, Explain, Format};
use crate::commands::output::{Failed, detail, has_no_report, print, styled, width};
use crate::commands::{catalogue, checks, verify};
use crate::knowledge::errors::reader::PIECE;
use crate::knowledge::errors::{Reader, Reading, Tables};
use crate::report::explained::{self, Explained, Line};
use crate::report::text::wrapped;

/// What is read from standard input at once.
const CHUNK: usize = 256 * 1024;

/// Reads, recognises, ranks, prints.
pub(crate) fn run(asked: &Explain, common: &Common) -> Result<u8, Failed> {
    has_no_report("explain", common)?;
    let reading = if let Some(text) = argument(&asked.text) {
        if let Some(sheet) = catalogue::find(text.trim()) {
            checks::show(&sheet, common);
            return Ok(0);
        }
        let reading = read(text.as_bytes())?;
        if reading.causes.is_empty() && is_name(text.trim()) {
            return catalogue::page(text.trim()).map(|_| 0);
        }
        reading
    } else {
        let stdin = std::io::stdin();
        if asked.text.is_empty() && stdin.is_terminal() {
            let way_out = "gpu-preflight explain 'TEXT', or a log on standard input";
            return Err(Failed::new("the text", "none was given", way_out));
        }
        read(stdin.lock())?
    };
    if reading.causes.is_empty() {
        return Err(Failed::new(
            "the text",
            "no line of it is known here, and nothing is guessed",
            "the lines around the first error, of the program and of the kernel (dmesg); gpu-preflight host and gpu-preflight container ID judge without a text",
        ));
    }
    let (lines, mut causes) = explained(reading);
    if asked.verify {
        verify::verify(&mut causes, asked.container.as_deref(), common)?;
    }
    if common.format == Format::Json {
        print(&explained::json(&lines, &causes));
    } else {
        let text = explained::text(&lines, &causes, detail(common));
        styled(&wrapped(text.trim_end(), width()), common);
    }
    Ok(0)
}

/// The arguments as one text; none, or `-`: standard input.
fn argument(words: &[OsString]) -> Option<String> {
    match words {
        [] => None,
        [one] if one == "-" => None,
        words => Some(words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")),
    }
}

/// It has the form of a check's name.
fn is_name(text: &str) -> bool {
    text.contains('-') && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Reads a text of any length, in pieces of bounded length.
fn read(from: impl Read) -> Result<Reading, Failed> {
    let tables = Tables::new().map_err(|error| Failed::new("explain", error.to_string(), "report this as a bug"))?;
    let mut reader = Reader::new(&tables);
    let mut from = BufReader::with_capacity(CHUNK, from);
    let mut piece = Vec::with_capacity(PIECE);
    loop {
        piece.clear();
        let limit = u64::try_from(PIECE).unwrap_or(u64::MAX);
        let read = from.by_ref().take(limit).read_until(b'\n', &mut piece);
        match read {
            Ok(0) => return Ok(reader.end()),
            Ok(_) => reader.piece(&piece),
            Err(error) => {
                return Err(Failed::new(
                    "standard input",
                    error.to_string(),
                    "give it a text, or a file that can be read",
                ));
            }
        }
    }
}

/// The causes with their pages.
fn explained(reading: Reading) -> (Vec<Line>, Vec<Explained>) {
    let lines = reading
        .told
        .into_iter()
        .map(|told| Line { name: told.text.name, text: told.line, number: told.number, times: told.times })
        .collect();
    let causes = reading
        .causes
        .into_iter()
        .filter_map(|cause| {
            Some(Explained {
                sheet: catalogue::find(cause.id)?,
                confidence: cause.confidence.name(),
                why: cause.why,
                line: cause.told,
                verified: None,
            })
        })
        .collect();
    (lines, causes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn steps_of_checks_and_pages_are_words_without_a_finding_too() {
        let checks = crate::checks::all().map(|(_, check)| (check.id, check.remedy));
        let pages = crate::knowledge::pages::all().map(|(_, page)| (page.id, page.remedy));
        for (id, step) in checks.chain(pages).flat_map(|(id, remedy)| remedy.iter().map(move |step| (id, step))) {
            // the report says "or" before all but the first
            assert!(!step.text.starts_with("Or "), "{id}: {}", step.text);
            assert_eq!(crate::report::explained::without_words(step), [] as [&str; 0], "{id}: {step:?}");
        }
    }
}
