//! The page about a cause: what it means, what to do, and in which services it occurred.

use diagnose::words::{list, thousands};

use super::sheet::Sheet;
use crate::top::picture::Picture;
use crate::top::tone::{Line, Tone};

/// Services that are named.
const SERVICES_MAX: usize = 6;

pub(super) fn page(picture: &Picture, name: &str, width: u16) -> Vec<Line> {
    let mut sheet = Sheet::new(width);
    if let Some(why) = picture.causes.missing() {
        sheet.heading(&format!("The causes are not known: {why}."));
        return sheet.lines();
    }
    let causes = picture.causes.known().into_iter().flat_map(|causes| &causes.causes);
    let Some(cause) = causes.into_iter().find(|cause| cause.name == name) else {
        sheet.heading(&format!("The balancer has no cause {name}."));
        return sheet.lines();
    };
    let status = cause.status.map(|status| format!(", status {status}")).unwrap_or_default();
    sheet.heading(&format!("{name}: fault {}{status}", cause.fault.as_str()));
    let mut services: Vec<(&String, &u64)> = cause.services.iter().collect();
    services.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let mut named: Vec<String> = services
        .iter()
        .map(|(service, count)| format!("{service} {}", thousands(**count)))
        .collect();
    let without =
        cause.services.values().fold(cause.count, |left, count| left.saturating_sub(*count));
    if without > 0 {
        named.push(format!("without a service {}", thousands(without)));
    }
    sheet.labelled("Since the start", Tone::Plain, &list(&named, SERVICES_MAX));
    sheet.labelled("What happened", Tone::Plain, &cause.what);
    sheet.labelled("Why, usually", Tone::Plain, &cause.why);
    sheet.labelled("What to do", Tone::Plain, &cause.remedy);
    sheet.lines()
}

/// The page about responses with a 5xx, which have no cause of failure.
pub(super) fn server_errors(width: u16) -> Vec<Line> {
    let mut sheet = Sheet::new(width);
    sheet.heading("Servers answered with a 5xx status.");
    sheet.labelled(
        "What happened",
        Tone::Plain,
        "Weir forwarded the responses. Their cause is `completed`, since nothing prevented the exchange, \
         but they count as failed. This count is the failed requests of the last minute less those with \
         another cause.",
    );
    sheet.labelled(
        "What to do",
        Tone::Plain,
        "The column FAILED of services and servers shows where they come from, the access log which \
         requests they are.",
    );
    sheet.lines()
}
