//! `gpu-preflight checks`: the catalogue, or one page of it.

use std::fmt::Write as _;

use serde_json::json;

use crate::cli::{Common, Format};
use crate::commands::catalogue;
use crate::commands::output::{Failed, has_no_report, print, styled};
use crate::model::Family;
use crate::report::json::SCHEMA_VERSION;
use crate::report::sheet::Sheet;

/// Lists all, or shows the one of a name.
pub(crate) fn run(id: Option<&str>, common: &Common) -> Result<u8, Failed> {
    has_no_report("checks", common)?;
    match id {
        None if common.format == Format::Json => {
            let all: Vec<_> = catalogue::all().iter().map(Sheet::json).collect();
            print(&format!("{:#}", json!({"schema_version": SCHEMA_VERSION, "checks": all})));
        }
        None => styled(&list(), common),
        Some(id) => show(&catalogue::page(id)?, common),
    }
    Ok(0)
}

/// Prints one page.
pub(crate) fn show(sheet: &Sheet, common: &Common) {
    if common.format == Format::Json {
        print(&format!("{:#}", sheet.json()));
    } else {
        styled(&sheet.text(), common);
    }
}

fn list() -> String {
    let mut out = String::new();
    let all = catalogue::all();
    let widest = all.iter().map(|sheet| sheet.id.len()).max().unwrap_or(0);
    let mut family = None;
    for sheet in &all {
        if family != Some(sheet.family) {
            family = Some(sheet.family);
            let _ = writeln!(out, "{}", sheet.family.map_or("known to explain only", Family::name));
        }
        let mark = if sheet.only_explained() && sheet.family.is_some() { "*" } else { " " };
        let _ = writeln!(out, " {mark}{:widest$}  {:5}  {}", sheet.id, sheet.letters(), sheet.title);
    }
    out.push_str(
        "E error, W warning, N note; * no check judges it yet, explain knows it. `gpu-preflight checks ID` shows one.",
    );
    out
}
