//! Reads a set of statuses: `200`, `"5xx"`, `"200-399"`, or a list of these.

use model::StatusSet;
use toml::Spanned;
use toml::de::DeValue;

use super::numbers::integer;
use super::table::Table;
use crate::diagnostic::{At, Problems, Wrong};
use crate::units;

/// Returns the set, without the members that could not be read. `None`: the key is absent.
pub(super) fn read(table: &mut Table<'_>, key: &'static str) -> Option<At<StatusSet>> {
    let value = table.value(key)?;
    let problems = table.problems;
    let ranges = match value.get_ref() {
        DeValue::Array(items) => {
            items.iter().filter_map(|item| range(key, item, problems)).collect()
        }
        _ => range(key, value, problems).into_iter().collect(),
    };
    Some(At { value: StatusSet(merged(ranges)), span: value.span() })
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

/// Sorts and merges ranges, so that equal sets compare as equal.
fn merged(mut ranges: Vec<(u16, u16)>) -> Vec<(u16, u16)> {
    ranges.sort_unstable();
    let mut merged: Vec<(u16, u16)> = Vec::new();
    for (low, high) in ranges {
        match merged.last_mut() {
            Some(last) if low <= last.1 + 1 => last.1 = last.1.max(high),
            _ => merged.push((low, high)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sets_of_statuses_are_equal_however_written() {
        assert_eq!(merged(vec![(204, 204), (200, 202), (203, 203)]), [(200, 204)]);
        assert_eq!(merged(vec![(200, 399), (204, 204)]), [(200, 399)]);
        assert_eq!(merged(vec![(404, 404), (200, 200)]), [(200, 200), (404, 404)]);
    }
}
