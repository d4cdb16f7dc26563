//! An account as text for a terminal.

use std::fmt::Write as _;
use std::time::Duration;

use diagnose::words::plural;
use model::units::show_duration;
use observe::TimestampCache;

use super::account::Account;
use crate::terminal::is_hidden;

/// Columns of text.
const WIDTH: usize = 100;

/// Returns the account in lines of at most 100 columns, except for long words and commands. Texts of others contain
/// no control characters then.
pub(crate) fn text(account: &Account) -> String {
    let mut out = String::new();
    let span = Duration::from_millis(account.at_unix_ms.saturating_sub(account.from_unix_ms));
    let (from, at) = (stamp(account.from_unix_ms), stamp(account.at_unix_ms));
    let span = show_duration(Duration::from_secs(span.as_secs()));
    paragraph(&mut out, "", &format!("{}, {} to {} UTC ({span})", account.host, from.0, at.1));
    out.push('\n');
    match &account.headline {
        Some(headline) => {
            let when = if account.is_present { "Now: " } else { "In this time: " };
            paragraph(&mut out, when, headline);
        }
        None => paragraph(&mut out, "", "No problem was found in this time."),
    }
    for consequence in &account.consequences {
        paragraph(&mut out, "  so: ", consequence);
    }
    for also in &account.also {
        paragraph(&mut out, "Also: ", also);
    }
    out.push('\n');
    if account.events.is_empty() {
        paragraph(&mut out, "", "Nothing changed, and no rate or latency moved.");
    }
    // The date is printed only where it changes.
    let mut day = stamp(account.from_unix_ms).0.get(..10).unwrap_or_default().to_owned();
    for event in &account.events {
        let (date, time) = stamp(event.at_unix_ms);
        if date.get(..10) != Some(&day) {
            date.get(..10).unwrap_or_default().clone_into(&mut day);
            paragraph(&mut out, "", &format!("{day}:"));
        }
        paragraph(&mut out, &format!("{time}  "), &event.what);
    }
    if account.events_left_out > 0 {
        let more = plural(account.events_left_out as u64, "more event");
        paragraph(&mut out, "", &format!("… and {more}, of less importance"));
    }
    if account.headline.is_some() {
        out.push('\n');
        conclusions(&mut out, account);
    }
    if !account.missing.is_empty() {
        out.push('\n');
        for missing in &account.missing {
            paragraph(&mut out, "Not in this account: ", missing);
        }
    }
    out
}

fn conclusions(out: &mut String, account: &Account) {
    if !account.ruled_out.is_empty() {
        paragraph(out, "Ruled out: ", &format!("{}.", account.ruled_out.join(", ")));
    }
    if !account.unknown.is_empty() {
        paragraph(out, "Not known: ", &format!("{}.", account.unknown.join(", ")));
    }
    match account.preceded_by.as_deref() {
        None => paragraph(out, "Preceded by: ", "not known: the changes are missing."),
        Some([]) => {
            paragraph(out, "Preceded by: ", "no known change of it in the two minutes before.");
        }
        Some(changes) => {
            for change in changes {
                paragraph(out, "Preceded by: ", change);
            }
        }
    }
    for example in &account.examples {
        paragraph(out, "Example: ", example);
    }
    if let Some(remedy) = &account.remedy {
        paragraph(out, "Do: ", remedy);
    }
    for command in &account.commands {
        // To be copied: never wrapped.
        let _ = writeln!(out, "    {}", visible(command));
    }
}

/// Date and time of day, and the time of day alone.
fn stamp(unix_ms: u64) -> (String, String) {
    let stamp = TimestampCache::default().at(Duration::from_millis(unix_ms)).to_string();
    let at = |range: std::ops::Range<usize>| stamp.get(range).unwrap_or_default().to_owned();
    (format!("{} {}", at(0..10), at(11..19)), at(11..19))
}

fn visible(text: &str) -> String {
    text.chars().map(|char| if is_hidden(char) { '\u{fffd}' } else { char }).collect()
}

/// Writes a text after its label, with the following lines below the text.
fn paragraph(out: &mut String, label: &str, text: &str) {
    let indent = label.chars().count();
    out.push_str(label);
    let mut column = indent;
    for (at, word) in visible(text).split_whitespace().enumerate() {
        let width = word.chars().count();
        if at > 0 && column + 1 + width > WIDTH {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if at > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out.push('\n');
}
