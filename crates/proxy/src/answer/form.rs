//! The formats in which Weir tells a client of an error.

use wire::http1::RequestHead;

/// A body format, in order of preference when the client has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Html,
    Json,
    /// Problem details (RFC 9457).
    Problem,
}

impl Form {
    const ALL: [Form; 4] = [Form::Text, Form::Html, Form::Json, Form::Problem];

    /// Returns the media type without parameters.
    fn media_type(self) -> &'static str {
        match self {
            Form::Text => "text/plain",
            Form::Html => "text/html",
            Form::Json => "application/json",
            Form::Problem => "application/problem+json",
        }
    }

    /// Returns the value of Content-Type.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Form::Text => "text/plain; charset=utf-8",
            Form::Html => "text/html; charset=utf-8",
            // JSON is UTF-8 and has no charset parameter (RFC 8259 section 11).
            Form::Json => "application/json",
            Form::Problem => "application/problem+json",
        }
    }
}

/// Returns the format that suits `request` best; plain text if none does or it states no
/// preference.
pub(super) fn form(request: &RequestHead) -> Form {
    let offers = Form::ALL.into_iter().map(Form::media_type);
    let best = decide::accept::preferred(request, offers);
    best.and_then(|index| Form::ALL.get(index)).copied().unwrap_or(Form::Text)
}

#[cfg(test)]
mod tests {
    use wire::http1::{HeadLimits, Parsed, parse_request};

    use super::*;

    fn of(accept: &str) -> Form {
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{accept}\r\n\r\n");
        let limits = HeadLimits { head_max_bytes: 8192, target_max_bytes: 1024, fields_max: 64 };
        let mut head = RequestHead::default();
        let parsed = parse_request(text.as_bytes(), &limits, &mut head);
        assert!(matches!(parsed, Ok(Parsed::Complete { .. })), "{text}");
        form(&head)
    }

    #[test]
    fn what_clients_send_gets_what_they_mean() {
        for (value, form) in [
            // curl, wget, Python's requests.
            ("*/*", Form::Text),
            // Firefox, Chrome.
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,\
                 image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7",
                Form::Html,
            ),
            // axios, Angular.
            ("application/json, text/plain, */*", Form::Json),
            ("application/json", Form::Json),
            ("application/problem+json, application/json;q=0.9", Form::Problem),
            ("application/json, application/problem+json", Form::Json),
            // Prometheus.
            (
                "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3",
                Form::Text,
            ),
            // An image tag.
            ("image/avif,image/webp,*/*;q=0.8", Form::Text),
            // lynx.
            ("text/html, text/plain, text/sgml, */*;q=0.01", Form::Html),
        ] {
            assert_eq!(of(&format!("Accept: {value}")), form, "{value}");
        }
    }

    #[test]
    fn without_a_preference_it_is_text() {
        assert_eq!(of("X-A: b"), Form::Text);
        assert_eq!(of("Accept: application/pdf"), Form::Text);
    }
}
