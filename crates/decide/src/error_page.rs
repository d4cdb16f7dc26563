//! Which configured page replaces an answer that Weir generates for an error.

use model::{Cause, Content, ErrorPage};
use wire::http1::RequestHead;

use crate::accept;

/// A page that replaces an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen<'a> {
    /// Its content.
    pub content: &'a Content,
    /// Another client might get another page: adds `Vary: Accept` (RFC 9110 section 12.5.5).
    pub varies: bool,
}

/// Returns the page for an error from the first of `lists` that has one: the first of them, or, if
/// there are several with different media types, the one that the client prefers. `request` is
/// `None` if its head could not be parsed.
pub fn choose<'a>(
    lists: impl IntoIterator<Item = &'a [ErrorPage]>,
    (status, cause): (u16, Cause),
    request: Option<&RequestHead>,
) -> Option<Chosen<'a>> {
    lists.into_iter().find_map(|list| {
        let suitable = || list.iter().filter(|page| page.errors.contains(status, cause));
        let first = suitable().next()?;
        if suitable().all(|page| page.media_type() == first.media_type()) {
            return Some(Chosen { content: &first.content, varies: false });
        }
        let offers = suitable().map(ErrorPage::media_type);
        let index = request.and_then(|request| accept::preferred(request, offers));
        let page = index.and_then(|index| suitable().nth(index)).unwrap_or(first);
        Some(Chosen { content: &page.content, varies: true })
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::{ErrorSet, StatusSet};
    use wire::http1::{HeadLimits, Parsed, parse_request};

    use super::*;

    fn page(statuses: (u16, u16), media_type: &str, body: &str) -> ErrorPage {
        let content = Content {
            media_type: Some(media_type.to_owned()),
            fields: Vec::new(),
            body: Arc::from(body.as_bytes()),
        };
        let errors = ErrorSet { statuses: Some(StatusSet(vec![statuses])), causes: Vec::new() };
        ErrorPage { errors, content: Arc::new(content) }
    }

    fn request(accept: &str) -> RequestHead {
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{accept}\r\n\r\n");
        let limits = HeadLimits { head_max_bytes: 8192, target_max_bytes: 1024, fields_max: 64 };
        let mut head = RequestHead::default();
        let parsed = parse_request(text.as_bytes(), &limits, &mut head);
        assert!(matches!(parsed, Ok(Parsed::Complete { .. })), "{text}");
        head
    }

    /// Returns the body of the page, and whether it varies.
    fn chosen(
        lists: &[&[ErrorPage]],
        status: u16,
        request: Option<&RequestHead>,
    ) -> Option<(String, bool)> {
        let error = (status, Cause::DestinationUnavailable);
        let chosen = choose(lists.iter().copied(), error, request)?;
        Some((String::from_utf8_lossy(&chosen.content.body).into_owned(), chosen.varies))
    }

    #[test]
    fn the_first_list_with_a_page_for_the_error_has_it() {
        let route = [page((404, 404), "text/html", "route")];
        let listener =
            [page((500, 503), "text/html", "early"), page((400, 599), "text/html", "late")];
        let lists = [&route[..], &[], &listener];
        let get = |status| chosen(&lists, status, None).map(|(body, _)| body);
        assert_eq!(get(404).as_deref(), Some("route"));
        assert_eq!(get(503).as_deref(), Some("early"));
        assert_eq!(get(504).as_deref(), Some("late"));
        assert_eq!(chosen(&[&route, &[]], 503, None), None);
    }

    #[test]
    fn the_client_chooses_among_media_types_of_one_list() {
        let route = [
            page((503, 503), "text/html; charset=utf-8", "html"),
            page((500, 599), "application/json", "json"),
            page((500, 599), "text/html", "never"),
        ];
        let listener = [page((400, 599), "text/plain", "text")];
        let lists = [&route[..], &listener];
        for (accept, body) in [
            ("X-A: b", "html"),
            ("Accept: */*", "html"),
            ("Accept: application/json", "json"),
            ("Accept: text/html;q=0.5, application/json;q=0.6", "json"),
            ("Accept: text/html, */*;q=0.8", "html"),
            // Nothing else is acceptable in this list; that of the listener is not asked.
            ("Accept: text/plain", "html"),
            ("Accept: text/html;q=0, */*;q=0.1", "json"),
        ] {
            let found = chosen(&lists, 503, Some(&request(accept)));
            assert_eq!(found, Some((body.to_owned(), true)), "{accept}");
        }
        assert_eq!(chosen(&lists, 503, None), Some(("html".to_owned(), true)));
        assert_eq!(chosen(&lists, 404, None), Some(("text".to_owned(), false)));
        let plain = chosen(&lists, 404, Some(&request("Accept: text/html")));
        assert_eq!(plain, Some(("text".to_owned(), false)));
    }
}
