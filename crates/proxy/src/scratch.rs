//! Reusable storage of an exchange: parsed heads and bytes to be sent.

use std::rc::Rc;

use wire::http1::{RequestHead, ResponseHead};

use crate::shelf::Shelf;

/// A vector that grew beyond this for one large head is not kept.
const KEPT_BYTES_MAX: usize = 16 * 1024;

/// Storage for one exchange.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Shared with reports of requests in flight while an exchange is in progress, and with copies for
    /// mirrors.
    pub(crate) request: Rc<RequestHead>,
    pub(crate) response: ResponseHead,
    /// Lent to the pumps, one each.
    pub(crate) up: Vec<u8>,
    pub(crate) down: Vec<u8>,
}

/// A worker's unused storage: an idle connection holds none.
#[derive(Default)]
pub(crate) struct ScratchPool(Shelf<Box<Scratch>>);

impl ScratchPool {
    pub(crate) fn take(&self) -> Box<Scratch> {
        self.0.take().unwrap_or_default()
    }

    pub(crate) fn give(&self, mut scratch: Box<Scratch>) {
        if Rc::strong_count(&scratch.request) > 1 {
            // A copy for a mirror still uses it.
            scratch.request = Rc::default();
        }
        for bytes in [&mut scratch.up, &mut scratch.down] {
            bytes.clear();
            bytes.shrink_to(KEPT_BYTES_MAX);
        }
        self.0.give(scratch);
    }

    /// Frees some of what was not needed recently.
    pub(crate) fn trim(&self) {
        self.0.trim();
    }
}
