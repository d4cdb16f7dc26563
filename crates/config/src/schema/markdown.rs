//! The configuration reference in Markdown: one section per table.

use std::fmt::Write as _;

use super::keys::TOP;
use super::spec::{KeySpec, Kind, TableSpec};

/// Returns every table with its keys: type, default, meaning and a short example.
pub fn reference() -> String {
    let mut out = String::new();
    for table in TOP.tables() {
        // Writing into a String cannot fail.
        _ = section(&mut out, table);
    }
    out
}

fn section(out: &mut String, table: &TableSpec) -> std::fmt::Result {
    let heading = match table.heading {
        "the top level" => "The top level".to_owned(),
        heading => match heading.split_once(" of ") {
            Some((key, owner)) => format!("`{key}` of `{owner}`"),
            None => format!("`{heading}`"),
        },
    };
    writeln!(out, "## {heading}\n\n{}\n", table.doc)?;
    writeln!(out, "| key | type | default | meaning |\n|---|---|---|---|")?;
    for key in table.keys {
        writeln!(
            out,
            "| `{}` | {} | {} | {} |",
            key.name,
            cell(&type_of(key)),
            cell(&key.absent.words()),
            cell(key.doc)
        )?;
    }
    writeln!(out, "\n```toml\n{}```\n", table.example)
}

fn type_of(key: &KeySpec) -> String {
    let words = match key.kind {
        Kind::Choice(_) | Kind::OneOf(_) => key.kind.words(),
        Kind::Tables(table) | Kind::NamedTables(table) if table.heading.starts_with('[') => {
            format!("tables `{}`", table.heading)
        }
        Kind::Tables(_) => "a list of tables".to_owned(),
        kind => kind.words(),
    };
    let words = words
        .strip_prefix("a ")
        .or_else(|| words.strip_prefix("an "))
        .map_or(words.clone(), str::to_owned);
    match key.kind.bounds() {
        Some(bounds) => format!("{words}, {bounds}"),
        None => words,
    }
}

/// A vertical bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
