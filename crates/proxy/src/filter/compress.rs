//! Streaming compression of response bodies.

use std::io::{self, Write};
use std::mem;

use brotli::CompressorWriter;
use flate2::write::GzEncoder;
use model::ContentCoding;
use zstd::stream::write::Encoder as ZstdEncoder;

use crate::budget::Charge;

/// On four megabytes of source code, zlib-rs at level 4 yields 27 % of the size at 77 MB/s; level 6
/// saves another half per cent and takes half as long again.
const GZIP_LEVEL: u32 = 4;
/// 28 % at 178 MB/s; level 4 is no smaller.
const ZSTD_LEVEL: i32 = 3;
/// 25 to 30 % at 30 MB/s. Lower levels compress no better than gzip and are slower.
const BROTLI_QUALITY: u32 = 5;
/// 256 KiB, for zstd and for Brotli: a window of a megabyte saves two per cent on bodies larger
/// than that, and takes three times the memory. RFC 9659 allows 8 MB at most.
const WINDOW_BITS: u32 = 18;
/// Brotli emits its output in pieces of this size.
const BROTLI_PIECE_BYTES: usize = 4096;

/// Returns the most memory that a coding takes: measured for gzip and Brotli, zstd's own estimate
/// for the level and window above.
pub(super) fn memory_of(coding: ContentCoding) -> u64 {
    match coding {
        ContentCoding::Zstd => 1_500_000,
        ContentCoding::Brotli => 5_000_000,
        ContentCoding::Gzip => 500_000,
    }
}

/// A body being compressed.
pub(crate) struct Compressor {
    encoder: Encoder,
    /// Input was taken since the last flush.
    holds_back: bool,
    bytes_out: u64,
    _memory: Charge,
}

/// Each variant writes its output to its own vector.
enum Encoder {
    Zstd(ZstdEncoder<'static, Vec<u8>>),
    Brotli(Box<CompressorWriter<Vec<u8>>>),
    Gzip(GzEncoder<Vec<u8>>),
    /// The body has ended; these are its last bytes.
    Ended(Vec<u8>),
}

impl Compressor {
    /// Starts compressing a body; `memory` covers [`memory_of`] the coding. Returns `None` if the
    /// library fails to initialise.
    pub(super) fn new(coding: ContentCoding, memory: Charge) -> Option<Compressor> {
        let encoder = match coding {
            ContentCoding::Zstd => Encoder::Zstd(zstd(Vec::new()).ok()?),
            ContentCoding::Brotli => Encoder::Brotli(Box::new(CompressorWriter::new(
                Vec::new(),
                BROTLI_PIECE_BYTES,
                BROTLI_QUALITY,
                WINDOW_BITS,
            ))),
            ContentCoding::Gzip => {
                let level = flate2::Compression::new(GZIP_LEVEL);
                Encoder::Gzip(GzEncoder::new(Vec::new(), level))
            }
        };
        Some(Compressor { encoder, holds_back: false, bytes_out: 0, _memory: memory })
    }

    /// Compresses a piece of the body.
    ///
    /// # Errors
    ///
    /// The library's error; its output must not be used then.
    pub(super) fn push(&mut self, piece: &[u8]) -> io::Result<()> {
        self.holds_back = true;
        self.work(|encoder| match encoder {
            Encoder::Zstd(encoder) => encoder.write_all(piece),
            Encoder::Brotli(encoder) => encoder.write_all(piece),
            Encoder::Gzip(encoder) => encoder.write_all(piece),
            Encoder::Ended(_) => Err(io::ErrorKind::WriteZero.into()),
        })
    }

    /// Emits what the encoder holds back, so that all data pushed so far can be decompressed.
    ///
    /// # Errors
    ///
    /// As for [`Compressor::push`].
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if !mem::take(&mut self.holds_back) {
            return Ok(());
        }
        self.work(|encoder| match encoder {
            Encoder::Zstd(encoder) => encoder.flush(),
            Encoder::Brotli(encoder) => encoder.flush(),
            Encoder::Gzip(encoder) => encoder.flush(),
            Encoder::Ended(_) => Ok(()),
        })
    }

