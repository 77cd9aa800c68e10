//! New tables of a TOML file stand in its own layout: where its tables are indented, so are they.

use toml_edit::{DocumentMut, Item, Table};

/// What a level adds where nothing shows it, as containerd writes its own file.
const STEP: &str = "  ";

/// Indents what was made as the file's own tables are.
pub(super) fn indent(document: &mut DocumentMut) {
    level(document.as_table_mut(), "", false);
}

/// `own`: where the table's header begins. `indented`: so do headers above it, so that its tables go on.
fn level(table: &mut Table, own: &str, indented: bool) {
    let blanks = |decor: &toml_edit::Decor| {
        let line = decor.prefix()?.as_str()?.rsplit('\n').next()?;
        line.bytes().all(|b| b == b' ' || b == b'\t').then(|| line.to_owned())
    };
    let of_children = table.iter().find_map(|(_, item)| blanks(item.as_table().filter(|t| !t.is_implicit())?.decor()));
    let child = match (&of_children, indented) {
        (Some(blanks), _) => blanks.clone(),
        (None, true) => format!("{own}{STEP}"),
        (None, false) => own.to_owned(),
    };
    let of_keys = table.get_values().iter().find_map(|(keys, _)| blanks(keys.last()?.leaf_decor()));
    let key_indent = of_keys.unwrap_or_else(|| if indented { format!("{own}{STEP}") } else { String::new() });
    for (mut key, item) in table.iter_mut() {
        match item {
            Item::Value(_) if key.leaf_decor().prefix().is_none() => {
                key.leaf_decor_mut().set_prefix(key_indent.as_str());
            }
            Item::Table(inner) => {
                if inner.decor().prefix().is_none() {
                    inner.decor_mut().set_prefix(format!("\n{child}"));
                }
                let at = blanks(inner.decor()).filter(|_| !inner.is_implicit()).unwrap_or_else(|| child.clone());
                let goes_on = !at.is_empty();
                level(inner, &at, goes_on);
            }
            _ => {}
        }
    }
}
