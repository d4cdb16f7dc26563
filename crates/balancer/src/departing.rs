//! The predecessor after it has learned that this process serves: it still does what only one process may do, such as
//! keeping the entries in Consul, until it closes its end of the pipe.

use std::io::PipeWriter;

/// A predecessor that has learned that this process serves. It leaves; or it has given this process up, and ends it.
pub(crate) struct Departing(PipeWriter);

impl Departing {
    /// Returns the predecessor that reads this pipe.
    pub(crate) fn new(says: PipeWriter) -> Departing {
        Departing(says)
    }

    /// Returns whether it has left what only one process may do to this one, or has exited.
    pub(crate) fn has_left(&self) -> bool {
        // After an error, the next call asks again.
        !os::handover::is_read(&self.0).unwrap_or(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_predecessor_has_left_when_its_end_of_the_pipe_is_closed() {
        let (hears, says) = std::io::pipe().unwrap();
        let channel = hears.try_clone().unwrap();
        let predecessor = Departing::new(says);
        assert!(!predecessor.has_left());
        drop(hears);
        assert!(!predecessor.has_left(), "it has only read the message");
        drop(channel);
        assert!(predecessor.has_left());
    }
}