    /// Ends the body.
    ///
    /// # Errors
    ///
    /// As for [`Compressor::push`].
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.holds_back = false;
        self.work(|encoder| {
            let made = match mem::replace(encoder, Encoder::Ended(Vec::new())) {
                Encoder::Zstd(encoder) => encoder.finish()?,
                Encoder::Brotli(encoder) => encoder.into_inner(),
                Encoder::Gzip(encoder) => encoder.finish()?,
                Encoder::Ended(made) => made,
            };
            *encoder = Encoder::Ended(made);
            Ok(())
        })
    }

    /// Returns the output since this was last emptied.
    pub(super) fn made(&mut self) -> &mut Vec<u8> {
        self.encoder.made()
    }

    /// Returns the total number of bytes produced.
    pub(super) fn bytes_out(&self) -> u64 {
        self.bytes_out
    }

    fn work(&mut self, step: impl FnOnce(&mut Encoder) -> io::Result<()>) -> io::Result<()> {
        let before = self.encoder.made().len();
        step(&mut self.encoder)?;
        self.bytes_out += (self.encoder.made().len() - before) as u64;
        Ok(())
    }
}

impl Encoder {
    fn made(&mut self) -> &mut Vec<u8> {
        match self {
            Encoder::Zstd(encoder) => encoder.get_mut(),
            Encoder::Brotli(encoder) => encoder.get_mut(),
            Encoder::Gzip(encoder) => encoder.get_mut(),
            Encoder::Ended(made) => made,
        }
    }
}

fn zstd(out: Vec<u8>) -> io::Result<ZstdEncoder<'static, Vec<u8>>> {
    let mut encoder = ZstdEncoder::new(out, ZSTD_LEVEL)?;
    encoder.window_log(WINDOW_BITS)?;
    Ok(encoder)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::Arc;

    use super::*;

    fn compressor(coding: ContentCoding) -> Compressor {
        let mut charge = Charge::new(&Arc::default(), 10_000_000);
        assert!(charge.covers(memory_of(coding)));
        Compressor::new(coding, charge).expect("an encoder")
    }

    /// Decompresses as much as possible.
    fn decompressed(coding: ContentCoding, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut reader: Box<dyn Read + '_> = match coding {
            ContentCoding::Zstd => {
                Box::new(zstd::stream::read::Decoder::new(bytes).expect("a decoder"))
            }
            ContentCoding::Brotli => Box::new(brotli::Decompressor::new(bytes, 4096)),
            ContentCoding::Gzip => Box::new(flate2::read::GzDecoder::new(bytes)),
        };
        let mut piece = [0; 512];
        while let Ok(count) = reader.read(&mut piece) {
            if count == 0 {
                break;
            }
            out.extend_from_slice(&piece[..count]);
        }
        out
    }

    #[test]
    fn what_was_flushed_can_be_read_before_the_end() {
        for &coding in ContentCoding::ALL {
            let mut compressor = compressor(coding);
            let (mut sent, mut pushed) = (Vec::new(), Vec::new());
            for number in 0..50 {
                let event = format!("data: event number {number}\n\n").into_bytes();
                compressor.push(&event).expect("pushed");
                pushed.extend_from_slice(&event);
                compressor.flush().expect("flushed");
                sent.append(compressor.made());
                assert_eq!(decompressed(coding, &sent), pushed, "{coding:?} {number}");
                // A flush with nothing to flush produces nothing.
                compressor.flush().expect("flushed");
                assert!(compressor.made().is_empty(), "{coding:?} {number}");
            }
            compressor.end().expect("ended");
            sent.append(compressor.made());
            assert_eq!(decompressed(coding, &sent), pushed, "{coding:?}");
            assert_eq!(compressor.bytes_out(), sent.len() as u64, "{coding:?}");
        }
    }

    #[test]
    fn a_body_of_nothing_and_a_large_one_are_whole() {
        let mut random = fastrand::Rng::with_seed(7);
        let large: Vec<u8> = (0..3_000_000).map(|_| random.u8(b'a'..b'e')).collect();
        for &coding in ContentCoding::ALL {
            for body in [&[][..], &large] {
                let mut compressor = compressor(coding);
                let mut sent = Vec::new();
                for piece in body.chunks(16_384) {
                    compressor.push(piece).expect("pushed");
                    sent.append(compressor.made());
                }
                compressor.end().expect("ended");
                sent.append(compressor.made());
                assert!(decompressed(coding, &sent) == body, "{coding:?}");
                assert!(sent.len() < 64 + body.len() / 2, "{coding:?} {}", sent.len());
            }
        }
    }

    #[test]
    fn memory_is_given_back_with_the_body() {
        let budget = Arc::default();
        let mut charge = Charge::new(&budget, 10_000_000);
        assert!(charge.covers(memory_of(ContentCoding::Gzip)));
        let compressor = Compressor::new(ContentCoding::Gzip, charge);
        assert_eq!(budget.used_bytes(), memory_of(ContentCoding::Gzip));
        drop(compressor);
        assert_eq!(budget.used_bytes(), 0);
    }
}
