//! A capture's bytes, fed in pieces of any size → its records, one at a time.
//!
//! The buffer has a fixed size: a record borrows from it until the next one is read. The first four bytes
//! identify the format. Compressed captures must be decompressed first: [`compression`] detects them.

use std::fmt;

use crate::found::Found;
pub use crate::found::PACKET_MAX_BYTES;
use crate::pcap::Pcap;
use crate::pcapng::Pcapng;

/// Size of the buffer. A record of the longest packet and its frame fit in with room to spare.
const BUFFER_BYTES: usize = 1 << 20;
/// Most that is asked for at once: what is read should still be in the processor's cache when it is
/// looked at.
const READ_BYTES: usize = 128 << 10;

/// One captured packet.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// When it was captured: nanoseconds since 1970. 0 where the file says nothing.
    pub time_ns: i64,
    /// What its bytes begin with: a LINKTYPE number of <https://www.tcpdump.org/linktypes.html>.
    pub link: u32,
    /// Its length on the wire, in bytes; more than `data` holds when the capture cut it off.
    pub wire_bytes: u32,
    /// What was captured of it.
    pub data: &'a [u8],
}

/// What [`Reader::step`] found.
#[derive(Debug)]
pub enum Step<'a> {
    /// A packet.
    Record(Record<'a>),
    /// Something that tshark gives a frame number to and that is no packet.
    NoPacket,
    /// More bytes are needed: fill [`Reader::space`].
    More,
    /// The end of the file, in a proper place.
    End,
}

/// Why reading stopped before the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Where in the (uncompressed) file: the first byte of what could not be read.
    pub offset: u64,
    /// What is wrong there.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.offset, self.what)
    }
}

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
}

/// What the first four bytes of a file say of its compression.
pub fn compression(first: &[u8]) -> Option<Compression> {
    match first {
        [0x1f, 0x8b, ..] => Some(Compression::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstd),
        _ => None,
    }
}

#[derive(Debug)]
enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

/// Reads a pcap or pcapng file.
#[derive(Debug)]
pub struct Reader {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Where in the file `buffer[start]` is.
    offset: u64,
    /// Bytes that are passed over and not here yet.
    skip: u64,
    is_at_end: bool,
    format: Option<Format>,
}

impl Default for Reader {
    fn default() -> Self {
        Reader::new()
    }
}

impl Reader {
    /// A reader that has seen nothing yet.
    pub fn new() -> Reader {
        Reader {
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            offset: 0,
            skip: 0,
            is_at_end: false,
            format: None,
        }
    }

    /// Where the next bytes of the file go; never empty.
    pub fn space(&mut self) -> &mut [u8] {
        let here = self.end - self.start;
        if here < READ_BYTES / 8 || self.buffer.len() - self.end < READ_BYTES {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, here);
        }
        let until = self.buffer.len().min(self.end + READ_BYTES);
        &mut self.buffer[self.end..until]
    }

    /// `count` bytes have been put into [`Reader::space`]; 0 says that the file has ended.
    pub fn filled(&mut self, count: usize) {
        self.is_at_end |= count == 0;
        self.end = self.buffer.len().min(self.end + count);
    }

    /// How far into the file the reader is, in bytes.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Packets that the file's own statistics say were dropped while it was made (pcapng only).
    pub fn dropped(&self) -> Option<u64> {
        match &self.format {
            Some(Format::Pcapng(pcapng)) => pcapng.dropped(),
            _ => None,
        }
    }

    /// The next record.
    ///
    /// # Errors
    /// The file is damaged, or cut off within a record.
    pub fn step(&mut self) -> Result<Step<'_>, Broken> {
        loop {
            if !self.pass_over() {
                return self.starve(1);
            }
            let bytes = &self.buffer[self.start..self.end];
            let found = match &mut self.format {
                None => match open(bytes) {
                    Ok(Some((format, consumed))) => {
                        self.format = Some(format);
                        Found::Passed { consumed }
                    }
                    Ok(None) => Found::Need(24),
                    Err(what) => Found::Broken(what),
                },
                Some(Format::Pcap(pcap)) => pcap.next(bytes),
                Some(Format::Pcapng(pcapng)) => pcapng.next(bytes),
            };
            match found {
                Found::Record { time_ns, link, wire_bytes, start, end, consumed } => {
                    let from = self.start;
                    self.advance(consumed);
                    let data = &self.buffer[from + start..from + end];
                    return Ok(Step::Record(Record { time_ns, link, wire_bytes, data }));
                }
                Found::NoPacket { consumed } => {
                    self.advance(consumed);
                    return Ok(Step::NoPacket);
                }
                Found::Passed { consumed } => self.advance(consumed),
                Found::Need(count) => return self.starve(count),
                Found::Broken(what) => return Err(Broken { offset: self.offset, what }),
            }
        }
    }

    fn advance(&mut self, count: usize) {
        let here = count.min(self.end - self.start);
        self.start += here;
        self.offset += here as u64;
        self.skip += (count - here) as u64;
    }

    /// Passes over what is to be skipped; false if that needs more bytes.
    fn pass_over(&mut self) -> bool {
        let here = self.skip.min((self.end - self.start) as u64) as usize;
        self.start += here;
        self.offset += here as u64;
        self.skip -= here as u64;
        self.skip == 0
    }

    fn starve(&self, count: usize) -> Result<Step<'_>, Broken> {
        let here = self.end - self.start;
        if !self.is_at_end {
            return Ok(Step::More);
        }
        let what = match (&self.format, here) {
            (None, 0) => "the file is empty".to_owned(),
            (None, _) => format!("only {here} bytes, too few for a capture's header"),
            (Some(_), 0) if self.skip == 0 => return Ok(Step::End),
            (Some(_), _) => format!(
                "the file was cut off in the middle of a packet: {here} bytes are left, \
                 {} are needed",
                count as u64 + self.skip
            ),
        };
        Err(Broken { offset: self.offset, what })
    }
}

/// Detects the format; returns it and the number of header bytes consumed.
fn open(bytes: &[u8]) -> Result<Option<(Format, usize)>, String> {
    let Some(magic) = bytes.first_chunk::<4>() else { return Ok(None) };
    if *magic == [0x0a, 0x0d, 0x0d, 0x0a] {
        // The section header is read as any other block.
        return Ok(Some((Format::Pcapng(Pcapng::default()), 0)));
    }
    let known = Pcap::knows(*magic);
    match bytes.first_chunk::<24>() {
        _ if !known => Err(format!(
            "neither pcap nor pcapng: the file begins with {:02x} {:02x} {:02x} {:02x}",
            magic[0], magic[1], magic[2], magic[3]
        )),
        Some(header) => Ok(Some((Format::Pcap(Pcap::open(header)?), 24))),
        None => Ok(None),
    }
}
