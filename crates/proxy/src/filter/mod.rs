//! Response filters: what a route does to a response besides forwarding it.
//!
//! A filter has two parts. The first examines both heads once and decides what happens to this
//! response; the second is the [`BodyFilter`] that the body passes through, if one is needed. A
//! body without a filter is moved unchanged, inside the kernel where possible.
//!
//! Request filters are in `exchange::filters`; the order of both is in `config::build`. A new
//! filter is a variant of `model::RequestFilter` or `model::ResponseFilter`, and a match arm here
//! or there.

mod compress;

use std::io;

use decide::compression::{Effect, effect};
use model::ResponseFilter;

use crate::budget::Charge;
use crate::scratch::Scratch;
use compress::{Compressor, memory_of};

/// The result of filtering a response.
#[derive(Default)]
pub(crate) struct Filtered {
    /// The changes that compression makes to the head.
    pub(crate) compression: Effect,
    /// The filter for the body.
    pub(crate) body: Option<Box<BodyFilter>>,
}

/// Runs a route's filters over the response whose head is in `scratch`. `is_empty`: no body follows
/// the head, whatever it says. `memory` is the empty share of the budget that compression may draw
/// from.
#[inline]
pub(crate) fn response(
    filters: &[ResponseFilter],
    scratch: &Scratch,
    is_empty: bool,
    memory: impl FnOnce() -> Charge + Copy,
) -> Filtered {
    let mut filtered = Filtered::default();
    for filter in filters {
        match filter {
            ResponseFilter::Compress(rules) => {
                let found = effect(rules, &scratch.request, &scratch.response);
                let is_head = scratch.request.is_head();
                let found = if is_empty && !is_head { found.without_coding() } else { found };
                (filtered.compression, filtered.body) = compressed(found, is_head, memory);
            }
        }
    }
    filtered
}

/// Prepares compression if there is memory for it; otherwise the response stays as it is. The
/// response to a HEAD request only describes what would be done.
fn compressed(
    found: Effect,
    is_head: bool,
    memory: impl FnOnce() -> Charge,
) -> (Effect, Option<Box<BodyFilter>>) {
    let Some(coding) = found.coding.filter(|_| !is_head) else { return (found, None) };
    let mut charge = memory();
    if !charge.covers(memory_of(coding)) {
        charge.note_exhausted();
        return (found.without_coding(), None);
    }
    match Compressor::new(coding, charge) {
        Some(compressor) => (found, Some(Box::new(BodyFilter::Compress(compressor)))),
        None => (found.without_coding(), None),
    }
}

/// A streaming body filter.
pub(crate) enum BodyFilter {
    Compress(Compressor),
}

impl BodyFilter {
    /// Processes a piece of the body.
    ///
    /// # Errors
    ///
    /// The library failed. The rest of the body is lost, and the response must not look complete.
    pub(crate) fn push(&mut self, piece: &[u8]) -> io::Result<()> {
        match self {
            BodyFilter::Compress(compressor) => compressor.push(piece),
        }
    }

    /// Emits everything held back.
    ///
    /// # Errors
    ///
    /// As for [`BodyFilter::push`].
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            BodyFilter::Compress(compressor) => compressor.flush(),
        }
    }

    /// Ends the body.
    ///
    /// # Errors
    ///
    /// As for [`BodyFilter::push`].
    pub(crate) fn end(&mut self) -> io::Result<()> {
        match self {
            BodyFilter::Compress(compressor) => compressor.end(),
        }
    }

    /// Returns the output since this was last emptied.
    pub(crate) fn made(&mut self) -> &mut Vec<u8> {
        match self {
            BodyFilter::Compress(compressor) => compressor.made(),
        }
    }

    /// Returns the total number of bytes produced.
    pub(crate) fn bytes_out(&self) -> u64 {
        match self {
            BodyFilter::Compress(compressor) => compressor.bytes_out(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::sync::Arc;

    use model::{Compression, ContentCoding, MediaRange};
    use wire::http1::{HeadLimits, parse_request, parse_response};

    use super::*;

    fn filtered(request: &str, response: &str, is_empty: bool) -> Filtered {
        let limits = HeadLimits { head_max_bytes: 4096, target_max_bytes: 100, fields_max: 10 };
        let mut scratch = Scratch::default();
        let head = Rc::get_mut(&mut scratch.request).expect("the only one");
        parse_request(request.as_bytes(), &limits, head).expect("a request");
        parse_response(response.as_bytes(), &limits, &mut scratch.response).expect("a response");
        let filters = [ResponseFilter::Compress(Compression {
            codings: vec![ContentCoding::Gzip],
            types: MediaRange::parse("text/*").into_iter().collect(),
            length_min_bytes: 0,
        })];
        response_of(&filters, &scratch, is_empty)
    }

    fn response_of(filters: &[ResponseFilter], scratch: &Scratch, is_empty: bool) -> Filtered {
        let budget = Arc::default();
        response(filters, scratch, is_empty, || Charge::new(&budget, 1_000_000))
    }

    const RESPONSE: &str =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 0\r\n\r\n";

    /// An HTTP/2 stream may end with its head. There is nothing to compress then, and the length in
    /// the head stays.
    #[test]
    fn a_response_without_a_body_is_not_compressed() {
        let get = "GET / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n";
        let empty = filtered(get, RESPONSE, true);
        assert!(empty.body.is_none());
        assert_eq!(empty.compression, Effect { varies: true, ..Effect::default() });
        let followed = filtered(get, RESPONSE, false);
        assert!(followed.body.is_some());
        assert_eq!(followed.compression.coding, Some(ContentCoding::Gzip));
    }

    #[test]
    fn a_head_response_matches_that_of_a_get() {
        let head = "HEAD / HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n";
        for is_empty in [true, false] {
            let of_head = filtered(head, RESPONSE, is_empty);
            assert!(of_head.body.is_none());
            assert_eq!(of_head.compression.coding, Some(ContentCoding::Gzip));
        }
    }
}
