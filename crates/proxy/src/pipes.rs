//! Pipes that bodies of plain HTTP are spliced through: a worker keeps some, since making one costs
//! more than what it saves for a body.

use std::cell::Cell;
use std::rc::Rc;

use os::splice::Pipe;

use crate::shelf::Shelf;

/// What a pipe may hold between two connections: as much as a socket buffer has ready at a time.
pub(crate) const PIPE_BYTES: usize = 256 * 1024;
/// Pipes at once of one worker for bodies, two open files each; further bodies are copied.
/// Users without privileges may have 256 pipes of this size between all their processes
/// (fs.pipe-user-pages-soft).
pub const BODY_PIPES_MAX: usize = 64;

/// A smaller pipe moves less at a time than copying through a large buffer does.
pub(crate) const WIDE_BYTES_MIN: usize = 64 * 1024;

/// A pipe that is worth it: where the system grants only a small one, copying through a large buffer
/// is cheaper.
pub(crate) fn wide() -> Option<Pipe> {
    Pipe::new(PIPE_BYTES).ok().filter(|pipe| pipe.capacity_bytes() >= WIDE_BYTES_MIN)
}

/// A worker's pipes for bodies.
#[derive(Default)]
pub(crate) struct Pipes {
    unused: Shelf<Pipe>,
    lent: Cell<usize>,
}

/// A pipe on loan. Dropped, it is closed, with whatever is in it.
pub(crate) struct Lent {
    pub(crate) pipe: Pipe,
    loan: Loan,
}

/// Counts a pipe that is at work.
struct Loan(Rc<Pipes>);

impl Drop for Loan {
    fn drop(&mut self) {
        self.0.lent.set(self.0.lent.get() - 1);
    }
}

impl Pipes {
    /// One, unless as many are at work as may be, or the system grants none.
    pub(crate) fn lend(self: &Rc<Self>) -> Option<Lent> {
        if self.lent.get() >= BODY_PIPES_MAX {
            return None;
        }
        let pipe = self.unused.take().or_else(wide)?;
        self.lent.set(self.lent.get() + 1);
        Some(Lent { pipe, loan: Loan(Rc::clone(self)) })
    }

    /// Closes some of those that were not needed of late.
    pub(crate) fn trim(&self) {
        self.unused.trim();
    }
}

impl Lent {
    /// Gives an empty pipe back, for the next body.
    pub(crate) fn give_back(self) {
        if self.pipe.is_empty() {
            self.loan.0.unused.give(self.pipe);
        }
    }
}
