//! A receive buffer for readers of whole messages.
//!
//! Kept from one message to the next. The proxy's hot path has its own buffers.

use std::io;

use tokio::io::AsyncReadExt;

use crate::Stream;

/// Minimum free space for one read, in bytes.
const READ_BYTES: usize = 16 * 1024;

/// A buffer that is filled from a stream at its end and consumed from its start. It grows only
/// while its user consumes nothing: bounding that bounds the buffer.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    taken: usize,
}

impl Inbox {
    /// Returns what has been received and not yet consumed.
    pub fn unread(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// Marks the first `count` unread bytes as consumed.
    pub fn take(&mut self, count: usize) {
        self.taken = (self.taken + count).min(self.bytes.len());
    }

    /// Waits for more data; returns how many bytes arrived, 0 at the end of the stream. Nothing is
    /// lost when the future is dropped early.
    ///
    /// # Errors
    /// The connection failed, or the inbox is full.
    pub async fn fill(&mut self, stream: &Stream) -> io::Result<usize> {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        // Without room for a whole read, a short read could not be distinguished from a full one.
        self.bytes.reserve(READ_BYTES);
        let mut stream = stream;
        stream.read_buf(&mut self.bytes).await
    }
}
