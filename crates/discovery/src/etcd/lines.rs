//! Splits a stream into lines.

/// The maximum length of a line. A watch's message has the events of at least one revision, and etcd limits a
/// request to 1.5 MiB unless configured otherwise.
pub const LINE_BYTES_MAX: usize = 16 << 20;

/// The capacity that is kept while there is nothing to read.
const KEPT_BYTES: usize = 64 << 10;

/// The lines of a stream that arrives in chunks. Each byte is searched once, and moved a bounded number of times.
///
/// The caller takes every line after each chunk, so this has at most one line and one chunk.
#[derive(Debug, Default)]
pub struct Lines {
    bytes: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to here there is no end of the next line.
    searched: usize,
}

impl Lines {
    /// Starts with an empty stream.
    pub fn new() -> Lines {
        Lines::default()
    }

    /// Adds a chunk of the stream.
    pub fn push(&mut self, chunk: &[u8]) {
        if self.start == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES);
            (self.start, self.searched) = (0, 0);
        } else if self.start > self.bytes.len() / 2 {
            // Fewer bytes are moved than have been read since the last time.
            self.bytes.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.bytes.extend_from_slice(chunk);
    }

    /// Returns the next complete line that is not empty, without its end; `None` if there is none so far.
    ///
    /// # Errors
    /// The line is longer than [`LINE_BYTES_MAX`]. The stream cannot be read any further.
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, String> {
        loop {
            let rest = self.bytes.get(self.searched..).unwrap_or_default();
            let end = rest.iter().position(|byte| *byte == b'\n').map(|at| self.searched + at);
            let length = end.unwrap_or(self.bytes.len()) - self.start;
            if length > LINE_BYTES_MAX {
                return Err(format!("a message of etcd is longer than {LINE_BYTES_MAX} bytes"));
            }
            let Some(end) = end else {
                self.searched = self.bytes.len();
                return Ok(None);
            };
            let start = std::mem::replace(&mut self.start, end + 1);
            self.searched = end + 1;
            if end > start {
                return Ok(self.bytes.get(start..end));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(lines: &mut Lines) -> Vec<String> {
        let mut taken = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            taken.push(String::from_utf8_lossy(line).into_owned());
        }
        taken
    }

    #[test]
    fn a_stream_has_the_same_lines_in_chunks_of_any_length() {
        let stream = b"one\ntwo, longer\n\n\nthree\nfour is cut";
        for length in 1..=stream.len() {
            let mut lines = Lines::new();
            let mut all = Vec::new();
            for chunk in stream.chunks(length) {
                lines.push(chunk);
                all.extend(taken(&mut lines));
            }
            assert_eq!(all, ["one", "two, longer", "three"], "chunks of {length}");
            lines.push(b"\n");
            assert_eq!(taken(&mut lines), ["four is cut"]);
        }
    }

    #[test]
    fn lines_may_be_taken_one_for_each_chunk() {
        let mut lines = Lines::new();
        lines.push(&b"a\n".repeat(1_000));
        for _ in 0..1_000 {
            lines.push(b"b\n");
            assert_eq!(lines.next_line().unwrap(), Some(&b"a"[..]));
        }
        assert_eq!(taken(&mut lines), vec!["b"; 1_000]);
    }

    #[test]
    fn a_long_line_in_many_chunks_is_read_and_a_longer_one_is_refused() {
        let mut lines = Lines::new();
        for _ in 0..LINE_BYTES_MAX / 4096 {
            lines.push(&[b'x'; 4096]);
            assert_eq!(lines.next_line(), Ok(None));
        }
        lines.push(b"\nnext\n");
        assert_eq!(lines.next_line().unwrap().unwrap().len(), LINE_BYTES_MAX);
        assert_eq!(taken(&mut lines), ["next"]);
        lines.push(&vec![b'x'; LINE_BYTES_MAX]);
        assert!(lines.bytes.capacity() < 2 * LINE_BYTES_MAX);
        assert_eq!(lines.next_line(), Ok(None));
        lines.push(b"x");
        assert!(lines.next_line().is_err());
        lines.push(b"\n");
        assert!(lines.next_line().is_err());
    }
}
