//! TOML whose comments, order and layout stay.

use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

use super::Trouble;

/// Parses a text; none is an empty document.
pub(super) fn parse(text: Option<&str>) -> Result<DocumentMut, Trouble> {
    let broken = |error: &toml_edit::TomlError| {
        let message = error.message().lines().next().unwrap_or_default().to_owned();
        let text = text.unwrap_or_default();
        let line =
            error.span().and_then(|span| text.get(..span.start)).map_or(1, |before| before.matches('\n').count() + 1);
        Trouble::Broken(format!("no valid TOML (line {line}: {message})"))
    };
    let lines = text.unwrap_or_default();
    if lines.contains("\r\n") && lines.replace("\r\n", "").contains('\n') {
        return Err(Trouble::Broken("it mixes line ends".to_owned()));
    }
    text.unwrap_or_default().parse().map_err(|error| broken(&error))
}

/// The table at these keys, as it is.
pub(super) fn at<'d>(document: &'d DocumentMut, keys: &[&str]) -> Option<&'d dyn TableLike> {
    let mut table: &dyn TableLike = document.as_table();
    for key in keys {
        table = table.get(key)?.as_table_like()?;
    }
    Some(table)
}

/// The table at these keys, made where it is absent.
pub(super) fn made<'d>(document: &'d mut DocumentMut, keys: &[&str]) -> Result<&'d mut dyn TableLike, Trouble> {
    let mut table: &mut dyn TableLike = document.as_table_mut();
    for (place, key) in keys.iter().enumerate() {
        let is_last = place + 1 == keys.len();
        let item = table.entry(key).or_insert_with(|| {
            let mut table = Table::new();
            // a header of its own only where something stands in it
            table.set_implicit(!is_last);
            Item::Table(table)
        });
        table = item.as_table_like_mut().ok_or_else(|| Trouble::Broken(format!("{key:?} in it is no table")))?;
    }
    Ok(table)
}

/// A text in a table.
pub(super) fn text<'t>(table: &'t dyn TableLike, key: &str) -> Option<&'t str> {
    table.get(key)?.as_str()
}

/// The changed document as text, with the line ends and the mark at its beginning that the file had.
pub(super) fn written(document: &DocumentMut, before: Option<&str>) -> String {
    let text = document.to_string();
    let before = before.unwrap_or_default();
    let text = if before.contains("\r\n") { text.replace("\r\n", "\n").replace('\n', "\r\n") } else { text };
    if before.starts_with(MARK) && !text.starts_with(MARK) { format!("{MARK}{text}") } else { text }
}

/// The mark that some editors put first (U+FEFF).
const MARK: char = '\u{feff}';

/// Gives a key this text; comments beside the old one stay.
pub(super) fn set(table: &mut dyn TableLike, key: &str, text: &str) {
    let Some(Item::Value(old)) = table.get_mut(key) else {
        table.insert(key, Item::Value(Value::from(text)));
        return;
    };
    let decor = old.decor().clone();
    *old = Value::from(text);
    *old.decor_mut() = decor;
}

/// Puts a text first into a list, in the list's own layout.
pub(super) fn put_first(list: &mut Array, text: &str) {
    let first = list.get(0).map(|value| value.decor().clone());
    let mut value = Value::from(text);
    if let Some(decor) = &first {
        *value.decor_mut() = decor.clone();
    }
    list.insert_formatted(0, value);
    let on_one_line = first.is_some_and(|decor| !decor.prefix().and_then(|p| p.as_str()).unwrap_or("").contains('\n'));
    if let (true, Some(second)) = (on_one_line, list.get_mut(1)) {
        second.decor_mut().set_prefix(" ");
    }
}

/// Takes out of a list what is so; the next first takes over the layout of the old one.
pub(super) fn take_out(list: &mut Array, is_so: impl Fn(&str) -> bool) {
    let first = list.get(0).map(|value| value.decor().clone());
    let was_first = list.get(0).and_then(Value::as_str).is_some_and(&is_so);
    list.retain(|value| !value.as_str().is_some_and(&is_so));
    if let (true, Some(decor), Some(value)) = (was_first, first, list.get_mut(0)) {
        *value.decor_mut() = decor;
    }
}
