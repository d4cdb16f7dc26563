//! Decides whether a response is compressed on its way to the client, and by which coding.
//!
//! The rules are RFC 9110's: proactive negotiation by `Accept-Encoding` (section 12.5.3), `Vary` on
//! every variant (12.5.5), a weak entity tag once the bytes differ (8.8.3), and `no-transform` is
//! respected (7.7, RFC 9111 sections 5.2.1.6 and 5.2.2.6).

use crate::accept::{weight, weight_value};
use model::{Compression, ContentCoding};
use wire::http1::{Fields, Known, RequestHead, ResponseBody, ResponseHead, Version};

/// What compression does to a response. The default is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// The coding applied to the body, if there is one.
    pub coding: Option<ContentCoding>,
    /// Another client might get another variant: adds `Vary: Accept-Encoding`.
    pub varies: bool,
    /// Entity tags become weak.
    pub weakens: bool,
}

impl Effect {
    /// Returns the effect on a response that stays uncompressed although the client accepts a
    /// coding.
    #[must_use]
    pub fn without_coding(self) -> Effect {
        Effect { coding: None, weakens: false, ..self }
    }
}

/// Decides what `rules` do to a response.
///
/// A HEAD is treated as the GET would be, so that both heads agree, and so is a 304: what it says
/// about the representation holds for the variant that the client has stored. For a 304 without a
/// media type it is unknown whether the stored response was compressed; a weak tag is never wrong
/// then.
pub fn effect(rules: &Compression, request: &RequestHead, response: &ResponseHead) -> Effect {
    let status = response.status();
    let is_unchanged = status == 304;
    let has_content = status >= 200 && !matches!(status, 204 | 205 | 206 | 304);
    if !has_content && !is_unchanged || is_left_alone(rules, response) {
        return Effect::default();
    }
    let coding = match request.version() {
        // Without chunked coding the end of the body could not be recognised.
        Version::Http10 => None,
        Version::Http11 if asks_for_no_transform(request.fields()) => None,
        Version::Http11 => choose(&rules.codings, request.fields()),
    };
    let coding_of_body = coding.filter(|_| has_content);
    Effect { coding: coding_of_body, varies: true, weakens: coding.is_some() }
}

/// Returns whether this response is never compressed.
fn is_left_alone(rules: &Compression, response: &ResponseHead) -> bool {
    let is_unchanged = response.status() == 304;
    let covers = |media_type: &[u8]| {
        let end = media_type.iter().position(|&b| b == b';').unwrap_or(media_type.len());
        let bare = media_type[..end].trim_ascii();
        rules.types.iter().any(|range| range.covers(bare))
    };
    let is_covered = response.known(Known::ContentType).map_or(is_unchanged, covers);
    let is_short = !is_unchanged
        && matches!(response.body(false), ResponseBody::Length(n) if n < rules.length_min_bytes);
    !is_covered
        || is_short
        || asks_for_no_transform(response.fields())
        || is_coded(response)
        // Digests of these exact bytes, or of the representation with its codings (RFC 9530).
        || ["content-digest", "repr-digest", "digest", "content-md5"]
            .iter()
            .any(|name| response.field(name).is_some())
}

fn is_coded(response: &ResponseHead) -> bool {
    list(response.fields(), "content-encoding")
        .any(|coding| !coding.eq_ignore_ascii_case(b"identity"))
}

fn asks_for_no_transform(fields: Fields<'_>) -> bool {
    list(fields, "cache-control").any(|directive| directive.eq_ignore_ascii_case(b"no-transform"))
}

/// Returns the members of a list field, over all of its lines (RFC 9110 section 5.6.1).
fn list<'a>(fields: Fields<'a>, name: &'static str) -> impl Iterator<Item = &'a [u8]> {
    fields
        .filter(move |field| field.name.eq_ignore_ascii_case(name.as_bytes()))
        .flat_map(|field| field.value.split(|&b| b == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|member| !member.is_empty())
}

/// Returns the coding of `ours` with the highest weight, unless the client weighs `identity`
/// higher; the first of `ours` among equals.
fn choose(ours: &[ContentCoding], fields: Fields<'_>) -> Option<ContentCoding> {
    let mut weights = Weights::default();
    for member in list(fields, "accept-encoding") {
        weights.note(member);
    }
    let weigh = |coding: ContentCoding| weights.of(coding).filter(|&weight| weight > 0);
    let best = ours.iter().rev().copied().max_by_key(|&coding| weigh(coding))?;
    weigh(best).filter(|&weight| weight >= weights.identity.unwrap_or(0)).map(|_| best)
}

/// Weights in thousandths, where the client gave one.
#[derive(Default)]
struct Weights {
    zstd: Option<u16>,
    brotli: Option<u16>,
    gzip: Option<u16>,
    identity: Option<u16>,
    any: Option<u16>,
}

impl Weights {
    fn of(&self, coding: ContentCoding) -> Option<u16> {
        let own = match coding {
            ContentCoding::Zstd => self.zstd,
            ContentCoding::Brotli => self.brotli,
            ContentCoding::Gzip => self.gzip,
        };
        own.or(self.any)
    }

    /// Records `coding;q=0.5`. A malformed weight counts as a refusal, and so does one of two that
    /// contradict each other.
    fn note(&mut self, member: &[u8]) {
        let mut parts = member.split(|&b| b == b';').map(<[u8]>::trim_ascii);
        let Some(name) = parts.next() else { return };
        let weight = parts.find_map(weight_value).map_or(Some(1000), weight).unwrap_or(0);
        let place = match name.to_ascii_lowercase().as_slice() {
            b"zstd" => &mut self.zstd,
            b"br" => &mut self.brotli,
            // A name from before gzip was registered (RFC 9110 section 8.4.1.3).
            b"gzip" | b"x-gzip" => &mut self.gzip,
            b"identity" => &mut self.identity,
            b"*" => &mut self.any,
            _ => return,
        };
        *place = Some(place.map_or(weight, |before| before.min(weight)));
    }
}

#[cfg(test)]
mod tests;
