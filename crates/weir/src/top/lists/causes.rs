//! How requests ended, by cause.

use admin_api::causes::Cause;
use diagnose::words::thousands;

use super::{empty, short, text};
use crate::render::traffic::share;
use crate::top::endings::Endings;
use crate::top::picture::Picture;
use crate::top::table::{Cell, Column, Id, Listing, Rank, Row, Width};

/// The causes that have occurred: failures first, then by count.
pub(super) fn listing(picture: &Picture) -> Listing {
    let columns = vec![
        Column::text("CAUSE", Width::Grow(24, 40)),
        Column::text("FAULT", Width::Fixed(13)),
        Column::number("LAST 60 S", 9),
        Column::number("SINCE START", 11),
        Column::number("SHARE", 8),
        Column::text("WHAT HAPPENED", Width::Prose(20, 200)).from(100),
    ];
    let recent = picture.endings.known().map(Endings::of);
    let now = |cause: &Cause| recent.as_ref()?.causes.get(&*cause.name).copied();
    // In the order of what happens now; what happened long ago keeps its place.
    let blames = |cause: &Cause| !matches!(cause.fault.as_str(), "none" | "client");
    let all = picture.causes.known();
    let causes = all.into_iter().flat_map(|causes| &causes.causes);
    let mut occurred: Vec<&Cause> = causes.filter(|cause| cause.count > 0).collect();
    occurred.sort_by_key(|cause| {
        (
            !blames(cause),
            std::cmp::Reverse(now(cause).unwrap_or(0) > 0),
            std::cmp::Reverse(cause.count),
        )
    });
    let rows = occurred.into_iter().map(|cause| {
        let is_trouble = blames(cause) && now(cause).unwrap_or(0) > 0;
        let name = cause.name.clone();
        let cells = vec![
            if is_trouble { Cell::Trouble(name.clone()) } else { text(name.clone()) },
            text(cause.fault.as_str()),
            text(recent.as_ref().map_or_else(String::new, |_| short(now(cause).unwrap_or(0)))),
            text(thousands(cause.count)),
            text(share(cause.count, all.map_or(0, |all| all.requests))),
            text(cause.summary.clone()),
        ];
        Row { id: Id::Cause(name), is_trouble, cells, rank: Rank::default() }
    });
    let errors = recent.as_ref().filter(|recent| recent.server_errors > 0).map(server_errors);
    let rows = errors.into_iter().chain(rows).collect();
    Listing::new(columns, rows, empty(&picture.causes, "No request has ended yet."))
}

/// The row about responses that failed with the cause `completed`.
fn server_errors(recent: &Endings<'_>) -> Row {
    let cells = vec![
        Cell::Trouble(recent.server_errors_name().to_owned()),
        text("server"),
        text(short(recent.server_errors)),
        text(""),
        text(""),
        text("The server answered with a 5xx status. Counted as completed, and as failed."),
    ];
    Row { id: Id::ServerErrors, is_trouble: true, cells, rank: Rank::default() }
}
