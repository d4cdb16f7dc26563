//! Describes what a reload changed and preserved: a receipt for programs, one line for the log.

use std::fmt::Write as _;

use admin_api::receipt;
use config::{Changes, Diff};

use crate::preserved::Preserved;

/// Maximum number of names of one kind in a log line; the receipt lists all.
const NAMES_SHOWN_MAX: usize = 8;

/// Returns the changes, for the receipt.
pub(super) fn changes(diff: &Diff) -> receipt::Changes {
    receipt::Changes {
        settings: diff.settings.clone(),
        listeners: of_kind(&diff.listeners),
        routes: of_kind(&diff.routes),
        services: of_kind(&diff.services),
        servers: of_kind(&diff.servers),
    }
}

fn of_kind(changes: &Changes) -> receipt::KindChanges {
    let changed = changes
        .changed
        .iter()
        .map(|changed| receipt::Changed { name: changed.name.clone(), what: changed.what.clone() });
    receipt::KindChanges {
        added: changes.added.clone(),
        removed: changes.removed.clone(),
        changed: changed.collect(),
        unchanged: changes.unchanged,
    }
}

/// Returns the changes in one line, for the log.
pub(super) fn line(diff: &Diff) -> String {
    let mut parts = Vec::new();
    if !diff.settings.is_empty() {
        parts.push(some(&diff.settings));
    }
    for (kind, changes) in [
        ("listener", &diff.listeners),
        ("route", &diff.routes),
        ("service", &diff.services),
        ("server", &diff.servers),
    ] {
        let changed: Vec<String> = changes
            .changed
            .iter()
            .map(|changed| format!("{} {}", changed.name, some(&changed.what)))
            .collect();
        for (names, what) in
            [(&changes.added, "added"), (&changes.removed, "removed"), (&changed, "changed")]
        {
            match names.len() {
                0 => {}
                1 => parts.push(format!("1 {kind} {what} ({})", names[0])),
                n => parts.push(format!("{n} {kind}s {what} ({})", some(names))),
            }
        }
    }
    match parts.len() {
        // Such as another order of the same servers.
        0 => "no named setting changed".to_owned(),
        _ => parts.join("; "),
    }
}

/// Returns the first few names and the number of the others.
fn some(names: &[String]) -> String {
    let mut text = names.iter().take(NAMES_SHOWN_MAX).cloned().collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = names.len().checked_sub(NAMES_SHOWN_MAX) {
        // Writing into a String cannot fail.
        let _ = write!(text, " and {more} more");
    }
    text
}

/// Returns what was preserved in one line, for the log.
pub(super) fn preserved(preserved: &Preserved) -> String {
    let Preserved { connections, in_flight, waiting, servers, verdicts, ejected, set_by_hand } =
        preserved;
    let mut line = format!(
        "{connections} connections, {in_flight} requests in flight, {verdicts} verdicts on \
         {servers} servers"
    );
    for (count, what) in [
        (*waiting, "requests that wait"),
        (*ejected as u64, "ejections"),
        (*set_by_hand as u64, "servers set by an operator"),
    ] {
        if count > 0 {
            let _ = write!(line, ", {count} {what}");
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use config::Changed;

    use super::*;

    fn names(count: usize) -> Vec<String> {
        (1..=count).map(|n| format!("s{n}")).collect()
    }

    #[test]
    fn a_line_tells_what_changed_and_is_bounded() {
        let mut diff =
            Diff { settings: vec!["drain_max: 30s → 1m".to_owned()], ..Diff::default() };
        diff.listeners.added = names(1);
        diff.servers.removed = names(1000);
        diff.services.changed = vec![Changed {
            name: "app".to_owned(),
            what: vec!["in_flight_max: 4 → 8".to_owned()],
        }];
        assert_eq!(
            line(&diff),
            "drain_max: 30s → 1m; 1 listener added (s1); 1 service changed (app in_flight_max: 4 → \
             8); 1000 servers removed (s1, s2, s3, s4, s5, s6, s7, s8 and 992 more)"
        );
        assert_eq!(line(&Diff::default()), "no named setting changed");
    }

    #[test]
    fn what_is_nought_is_told_only_where_it_matters() {
        let all = Preserved { connections: 200, servers: 3, ejected: 1, ..Preserved::default() };
        assert_eq!(
            preserved(&all),
            "200 connections, 0 requests in flight, 0 verdicts on 3 servers, 1 ejections"
        );
    }
}
