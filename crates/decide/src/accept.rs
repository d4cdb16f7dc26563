//! Content negotiation by `Accept`: which of several media types a client prefers (RFC 9110
//! section 12.5.1).

use std::cmp::Reverse;

use wire::http1::{Known, RequestHead};

/// Maximum number of ranges of an Accept field that are examined; the rest is ignored.
const RANGES_MAX: usize = 32;

/// Returns the index of the media type among `offers` that `request` prefers. `None`: it states no
/// preference, or none is acceptable. Offers have no parameters, and ranges are compared without
/// theirs.
pub fn preferred<'o>(
    request: &RequestHead,
    offers: impl IntoIterator<Item = &'o str>,
) -> Option<usize> {
    request.known(Known::Accept)?;
    let fields = request.fields().filter(|field| field.known == Known::Accept);
    best(fields.map(|field| field.value), offers)
}

/// How the Accept fields rate one media type.
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

/// Among offers of the same quality, prefers the one named more specifically, then the one named
/// first: JSON clients send `application/json, text/plain, */*`. Then the first offer.
fn best<'a, 'o>(
    values: impl Iterator<Item = &'a [u8]> + Clone,
    offers: impl IntoIterator<Item = &'o str>,
) -> Option<usize> {
    let opinions = offers.into_iter().map(|offer| opinion(values.clone(), offer)).enumerate();
    opinions
        .filter(|(_, opinion)| opinion.weight > 0)
        .min_by_key(|(_, o)| (Reverse(o.weight), Reverse(o.precision), o.place))
        .map(|(index, _)| index)
}

/// The most specific range counts, of equal ones the first.
fn opinion<'a>(values: impl Iterator<Item = &'a [u8]>, offer: &str) -> Opinion {
    let mut opinion = Opinion { weight: 0, precision: 0, place: 0 };
    // A comma in a quoted parameter splits in the wrong place; at worst another type is chosen.
    let ranges = values.flat_map(|value| value.split(|&byte| byte == b','));
    for (place, range) in ranges.take(RANGES_MAX).enumerate() {
        let mut parts = range.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let precision = precision(parts.next().unwrap_or_default(), offer);
        // A range with a malformed weight is ignored.
        if precision > opinion.precision
            && let Some(weight) = parts.find_map(weight_value).map_or(Some(1000), weight)
        {
            opinion = Opinion { weight, precision, place };
        }
    }
    opinion
}

/// Returns the value of a `q` parameter.
pub(crate) fn weight_value(parameter: &[u8]) -> Option<&[u8]> {
    parameter.strip_prefix(b"q=").or_else(|| parameter.strip_prefix(b"Q="))
}

/// Parses a weight into thousandths (RFC 9110 section 12.4.2).
pub(crate) fn weight(value: &[u8]) -> Option<u16> {
    let (whole, fraction) = match value {
        [whole] => (whole, &[][..]),
        [whole, b'.', fraction @ ..] if fraction.len() <= 3 => (whole, fraction),
        _ => return None,
    };
    if !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |at: usize| fraction.get(at).map_or(0, |b| u16::from(b - b'0'));
    let thousandths = digit(0) * 100 + digit(1) * 10 + digit(2);
    match whole {
        b'0' => Some(thousandths),
        b'1' => (thousandths == 0).then_some(1000),
        _ => None,
    }
}

/// Returns the specificity; see [`Opinion::precision`].
fn precision(range: &[u8], offer: &str) -> u8 {
    let mut halves = range.splitn(2, |&byte| byte == b'/');
    let (Some(kind), Some(subtype)) = (halves.next(), halves.next()) else {
        return 0;
    };
    let (own_kind, own_subtype) = offer.split_once('/').unwrap_or((offer, ""));
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

    const TEXT: Option<&str> = Some("text/plain");
    const HTML: Option<&str> = Some("text/html");
    const JSON: Option<&str> = Some("application/json");
    const PROBLEM: Option<&str> = Some("application/problem+json");

    fn of_several(values: &[&str]) -> Option<&'static str> {
        let offers = [TEXT, HTML, JSON, PROBLEM].map(Option::unwrap);
        best(values.iter().map(|value| value.as_bytes()), offers).map(|index| offers[index])
    }

    fn of(value: &str) -> Option<&'static str> {
        of_several(&[value])
    }

    #[test]
    fn weights_go_before_precision_and_precision_before_place() {
        for (value, form) in [
            ("text/html;q=0.5, application/json;q=0.6", JSON),
            ("application/json;q=0.6, text/html;q=0.601", HTML),
            ("text/*, text/html", HTML),
            ("text/html;q=0, text/*", TEXT),
            ("text/plain;q=0, text/*", HTML),
            ("text/*;q=0, */*", JSON),
            ("*/*, text/plain;q=0.1", HTML),
            ("application/*", JSON),
            ("application/*, application/json;q=0.2", PROBLEM),
            ("TEXT/HTML ; Q=1.000 , application/json;q=0.9", HTML),
            ("text/html;level=1;q=0.4, application/json;q=0.5", JSON),
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
            assert_eq!(of(value), None, "{value}");
        }
        assert_eq!(of("text/html;q=2, application/json;q=0.1"), JSON);
    }

    #[test]
    fn several_fields_are_one_list_and_a_long_one_is_cut() {
        let fields = ["image/png", "application/json"];
        assert_eq!(of_several(&fields), JSON);
        let long = "image/png,".repeat(RANGES_MAX - 1);
        assert_eq!(of(&format!("{long}text/html")), HTML);
        assert_eq!(of(&format!("{long}image/png,text/html")), None);
    }
}
