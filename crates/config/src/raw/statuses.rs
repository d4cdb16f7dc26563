//! Reads a set of statuses: `200`, `"5xx"`, `"200-399"`, or a list of these.

use model::StatusSet;
use toml::Spanned;
use toml::de::DeValue;

use super::numbers::integer;
use super::table::Table;
use crate::diagnostic::{At, Diagnostic, Problems, Wrong};
use crate::units;

/// The statuses of errors (RFC 9110 sections 15.5 and 15.6).
const ERRORS: (u16, u16) = (400, 599);

/// As [`read`], but only of errors: others are reported as `title`.
pub(super) fn read_errors(
    table: &mut Table<'_>,
    key: &'static str,
    title: &str,
) -> Option<At<StatusSet>> {
    let set = read(table, key)?;
    let (low, high) = ERRORS;
    if !StatusSet(vec![ERRORS]).covers(&set.value) {
        let what = format!("errors are {low} to {high}");
        table.problems.report(Diagnostic::error(title, set.span.clone(), what));
    }
    Some(set)
}

/// Returns the set, without the members that could not be read. `None`: the key is absent.
pub(super) fn read(table: &mut Table<'_>, key: &'static str) -> Option<At<StatusSet>> {
    let value = table.value(key)?;
    let problems = table.problems;
    let ranges: StatusSet = match value.get_ref() {
        DeValue::Array(items) => {
            items.iter().filter_map(|item| range(key, item, problems)).collect()
        }
        _ => range(key, value, problems).into_iter().collect(),
    };
    Some(At { value: ranges, span: value.span() })
}

fn range(key: &str, value: &Spanned<DeValue<'_>>, problems: &Problems) -> Option<(u16, u16)> {
    let read =
        match value.get_ref() {
            DeValue::String(text) => units::status_range(text),
            other => match integer(other) {
                Some(status) => units::status_range(&status.to_string()),
                None => Err(Wrong::new("not a status")
                    .help("write 200, [200, 204], \"2xx\" or \"200-399\"")),
            },
        };
    let title = || format!("`{key}` must be a status or a range of them");
    read.map_err(|wrong| problems.report(wrong.at(title(), value.span()))).ok()
}
