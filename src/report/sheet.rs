//! One cause on its own page: what a check's literal says, or the page of one that has no check.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::explained::{plain, plain_command};
use super::line::labelled;
use crate::model::{Check, Family, Page, Place, Severity, Sign, Step};

/// What the command line does not know yet.
const NOT_YET: [&str; 2] = ["gpu-preflight host --cuda", "gpu-preflight healthcheck"];

/// All that is to be said of a name.
#[derive(Debug, Clone)]
pub struct Sheet {
    /// The name.
    pub id: &'static str,
    /// Its family; none: known to `explain` only.
    pub family: Option<Family>,
    /// The defect in one line.
    pub title: &'static str,
    /// What breaks.
    pub why: &'static str,
    /// The severities it can have.
    pub severities: &'static [Severity],
    /// The commands that judge it; none: no check does.
    pub places: &'static [Place],
    /// The templates of its messages.
    pub messages: &'static [&'static str],
    /// What is so with this cause and not with others.
    pub tells_apart: Option<&'static str>,
    /// Commands that show whether it is the one.
    pub verify: Vec<&'static str>,
    /// The ways out.
    pub remedy: &'static [Step],
}

impl Sheet {
    /// Of a check.
    pub fn of_check(family: Family, check: &'static Check, sign: Option<&'static Sign>) -> Self {
        let ours = check.places.iter().filter_map(|place| command(*place)).collect();
        Self {
            id: check.id,
            family: Some(family),
            title: check.title,
            why: check.why,
            severities: check.severities,
            places: check.places,
            messages: check.messages,
            tells_apart: sign.map(|sign| sign.tells_apart),
            verify: sign.filter(|sign| !sign.verify.is_empty()).map_or(ours, |sign| there(sign.verify)),
            remedy: check.remedy,
        }
    }

    /// Of a page.
    pub fn of_page(family: Option<Family>, page: &'static Page) -> Self {
        Self {
            id: page.id,
            family,
            title: page.title,
            why: page.why,
            severities: page.severities,
            places: &[],
            messages: &[],
            tells_apart: Some(page.tells_apart),
            verify: there(page.verify),
            remedy: page.remedy,
        }
    }

    /// No check judges it yet, or ever.
    pub fn only_explained(&self) -> bool {
        self.places.is_empty()
    }

    /// Its severities as letters.
    pub fn letters(&self) -> String {
        let letter = |severity: &Severity| match severity {
            Severity::Error => "E",
            Severity::Warning => "W",
            Severity::Note => "N",
        };
        self.severities.iter().map(letter).collect::<Vec<_>>().join(" ")
    }

    fn asked_by(&self) -> String {
        if self.only_explained() {
            return "no check yet: explain alone knows it".to_owned();
        }
        self.places.iter().map(|p| place(*p)).collect::<Vec<_>>().join(", ")
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n  {}\n\n{}\n\n", self.id, self.title, self.why);
        if let Some(family) = self.family {
            let _ = writeln!(out, "family      {}", family.name());
            let _ = writeln!(out, "severities  {}", self.letters());
        }
        let _ = writeln!(out, "asked by    {}", self.asked_by());
        if let Some(apart) = self.tells_apart {
            let _ = writeln!(out, "told by     {apart}");
        }
        if !self.messages.is_empty() {
            let _ = writeln!(out, "it says");
        }
        for message in self.messages {
            let _ = writeln!(out, "  {message}.");
        }
        if !self.verify.is_empty() {
            let _ = writeln!(out, "to verify");
        }
        for command in &self.verify {
            let _ = writeln!(out, "    {command}");
        }
        for (n, step) in self.remedy.iter().enumerate() {
            let (label, text) = labelled(n, &plain(step.text));
            let _ = writeln!(out, "{}", if n == 0 { "to do" } else { label });
            let _ = writeln!(out, "  {text}");
            if let Some(command) = step.command {
                let _ = writeln!(out, "    {}", plain_command(command));
            }
        }
        out.trim_end().to_owned()
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!({
            "id": self.id,
            "family": self.family,
            "title": self.title,
            "why": self.why,
            "severities": self.severities,
            "judged": !self.only_explained(),
            "messages": self.messages,
            "tells_apart": self.tells_apart,
            "verify": self.verify,
            "remedy": self.remedy.iter().map(|s| json!({"action": s.action, "text": s.text, "command": s.command})).collect::<Vec<_>>(),
        })
    }

    /// For the rendered reference.
    pub fn markdown(&self) -> String {
        let mut out = format!("### `{}`\n\n{}.\n\n{}\n\n", self.id, first_upper(self.title), self.why);
        let severities = if self.severities.is_empty() { "none" } else { &self.letters() };
        let _ = writeln!(out, "* Severities: {severities}. Asked by: {}.", self.asked_by());
        if let Some(apart) = self.tells_apart {
            let _ = writeln!(out, "* Told by: {apart}");
        }
        for message in self.messages {
            let _ = writeln!(out, "* It says: {message}.");
        }
        for command in &self.verify {
            let _ = writeln!(out, "* To verify: `{command}`");
        }
        for step in self.remedy {
            let command = step.command.map(|command| format!(" `{}`", plain_command(command))).unwrap_or_default();
            let _ = writeln!(out, "* To do: {}{command}", plain(step.text));
        }
        out
    }
}

/// Commands of this program that it does not have yet are no way to verify anything.
fn there(commands: &'static [&'static str]) -> Vec<&'static str> {
    let is_there = |command: &&&str| !NOT_YET.iter().any(|later| command.contains(later));
    commands.iter().filter(is_there).copied().collect()
}

fn first_upper(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

const fn place(place: Place) -> &'static str {
    match place {
        Place::Hook => "the hook, container",
        Place::Image => "image",
        Place::Host => "host",
        Place::Healthcheck => "healthcheck",
        Place::Status => "status",
    }
}

/// Our command that judges at a place.
const fn command(place: Place) -> Option<&'static str> {
    match place {
        Place::Hook => Some("gpu-preflight container ID"),
        Place::Host => Some("gpu-preflight host"),
        Place::Image => Some("gpu-preflight image REF"),
        Place::Status => Some("gpu-preflight status"),
        Place::Healthcheck => None,
    }
}
