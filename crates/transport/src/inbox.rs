//! What has been received and not yet used, for those who read whole messages.
//!
//! Kept from one message to the next. The proxy's hot path has buffers of its own.

use std::io;

use tokio::io::AsyncReadExt;

use crate::Stream;

/// The room that one read is given, in bytes.
const READ_BYTES: usize = 16 * 1024;

/// A buffer that is filled from a stream at its end and used up from its beginning. It grows only
/// while its user takes nothing: bounding that is bounding it.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    taken: usize,
}

impl Inbox {
    /// What has been received and not yet taken.
    pub fn unread(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// Marks the first `count` unread bytes as used.
    pub fn take(&mut self, count: usize) {
        self.taken = (self.taken + count).min(self.bytes.len());
    }

    /// Waits for more; yields how many bytes came, 0 at the end of the stream. Nothing is lost
    /// when the future is dropped before it is done.
    ///
    /// # Errors
    /// The connection failed, or the inbox is full.
    pub async fn fill(&mut self, stream: &Stream) -> io::Result<usize> {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        // Without room for a whole read, a short read could not be told from a full one.
        self.bytes.reserve(READ_BYTES);
        let mut stream = stream;
        stream.read_buf(&mut self.bytes).await
    }
}
