//! Content negotiation: which body format the client prefers (RFC 9110 section 12.5.1).

use std::cmp::Reverse;

use wire::http1::{Known, RequestHead};

/// Maximum number of ranges of an Accept field that are examined; the rest is ignored.
const RANGES_MAX: usize = 32;

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

    /// Returns the type and subtype.
    fn media_type(self) -> (&'static str, &'static str) {
        match self {
            Form::Text => ("text", "plain"),
            Form::Html => ("text", "html"),
            Form::Json => ("application", "json"),
            Form::Problem => ("application", "problem+json"),
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
    if request.known(Known::Accept).is_none() {
        return Form::Text;
    }
    let fields = request.fields().filter(|field| field.known == Known::Accept);
    preferred(fields.map(|field| field.value))
}

/// How the Accept fields rate one format.
#[derive(Clone, Copy)]
struct Opinion {
    /// Quality in thousandths; 0 means not acceptable.
    weight: u16,
    /// Specificity of the matching range: 3 names the type, 2 is `type/*`, 1 is `*/*`, 0 means no
    /// match.
    precision: u8,
    /// Position of that range.
    place: usize,
}

/// Among formats of the same quality, prefers the one named more specifically, then the one named
/// first: JSON clients send `application/json, text/plain, */*`.
fn preferred<'a>(values: impl Iterator<Item = &'a [u8]>) -> Form {
    let mut opinions = Form::ALL.map(|_| Opinion { weight: 0, precision: 0, place: 0 });
    // A comma in a quoted parameter splits in the wrong place; at worst another format is chosen.
    let ranges = values.flat_map(|value| value.split(|&byte| byte == b','));
    for (place, range) in ranges.take(RANGES_MAX).enumerate() {
        let Some((range, weight)) = weighted(range) else {
            continue;
        };
        for (form, opinion) in Form::ALL.into_iter().zip(&mut opinions) {
            let precision = precision(range, form);
            if precision > opinion.precision {
                *opinion = Opinion { weight, precision, place };
            }
        }
    }
    Form::ALL
        .into_iter()
        .zip(opinions)
        .filter(|(_, opinion)| opinion.weight > 0)
        .min_by_key(|(_, o)| (Reverse(o.weight), Reverse(o.precision), o.place))
        .map_or(Form::Text, |(form, _)| form)
}

/// Splits a range into media range and quality. Returns `None` if the quality is malformed.
fn weighted(range: &[u8]) -> Option<(&[u8], u16)> {
    let mut parts = range.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let media = parts.next().unwrap_or_default();
    for parameter in parts {
        if let [b'q' | b'Q', b'=', value @ ..] = parameter {
            return Some((media, thousandths(value)?));
        }
    }
    Some((media, 1000))
}

/// Parses a qvalue: 0 to 1 with up to three decimals (RFC 9110 section 12.4.2).
fn thousandths(value: &[u8]) -> Option<u16> {
    let (whole, decimals) = match value {
        [whole] | [whole, b'.'] => (whole, &[][..]),
        [whole, b'.', decimals @ ..] if decimals.len() <= 3 => (whole, decimals),
        _ => return None,
    };
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u16::from(byte - b'0'));
    let mut sum = digit(whole)? * 1000;
    for (decimal, scale) in decimals.iter().zip([100, 10, 1]) {
        sum += digit(decimal)? * scale;
    }
    (sum <= 1000).then_some(sum)
}

/// Returns the specificity; see [`Opinion::precision`].
fn precision(range: &[u8], form: Form) -> u8 {
    let mut halves = range.splitn(2, |&byte| byte == b'/');
    let (Some(kind), Some(subtype)) = (halves.next(), halves.next()) else {
        return 0;
    };
    let (own_kind, own_subtype) = form.media_type();
    match (kind, subtype) {
        (b"*", b"*") => 1,
        (_, _) if !kind.eq_ignore_ascii_case(own_kind.as_bytes()) => 0,
        (_, b"*") => 2,
        (_, _) if subtype.eq_ignore_ascii_case(own_subtype.as_bytes()) => 3,
        (_, _) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &str) -> Form {
        preferred(std::iter::once(value.as_bytes()))
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
            assert_eq!(of(value), form, "{value}");
        }
    }

    #[test]
    fn weights_go_before_precision_and_precision_before_place() {
        for (value, form) in [
            ("text/html;q=0.5, application/json;q=0.6", Form::Json),
            ("application/json;q=0.6, text/html;q=0.601", Form::Html),
            ("text/*, text/html", Form::Html),
            ("text/html;q=0, text/*", Form::Text),
            ("text/plain;q=0, text/*", Form::Html),
            ("text/*;q=0, */*", Form::Json),
            ("*/*, text/plain;q=0.1", Form::Html),
            ("application/*", Form::Json),
            ("application/*, application/json;q=0.2", Form::Problem),
            ("TEXT/HTML ; Q=1.000 , application/json;q=0.9", Form::Html),
            ("text/html;level=1;q=0.4, application/json;q=0.5", Form::Json),
        ] {
            assert_eq!(of(value), form, "{value}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_not_asked_for() {
        for value in [
            "",
            ",,;,",
            "text",
            "/",
            "*/html",
            "text/html;q=2",
            "text/html;q=0.1234",
            "text/html;q=",
            "text/html;q=-1",
            "text/html;q=1.001",
            "text/html;q=a",
            "text/html;q=0",
            "text/html/x",
            "image/png",
            "\u{ff}/\u{ff}",
        ] {
            assert_eq!(of(value), Form::Text, "{value}");
        }
        assert_eq!(of("text/html;q=2, application/json;q=0.1"), Form::Json);
    }

    #[test]
    fn several_fields_are_one_list_and_a_long_one_is_cut() {
        let fields = ["image/png", "application/json"];
        assert_eq!(preferred(fields.iter().map(|f| f.as_bytes())), Form::Json);
        let long = "image/png,".repeat(RANGES_MAX - 1);
        assert_eq!(of(&format!("{long}text/html")), Form::Html);
        assert_eq!(of(&format!("{long}image/png,text/html")), Form::Text);
    }
}
