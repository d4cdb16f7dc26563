//! Decodes header blocks (RFC 7541).

use super::field::{Kind, Line, is_value};
use super::static_table::{self, STATIC_LEN};
use super::table::Table;
use super::{TABLE_MAX_BYTES, huffman, integer};

/// The block cannot be decoded. This is a connection error (RFC 9113 section 4.3), since the table
/// no longer agrees with the peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadBlock;

/// One direction's decoder and its table.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    table: Table<Name>,
}

/// The length and classification of an entry's name, and whether its value is valid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    len: u16,
    kind: Kind,
    is_value_valid: bool,
}

/// A literal that was decoded.
struct Literal {
    /// The kind of its name.
    kind: Kind,
    name_len: usize,
    is_value_valid: bool,
    /// How many bytes of the block it takes.
    taken: usize,
}

impl Literal {
    fn line<'a>(&self, bytes: &'a [u8]) -> Line<'a> {
        let kind = if self.is_value_valid { self.kind } else { Kind::Invalid };
        Line { bytes, name_len: self.name_len, kind }
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
                    let literal = self.literal(rest, 6, buffer)?;
                    let line = literal.line(buffer);
                    each(line);
                    let Literal { kind, name_len, is_value_valid, taken } = literal;
                    // A name that is longer than the table does not enter it.
                    let name = Name { len: name_len as u16, kind, is_value_valid };
                    self.table.add(line.bytes, line.size(), name);
                    taken
                }
                // A size may change at the start of a block only (section 4.2).
                0x20.. if !resizes => return Err(BadBlock),
                0x20.. => {
                    let (size, taken) = integer::decode(rest, 5).map_err(|_| BadBlock)?;
                    if size > TABLE_MAX_BYTES {
                        return Err(BadBlock);
                    }
                    self.table.resize(size);
                    at += taken;
                    continue;
                }
                _ => {
                    let literal = self.literal(rest, 4, buffer)?;
                    each(literal.line(buffer));
                    literal.taken
                }
            };
            resizes = false;
        }
        Ok(())
    }

    /// Frees unused memory. The table's entries stay.
    pub(crate) fn shrink(&mut self) {
        self.table.shrink();
    }

    #[inline]
    fn line(&self, index: usize) -> Option<Line<'_>> {
        if index <= STATIC_LEN {
            return static_table::line(index);
        }
        let (bytes, name) = self.table.get(index - STATIC_LEN - 1)?;
        let kind = if name.is_value_valid { name.kind } else { Kind::Invalid };
        Some(Line { bytes, name_len: usize::from(name.len), kind })
    }

    /// Returns the name of an entry, and its kind. A name is classified only once, however often it
    /// is used: a peer could otherwise cause 4 KiB to be checked with each byte.
    fn name(&self, index: usize) -> Option<(&[u8], Kind)> {
        if index <= STATIC_LEN {
            return static_table::line(index).map(|line| (line.name(), line.kind));
        }
        let (bytes, name) = self.table.get(index - STATIC_LEN - 1)?;
        Some((&bytes[..usize::from(name.len)], name.kind))
    }

    /// Reads a literal with an index of `prefix` bits into `buffer`, as a line.
    fn literal(
        &self,
        block: &[u8],
        prefix: u32,
        buffer: &mut Vec<u8>,
    ) -> Result<Literal, BadBlock> {
        buffer.clear();
        let (index, mut at) = integer::decode(block, prefix).map_err(|_| BadBlock)?;
        let kind = if index == 0 {
            at += string(&block[at..], buffer)?;
            Kind::of_name(buffer)
        } else {
            let (name, kind) = self.name(index).ok_or(BadBlock)?;
            buffer.extend_from_slice(name);
            kind
        };
        let name_len = buffer.len();
        buffer.extend_from_slice(b": ");
        at += string(&block[at..], buffer)?;
        let is_value_valid = is_value(&buffer[name_len + 2..]);
        buffer.extend_from_slice(b"\r\n");
        Ok(Literal { kind, name_len, is_value_valid, taken: at })
    }
}

/// Appends the string literal at the start of `block` (RFC 7541 section 5.2); returns how many
/// bytes it takes.
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
            assert_eq!((decoder.table.check(), decoder.table.len()), (164, 3));
        }
        let mut decoder = Decoder::default();
        decode(&mut decoder, &bytes("3fe101")).unwrap();
        assert_eq!(decoder.table.size_max(), 256);
        for block in [
            "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c7\
             8f0b97c8e9ae82ae43d3",
            "4883640effc1c0bf",
            "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335\
             dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
        ] {
            decode(&mut decoder, &bytes(block)).unwrap();
        }
        assert_eq!((decoder.table.check(), decoder.table.len()), (215, 3));
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
            decoder.table.check();
            if fits <= decoder.table.size_max() {
                let again = decode(&mut decoder, &[0xbe]).unwrap();
                assert_eq!(again, format!("{name}: {}; ", String::from_utf8(value).unwrap()));
            }
            if random.u8(..) < 9 {
                decoder.shrink();
            }
        }
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
