//! What is wrong, what is not known, and what else the doctor found.

use super::text;
use crate::render::traffic::elapsed;
use crate::top::judgement::{Gap, Judgement};
use crate::top::picture::Picture;
use crate::top::table::{Cell, Column, Id, Listing, Rank, Row, Width};
use crate::top::troubles::{Trouble, lasts_s};

/// Troubles first, then what is not known, then findings that need no haste, then those that have passed.
pub(super) fn listing(picture: &Picture, judgement: &Judgement) -> Listing {
    let columns = vec![
        Column::text("SEVERITY", Width::Fixed(8)),
        Column::number("FOR", 7),
        Column::text("FOUND BY", Width::Fixed(24)).from(110),
        Column::text("WHAT", Width::Prose(40, 300)),
    ];
    let mut rows: Vec<Row> = judgement.troubles.iter().map(of_trouble).collect();
    rows.extend(judgement.gaps.iter().map(of_gap));
    for seen in picture.findings().filter(|seen| !(seen.is_present && seen.finding.has_weight())) {
        let finding = &seen.finding;
        let state = if seen.is_present { finding.severity.as_str() } else { "passed" };
        let lasts = if seen.is_present { elapsed(lasts_s(seen)) } else { String::new() };
        let (rule, what) = (finding.rule.clone(), finding.what.clone());
        let cells = vec![text(state), text(lasts), text(rule), text(what)];
        rows.push(Row { id: Id::of(finding), is_trouble: false, cells, rank: Rank::default() });
    }
    // What is not known is a row, so that nothing hides behind an empty table.
    Listing::new(columns, rows, "No problem was found.")
}

fn of_trouble(trouble: &Trouble) -> Row {
    let found_by = match &trouble.id {
        Id::Finding { rule, .. } => rule.clone(),
        _ => "state of the service".to_owned(),
    };
    let severity = Cell::Trouble(trouble.severity.as_str().to_owned());
    let lasts = trouble.lasts_s.map(elapsed).unwrap_or_default();
    let cells = vec![severity, text(lasts), text(found_by), text(trouble.text.clone())];
    Row { id: trouble.id.clone(), is_trouble: true, cells, rank: Rank::default() }
}

fn of_gap(gap: &Gap) -> Row {
    let Gap { what, why, hides_trouble } = gap;
    let unknown = "unknown".to_owned();
    let severity = if *hides_trouble { Cell::Trouble(unknown) } else { Cell::Text(unknown) };
    let cells = vec![severity, text(""), text(""), text(format!("{what}: {why}"))];
    let id = Id::Gap(what.clone());
    Row { id, is_trouble: *hides_trouble, cells, rank: Rank::default() }
}
