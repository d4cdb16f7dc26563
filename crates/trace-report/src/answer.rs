//! The answer of a report in one sentence: the worst finding, or that there is none.

use diagnose::finding::{Report, Severity};
use diagnose::words::{plural, thousands};
use page::{Answer, Tone};
use trace::analysis::Flags;
use trace::summary::Story;

use crate::reading::Reading;
use crate::tables::ending;
use crate::text;

/// How a finding is shown.
pub(crate) fn tone(severity: Severity) -> Tone {
    match severity {
        Severity::Critical => Tone::Bad,
        Severity::Warning => Tone::Warn,
        Severity::Advice | Severity::Note => Tone::Plain,
    }
}

/// The answer of a whole capture.
pub(crate) fn of_capture(reading: &Reading, report: &Report) -> Answer {
    let mut details: Vec<String> = text::head(reading).lines().map(str::to_owned).collect();
    let Some(worst) = report.findings.first() else {
        let is_known = report.could_not_check.is_empty() && reading.trace.totals().segments > 0;
        let tone = if is_known { Tone::Good } else { Tone::Plain };
        return Answer { tone, headline: headline_without_findings(reading, report), details };
    };
    match report.findings.len() as u64 - 1 {
        0 => {}
        more => details.insert(0, format!("And {} below.", plural(more, "further finding"))),
    }
    let headline = worst.what.trim_end_matches('.').to_owned();
    Answer { tone: tone(worst.severity), headline, details }
}

/// What a capture without findings is like.
pub(crate) fn headline_without_findings(reading: &Reading, report: &Report) -> String {
    let totals = reading.trace.totals();
    if totals.segments == 0 {
        return "No TCP segments".to_owned();
    }
    let again = match totals.of(Flags::RETRANSMISSION) {
        0 => "none of them".to_owned(),
        count => thousands(count),
    };
    let unchecked = match report.could_not_check.len() as u64 {
        0 => String::new(),
        count => format!("; {} could not be checked", plural(count, "thing")),
    };
    format!(
        "No findings: {} on {}, {again} sent again{unchecked}",
        plural(totals.segments, "segment"),
        plural(reading.trace.stories().len() as u64, "connection")
    )
}

/// The answer of one connection.
pub(crate) fn of_connection(reading: &Reading, stream: u32, story: &Story) -> Answer {
    let sum = |flag| story.directions.iter().map(|one| one.counts.of(flag)).sum::<u64>();
    let segments = story.directions.iter().map(|one| one.counts.segments).sum();
    let headline = format!(
        "Stream {stream}: {}, {} sent again, {} out of order, {}; {}",
        plural(segments, "segment"),
        thousands(sum(Flags::RETRANSMISSION)),
        thousands(sum(Flags::OUT_OF_ORDER)),
        plural(sum(Flags::ZERO_WINDOW), "zero window"),
        ending(story)
    );
    let ends = story.directions.iter().enumerate();
    let ends = ends.map(|(end, direction)| text::about(story, end, direction));
    let of_capture = text::head(reading);
    let details = std::iter::once(text::lasted(story)).chain(ends);
    let details = details.chain(of_capture.lines().map(str::to_owned)).collect();
    Answer { headline, details, ..Answer::default() }
}
