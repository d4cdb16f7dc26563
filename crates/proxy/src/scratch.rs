//! What one exchange works with and the next can use again: parsed heads and bytes to be sent.

use std::cell::RefCell;
use std::rc::Rc;

use wire::http1::{RequestHead, ResponseHead};

/// Kept unused per worker; the rest is freed.
const KEPT_MAX: usize = 512;
/// A vector that grew beyond this for one large head is not kept.
const KEPT_BYTES_MAX: usize = 16 * 1024;

/// Kept storage of an exchange.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Shared with whoever tells what is in flight, while an exchange is.
    pub(crate) request: Rc<RequestHead>,
    pub(crate) response: ResponseHead,
    /// Lent to the pumps, one each.
    pub(crate) up: Vec<u8>,
    pub(crate) down: Vec<u8>,
}

/// A worker's unused scratches: an idle connection holds none.
#[allow(clippy::vec_box, reason = "they move between pool and task; a Scratch is large")]
#[derive(Default)]
pub(crate) struct ScratchPool(RefCell<Vec<Box<Scratch>>>);

impl ScratchPool {
    pub(crate) fn take(&self) -> Box<Scratch> {
        self.0.borrow_mut().pop().unwrap_or_default()
    }

    pub(crate) fn give(&self, mut scratch: Box<Scratch>) {
        let mut kept = self.0.borrow_mut();
        if kept.len() < KEPT_MAX {
            for bytes in [&mut scratch.up, &mut scratch.down] {
                bytes.clear();
                bytes.shrink_to(KEPT_BYTES_MAX);
            }
            kept.push(scratch);
        }
    }
}
