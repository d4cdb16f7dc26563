//! Reads a capture's bytes from a file or standard input, and decompresses them.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use trace::reader::{Compression, compression};

/// How much is read at once, in bytes, where it has to be uncompressed.
const BUFFER_BYTES: usize = 256 * 1024;

/// Where a capture comes from.
pub(super) struct Input {
    bytes: Box<dyn Read>,
    /// How much of the file has been read, in bytes of the file.
    taken: Arc<AtomicU64>,
    /// The file's length; `None` for a pipe.
    length: Option<u64>,
}

/// Counts what is read of a file.
struct Counted<R> {
    inner: R,
    taken: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.taken.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

impl Input {
    /// Opens `path`; `-` is standard input.
    pub(super) fn open(path: &Path) -> io::Result<Input> {
        let taken = Arc::new(AtomicU64::new(0));
        let (source, length): (Box<dyn Read>, _) = if path == Path::new("-") {
            (Box::new(io::stdin().lock()), None)
        } else {
            let file = File::open(path)?;
            let about = file.metadata()?;
            if about.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            (Box::new(file), about.is_file().then_some(about.len()))
        };
        let counted = Counted { inner: source, taken: Arc::clone(&taken) };
        let mut buffered = BufReader::with_capacity(BUFFER_BYTES, counted);
        let bytes: Box<dyn Read> = match compression(buffered.fill_buf()?) {
            None => Box::new(buffered),
            Some(Compression::Gzip) => Box::new(flate2::bufread::MultiGzDecoder::new(buffered)),
            // One frame after another.
            Some(Compression::Zstd) => {
                Box::new(zstd::stream::read::Decoder::with_buffer(buffered)?)
            }
        };
        Ok(Input { bytes, taken, length })
    }

    /// How much of the file has been read, from 0 to 1; `None` where its length is not known.
    pub(super) fn share(&self) -> Option<f64> {
        let length = self.length.filter(|length| *length > 0)?;
        Some(self.taken.load(Ordering::Relaxed) as f64 / length as f64)
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.bytes.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}
