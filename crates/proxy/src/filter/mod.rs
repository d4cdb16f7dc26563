//! Filters of responses: what a route does to a response beside passing it on.
//!
//! A filter has two parts. The first looks at both heads, once, and decides what becomes of this
//! response; the second is the [`BodyFilter`] that the body goes through, if one is needed. A body
//! without a filter is moved as it is, inside the kernel where that is possible.
//!
//! The filters of requests are in `exchange::filters`, the order of both in `config::build`. A new
//! filter is a variant of `model::RequestFilter` or `model::ResponseFilter`, and an arm here or
//! there.

mod compress;

use std::io;

use decide::compression::{Effect, effect};
use model::ResponseFilter;

use crate::budget::Charge;
use crate::scratch::Scratch;
use compress::{Compressor, memory_of};

/// What filters make of a response.
#[derive(Default)]
pub(crate) struct Filtered {
    /// What its head says of compression.
    pub(crate) compression: Effect,
    /// What its body goes through.
    pub(crate) body: Option<Box<BodyFilter>>,
}

/// Runs a route's filters over the response whose head is in `scratch`. `is_empty`: nothing follows
/// the head, whatever it says. `memory` is what compression may take of, nothing yet.
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
                let has_body = !is_empty && !scratch.request.is_head();
                filtered = compressed(found, has_body, memory);
            }
        }
    }
    filtered
}

/// Prepares compression, if there is memory for it; without, the response stays as it is.
fn compressed(found: Effect, has_body: bool, memory: impl FnOnce() -> Charge) -> Filtered {
    let Some(coding) = found.coding.filter(|_| has_body) else {
        return Filtered { compression: found, body: None };
    };
    let mut charge = memory();
    let compressor = if charge.covers(memory_of(coding)) {
        Compressor::new(coding, charge)
    } else {
        charge.note_exhausted();
        None
    };
    match compressor {
        Some(compressor) => {
            Filtered { compression: found, body: Some(Box::new(BodyFilter::Compress(compressor))) }
        }
        None => {
            Filtered { compression: Effect { coding: None, weakens: false, ..found }, body: None }
        }
    }
}

/// What a body goes through, piece by piece.
pub(crate) enum BodyFilter {
    Compress(Compressor),
}

impl BodyFilter {
    /// Takes a piece of the body.
    ///
    /// # Errors
    ///
    /// The body can't be told any further; it must not seem whole.
    pub(crate) fn push(&mut self, piece: &[u8]) -> io::Result<()> {
        match self {
            BodyFilter::Compress(compressor) => compressor.push(piece),
        }
    }

    /// Gives out all that it holds back.
    ///
    /// # Errors
    ///
    /// As of [`BodyFilter::push`].
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            BodyFilter::Compress(compressor) => compressor.flush(),
        }
    }

    /// Ends the body.
    ///
    /// # Errors
    ///
    /// As of [`BodyFilter::push`].
    pub(crate) fn end(&mut self) -> io::Result<()> {
        match self {
            BodyFilter::Compress(compressor) => compressor.end(),
        }
    }

    /// What it has made since this was last emptied.
    pub(crate) fn made(&mut self) -> &mut Vec<u8> {
        match self {
            BodyFilter::Compress(compressor) => compressor.made(),
        }
    }

    /// How many bytes it has made in all.
    pub(crate) fn bytes_out(&self) -> u64 {
        match self {
            BodyFilter::Compress(compressor) => compressor.bytes_out(),
        }
    }
}
