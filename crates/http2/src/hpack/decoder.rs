//! Decodes header blocks (RFC 7541).

use std::collections::VecDeque;

use super::field::{FIELD_EXTRA_BYTES, Kind, Line};
use super::static_table::{self, STATIC_LEN};
use super::{TABLE_MAX_BYTES, huffman, integer};

/// A block that cannot be decoded: an error of the connection (RFC 9113 section 4.3), since the table
/// no longer agrees with the peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadBlock;

/// One direction's decoder and its table. Empty until the peer adds an entry, then at most
/// [`MEMORY_MAX_BYTES`].
#[derive(Debug)]
pub(crate) struct Decoder {
    /// The entries' lines, the oldest first, perhaps after lines of evicted entries.
    bytes: Vec<u8>,
    /// The position of the first of `bytes` among all bytes ever added.
    base: u32,
    entries: VecDeque<Entry>,
    /// As RFC 7541 section 4.1 counts.
    size: usize,
    /// Chosen by the peer's encoder, at most [`TABLE_MAX_BYTES`].
    size_max: usize,
}

/// The most memory that a decoder keeps: lines of twice the table's size, and its entries.
pub(crate) const MEMORY_MAX_BYTES: usize =
    2 * TABLE_MAX_BYTES + TABLE_MAX_BYTES / FIELD_EXTRA_BYTES * size_of::<Entry>();

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Position among all bytes ever added, which may wrap.
    at: u32,
    line_len: u16,
    name_len: u16,
    kind: Kind,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder {
            bytes: Vec::new(),
            base: 0,
            entries: VecDeque::new(),
            size: 0,
            size_max: TABLE_MAX_BYTES,
        }
    }
}

impl Decoder {
    /// Decodes a complete block; calls `each` with every field, in order. `buffer` is used for
    /// literals.
    pub(crate) fn decode(
        &mut self,
        block: &[u8],
        buffer: &mut Vec<u8>,
        mut each: impl FnMut(Line<'_>),
    ) -> Result<(), BadBlock> {
        let mut at = 0;
        let mut resizes = true;
        while let Some(&first) = block.get(at) {
            let rest = &block[at..];
            // RFC 7541 section 6.
            at += match first {
                0x80.. => {
                    let (index, taken) = integer::decode(rest, 7).map_err(|_| BadBlock)?;
                    each(self.line(index).ok_or(BadBlock)?);
                    taken
                }
                0x40.. => {
                    let (kind, name_len, taken) = self.literal(rest, 6, buffer)?;
                    let line = Line { bytes: buffer, name_len, kind };
                    each(line);
                    self.insert(line);
                    taken
                }
                // A size may change at the start of a block only (section 4.2).
                0x20.. if !resizes => return Err(BadBlock),
                0x20.. => {
                    let (size, taken) = integer::decode(rest, 5).map_err(|_| BadBlock)?;
                    self.resize(size)?;
                    at += taken;
                    continue;
                }
                _ => {
                    let (kind, name_len, taken) = self.literal(rest, 4, buffer)?;
                    each(Line { bytes: buffer, name_len, kind });
                    taken
                }
            };
            resizes = false;
        }
        Ok(())
    }

    /// Frees memory that only waits for use: the peer does not notice.
    pub(crate) fn shrink(&mut self) {
        self.compact();
        self.bytes.shrink_to_fit();
        self.entries.shrink_to_fit();
    }

    #[inline]
    fn line(&self, index: usize) -> Option<Line<'_>> {
        if index <= STATIC_LEN {
            return static_table::line(index);
        }
        // The newest has the lowest index.
        let entry = self.entries.get(self.entries.len().checked_sub(index - STATIC_LEN)?)?;
        let at = entry.at.wrapping_sub(self.base) as usize;
        Some(Line {
            bytes: &self.bytes[at..at + usize::from(entry.line_len)],
            name_len: usize::from(entry.name_len),
            kind: entry.kind,
        })
    }

