//! Reads `error_page` of a listener, a route or a service.

use model::{Cause, ErrorSet};

use super::table::{Table, is_empty_list};
use super::{RawBody, RawErrorPage, content, statuses};
use crate::diagnostic::{At, Diagnostic, Span, Wrong, nearest, quote};

pub(super) fn read(table: &mut Table<'_>) -> Vec<RawErrorPage> {
    let mut pages: Vec<(RawErrorPage, Span)> = Vec::new();
    for below in table.tables("error_page") {
        let (problems, span) = (below.problems, below.span.clone());
        let Some(page) = page(below) else { continue };
        let hides = |(earlier, _): &&(RawErrorPage, Span)| {
            earlier.content.media_type == page.content.media_type
                && earlier.errors.covers(&page.errors)
        };
        if let Some((_, earlier)) = pages.iter().find(hides) {
            problems.report(
                Diagnostic::warning("an error page that is never used", span.clone(), "this one")
                    .other(earlier.clone(), "for all of its errors, this one comes first")
                    .help("write the entries for fewer errors before those for more"),
            );
        }
        pages.push((page, span));
    }
    pages.into_iter().map(|(page, _)| page).collect()
}

/// Returns `None` after a mistake, which is reported.
fn page(mut table: Table<'_>) -> Option<RawErrorPage> {
    let found_before = table.problems.count();
    let strange = table.strange;
    let title = "an error page for a response that is no error";
    let statuses = statuses::read_errors(&mut table, "status", title);
    let causes = table.texts("cause", cause);
    let content = content::read(&mut table);
    if statuses.is_none() && causes.is_none() {
        let title = "an error page without `status` or `cause`";
        let help = "write status = [\"5xx\"], or cause = [\"destination_unavailable\"]; `weir explain` lists the causes";
        let diagnostic =
            Diagnostic::error(title, table.span.clone(), "for which errors?").help(help);
        if !["status", "cause"].iter().any(|key| table.means(key)) {
            table.problems.report_absence(diagnostic);
        }
    }
    for key in ["status", "cause"] {
        if is_empty_list(table.peek(key)) {
            let title = "an error page for no error at all";
            let diagnostic = Diagnostic::error(title, table.span_of(key), "empty");
            let help = format!("leave `{key}` out to mean every {key}");
            table.problems.report(diagnostic.help(help));
        }
    }
    if matches!(content.body, RawBody::None)
        && !["body", "file"].iter().any(|key| table.has_or_means(key))
    {
        let title = "an error page without content";
        let diagnostic = Diagnostic::error(title, table.span.clone(), "what does it say?");
        table.problems.report_absence(diagnostic.help("write file = \"…\" or body = \"…\""));
    }
    let certain = !strange && table.problems.count() == found_before;
    table.finish();
    let mut causes: Vec<_> = causes.into_iter().flatten().map(|at: At<Cause>| at.value).collect();
    causes.sort_unstable_by_key(|cause| cause.name());
    causes.dedup();
    let errors = ErrorSet { statuses: statuses.map(|at| at.value), causes };
    certain.then_some(RawErrorPage { errors, content })
}

/// Parses the name of a cause that Weir answers with an error.
fn cause(name: &str) -> Result<Cause, Wrong> {
    let answered = || Cause::ALL.iter().filter(|cause| cause.status() > 0).map(|c| c.name());
    match Cause::from_name(name) {
        Some(cause) if cause.status() > 0 => Ok(cause),
        Some(_) => Err(Wrong::new("Weir sends no error response for this cause")),
        None => {
            let wrong = Wrong::new("there is no such cause");
            Err(match nearest(name, answered()) {
                Some(near) => wrong.help(format!("did you mean {}?", quote(near))),
                None => wrong.help("docs/causes.md and `weir explain` list the causes"),
            })
        }
    }
}
