//! Listeners of one port are isolated from each other: a request is for the one with the most specific host that
//! covers its own, and only the routes of that one are tried ("HTTP listener isolation" of the Gateway API).
//!
//! Weir tries routes by host, so isolation needs two things: a route does not serve hosts of a more specific listener,
//! and a listener answers 404 itself where none of its own routes matches.

use model::HostPattern;

/// Returns whether requests for `host`, at a listener for `own`, are those of a more specific listener. `others`: the
/// hosts of all listeners of the port.
pub(super) fn is_of_another<'a>(
    host: Option<&HostPattern>,
    own: Option<&HostPattern>,
    mut others: impl Iterator<Item = Option<&'a HostPattern>>,
) -> bool {
    // Those of the listener itself cover the host, too, but are not more specific.
    others.any(|other| {
        let Some(other) = other else { return false };
        let is_more_specific = own.is_none_or(|own| own != other && own.covers_all_of(other));
        is_more_specific && host.is_some_and(|host| other.covers_all_of(host))
    })
}

/// Returns whether a listener needs a rule for requests that none of its routes matches: there is a less specific
/// listener, whose routes would be tried next.
pub(super) fn needs_end<'a>(
    own: Option<&HostPattern>,
    mut others: impl Iterator<Item = Option<&'a HostPattern>>,
) -> bool {
    own.is_some_and(|own| {
        others.any(|other| other.is_none_or(|other| other != own && other.covers_all_of(own)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::host;

    fn pattern(text: &str) -> Option<HostPattern> {
        (text != "*").then(|| host(text).unwrap())
    }

    #[test]
    fn a_route_leaves_hosts_to_more_specific_listeners() {
        for (listeners, own, host, expected) in [
            ("* a.example", "*", "*", false),
            ("* a.example", "*", "a.example", true),
            ("* a.example", "*", "b.example", false),
            ("* *.example", "*", "x.a.example", true),
            ("* *.example", "*", "*.a.example", true),
            ("* *.a.example", "*", "*.example", false),
            ("* a.example", "a.example", "a.example", false),
            ("*.example *.a.example", "*.example", "x.a.example", true),
            ("*.example *.a.example", "*.a.example", "x.a.example", false),
        ] {
            let others: Vec<_> = listeners.split(' ').map(pattern).collect();
            let found = is_of_another(
                pattern(host).as_ref(),
                pattern(own).as_ref(),
                others.iter().map(Option::as_ref),
            );
            assert_eq!(found, expected, "{host} at {own} of {listeners}");
        }
    }

    #[test]
    fn a_listener_ends_where_a_wider_one_would_go_on() {
        for (listeners, own, expected) in [
            ("*", "*", false),
            ("* a.example", "*", false),
            ("* a.example", "a.example", true),
            ("a.example b.example", "a.example", false),
            ("*.example a.example", "a.example", true),
            ("*.example *.a.example", "*.a.example", true),
            ("*.example *.a.example", "*.example", false),
        ] {
            let others: Vec<_> = listeners.split(' ').map(pattern).collect();
            let found = needs_end(pattern(own).as_ref(), others.iter().map(Option::as_ref));
            assert_eq!(found, expected, "{own} of {listeners}");
        }
    }
}