    /// Reads a literal with an index of `prefix` bits into `buffer`, as a line; returns its kind, the
    /// length of its name, and how many bytes of the block it takes.
    fn literal(
        &self,
        block: &[u8],
        prefix: u32,
        buffer: &mut Vec<u8>,
    ) -> Result<(Kind, usize, usize), BadBlock> {
        buffer.clear();
        let (index, mut at) = integer::decode(block, prefix).map_err(|_| BadBlock)?;
        let kind = if index == 0 {
            at += string(&block[at..], buffer)?;
            Kind::of_name(buffer)
        } else {
            let line = self.line(index).ok_or(BadBlock)?;
            buffer.extend_from_slice(line.name());
            // Its own value may have been what is invalid about it.
            if line.kind == Kind::Invalid { Kind::of_name(buffer) } else { line.kind }
        };
        let name_len = buffer.len();
        buffer.extend_from_slice(b": ");
        at += string(&block[at..], buffer)?;
        let kind = kind.with_value(&buffer[name_len + 2..]);
        buffer.extend_from_slice(b"\r\n");
        Ok((kind, name_len, at))
    }

    /// Adds an entry (RFC 7541 section 4.4).
    fn insert(&mut self, line: Line<'_>) {
        let size = line.size();
        self.evict_down_to(self.size_max.saturating_sub(size));
        if size > self.size_max {
            return;
        }
        if self.bytes.len() + line.bytes.len() > 2 * TABLE_MAX_BYTES {
            self.compact();
        }
        let at = self.base.wrapping_add(self.bytes.len() as u32);
        self.bytes.extend_from_slice(line.bytes);
        self.size += size;
        // Not longer than the table.
        let (line_len, name_len) = (line.bytes.len() as u16, line.name_len as u16);
        self.entries.push_back(Entry { at, line_len, name_len, kind: line.kind });
    }

    fn resize(&mut self, size_max: usize) -> Result<(), BadBlock> {
        if size_max > TABLE_MAX_BYTES {
            return Err(BadBlock);
        }
        self.size_max = size_max;
        self.evict_down_to(size_max);
        Ok(())
    }

    fn evict_down_to(&mut self, size: usize) {
        while self.size > size {
            let Some(entry) = self.entries.pop_front() else { return };
            let line = usize::from(entry.line_len);
            self.size -= line - super::field::LINE_EXTRA_BYTES + FIELD_EXTRA_BYTES;
        }
    }

    /// Drops the lines of evicted entries.
    fn compact(&mut self) {
        let dead = match self.entries.front() {
            Some(oldest) => oldest.at.wrapping_sub(self.base) as usize,
            None => self.bytes.len(),
        };
        self.bytes.drain(..dead);
        self.base = self.base.wrapping_add(dead as u32);
    }
}

