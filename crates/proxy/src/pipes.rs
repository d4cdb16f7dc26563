//! Pipes that bodies of plain HTTP are spliced through. A worker keeps some, since creating one
//! costs more than it saves for a single body.

use std::cell::Cell;
use std::rc::Rc;

use os::splice::Pipe;

use crate::shelf::Shelf;

/// Capacity of a pipe between two connections: as much as a socket buffer has ready at a time.
pub(crate) const PIPE_BYTES: usize = 256 * 1024;
/// Maximum number of pipes per worker for bodies, two open files each; further bodies are copied.
/// Unprivileged users may have 256 pipes of this size over all their processes
/// (fs.pipe-user-pages-soft).
pub const BODY_PIPES_MAX: usize = 64;

/// A smaller pipe moves less at a time than copying through a large buffer does.
pub(crate) const WIDE_BYTES_MIN: usize = 64 * 1024;

/// Returns a pipe if it is worth using: if the system grants only a small one, copying through a
/// large buffer is cheaper.
pub(crate) fn wide() -> Option<Pipe> {
    Pipe::new(PIPE_BYTES).ok().filter(|pipe| pipe.capacity_bytes() >= WIDE_BYTES_MIN)
}

/// A worker's pipes for bodies.
#[derive(Default)]
pub(crate) struct Pipes {
    unused: Shelf<Pipe>,
    lent: Cell<usize>,
}

/// A pipe on loan. Dropping it closes it, with whatever it holds.
pub(crate) struct Lent {
    pub(crate) pipe: Pipe,
    loan: Loan,
}

/// Counts a pipe in use.
struct Loan(Rc<Pipes>);

impl Drop for Loan {
    fn drop(&mut self) {
        self.0.lent.set(self.0.lent.get() - 1);
    }
}

impl Pipes {
    /// Lends a pipe, unless the maximum is in use or the system grants none.
    pub(crate) fn lend(self: &Rc<Self>) -> Option<Lent> {
        if self.lent.get() >= BODY_PIPES_MAX {
            return None;
        }
        let pipe = self.unused.take().or_else(wide)?;
        self.lent.set(self.lent.get() + 1);
        Some(Lent { pipe, loan: Loan(Rc::clone(self)) })
    }

    /// Closes some of those not needed recently.
    pub(crate) fn trim(&self) {
        self.unused.trim();
    }
}

impl Lent {
    /// Returns an empty pipe for the next body.
    pub(crate) fn give_back(self) {
        if self.pipe.is_empty() {
            self.loan.0.unused.give(self.pipe);
        }
    }
}