/// Appends the string literal at the start of `block` (RFC 7541 section 5.2); returns how many bytes
/// it takes.
fn string(block: &[u8], out: &mut Vec<u8>) -> Result<usize, BadBlock> {
    let is_huffman = block.first().is_some_and(|&first| first & 0x80 != 0);
    let (len, at) = integer::decode(block, 7).map_err(|_| BadBlock)?;
    let bytes = block.get(at..at + len).ok_or(BadBlock)?;
    if is_huffman {
        huffman::decode(bytes, out).map_err(|_| BadBlock)?;
    } else {
        out.extend_from_slice(bytes);
    }
    Ok(at + len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let pair =
            |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(pair).collect()
    }

    fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<String, BadBlock> {
        let mut text = Vec::new();
        let each = |line: Line<'_>| text.extend_from_slice(line.bytes);
        decoder.decode(block, &mut Vec::new(), each)?;
        Ok(String::from_utf8(text).unwrap().replace("\r\n", "; "))
    }

    /// RFC 7541 appendices C.3 to C.6: three blocks on one connection each.
    #[test]
    fn the_examples_of_the_rfc() {
        let requests = [
            ":method: GET; :scheme: http; :path: /; :authority: www.example.com; ",
            ":method: GET; :scheme: http; :path: /; :authority: www.example.com; \
             cache-control: no-cache; ",
            ":method: GET; :scheme: https; :path: /index.html; :authority: www.example.com; \
             custom-key: custom-value; ",
        ];
        let plain = [
            "828684410f7777772e6578616d706c652e636f6d",
            "828684be58086e6f2d6361636865",
            "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
        ];
        let coded = [
            "828684418cf1e3c2e5f23a6ba0ab90f4ff",
            "828684be5886a8eb10649cbf",
            "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
        ];
        for blocks in [plain, coded] {
            let mut decoder = Decoder::default();
            for (block, expected) in blocks.iter().zip(requests) {
                assert_eq!(decode(&mut decoder, &bytes(block)).unwrap(), expected);
            }
            assert_eq!((decoder.size, decoder.entries.len()), (164, 3));
        }
        let mut decoder = Decoder::default();
        decode(&mut decoder, &bytes("3fe101")).unwrap();
        assert_eq!(decoder.size_max, 256);
        for block in [
            "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c7\
             8f0b97c8e9ae82ae43d3",
            "4883640effc1c0bf",
            "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335\
             dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
        ] {
            decode(&mut decoder, &bytes(block)).unwrap();
        }
        assert_eq!((decoder.size, decoder.entries.len()), (215, 3));
    }

    #[test]
    fn blocks_that_break_the_rules_are_refused() {
        for (block, why) in [
            ("80", "index 0"),
            ("be", "an index without an entry"),
            ("ff80808080808000", "an endless index"),
            ("82 20", "a size in the middle"),
            ("3fe21f", "a size above the limit"),
            ("40", "no name"),
            ("4003 61", "a name that is cut off"),
            ("4001 61 05 62", "a value that is cut off"),
            ("4081 00", "a Huffman code with the wrong padding"),
            ("7e 01 61", "a name without an entry"),
        ] {
            let refused = decode(&mut Decoder::default(), &bytes(block));
            assert_eq!(refused, Err(BadBlock), "{why}");
        }
    }

    #[test]
    fn the_table_keeps_its_bounds_whatever_is_added() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut decoder = Decoder::default();
        for round in 0..5_000_u32 {
            let mut block = Vec::new();
            if random.u8(..) < 4 {
                integer::encode(random.usize(..=TABLE_MAX_BYTES), 5, 0x20, &mut block);
            }
            let name = format!("n{round}");
            let longest = if random.u8(..) < 9 { 5_000 } else { 80 };
            let value = vec![b'v'; random.usize(..longest)];
            block.push(0x40);
            integer::encode(name.len(), 7, 0, &mut block);
            block.extend_from_slice(name.as_bytes());
            integer::encode(value.len(), 7, 0, &mut block);
            block.extend_from_slice(&value);
            let fits = name.len() + value.len() + 32;
            decode(&mut decoder, &block).unwrap();
            assert!(decoder.size <= decoder.size_max && decoder.bytes.len() <= 2 * TABLE_MAX_BYTES);
            if fits <= decoder.size_max {
                let again = decode(&mut decoder, &[0xbe]).unwrap();
                assert_eq!(again, format!("{name}: {}; ", String::from_utf8(value).unwrap()));
            }
            if random.u8(..) < 9 {
                decoder.shrink();
            }
        }
        let memory = decoder.bytes.capacity() + decoder.entries.capacity() * size_of::<Entry>();
        assert!(memory <= 2 * MEMORY_MAX_BYTES, "{memory}");
    }

    #[test]
    fn a_name_taken_from_an_invalid_field_is_judged_by_itself() {
        let mut decoder = Decoder::default();
        let mut kinds = Vec::new();
        // `a: <NUL>` with indexing; the same name with `b`.
        for block in [bytes("4001 61 01 00"), bytes("7e 01 62")] {
            decoder.decode(&block, &mut Vec::new(), |line| kinds.push(line.kind)).unwrap();
        }
        assert_eq!(kinds, [Kind::Invalid, Kind::Plain]);
    }
}
