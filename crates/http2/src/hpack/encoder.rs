//! Encodes header blocks (RFC 7541).
//!
//! The heads of a connection share most of their lines, byte for byte. A line that was sent before
//! is found by a hash of its text and sent as an index, without parsing its name. A line is added
//! to the table when it is sent for the second time, so that values that never repeat (request IDs)
//! do not displace those that do.

use wire::http1::Known;

use super::field::FIELD_EXTRA_BYTES;
use super::static_table::{STATIC_LEN, index_of_name};
use super::table::Table;
use super::{TABLE_MAX_BYTES, integer};

/// One direction's encoder and its table, with the lines as they were given.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    table: Table<()>,
    /// The number of entries ever added.
    added: u16,
    /// The lowest size since the last block, if the next block must announce a change.
    resized: Option<usize>,
    /// A hash table of recent lines, with [`WAYS`] slots per bucket. Allocated with the first line.
    seen: Vec<Seen>,
}

/// The memory of `seen`.
pub(crate) const SEEN_BYTES: usize = SEEN * size_of::<Seen>();

/// A line that was seen.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    hash: u16,
    /// The number of its entry, counted from 1 and modulo 2¹⁶; 0: it has none. A number may refer
    /// to an evicted entry or a newer one, so an entry's text is always compared.
    number: u16,
}

/// Number of slots: a power of two, about twice the number of typical lines that fit into the
/// table.
const SEEN: usize = 128;

/// Number of slots per bucket. If more of the lines that repeat shared a bucket, they would displace
/// one another in each block.
const WAYS: usize = 4;

/// A longer line would displace too many others.
const LINE_MAX_BYTES: usize = TABLE_MAX_BYTES / 4;

impl Encoder {
    /// Applies the peer's `SETTINGS_HEADER_TABLE_SIZE`.
    pub(crate) fn limit(&mut self, size: usize) {
        let (size, before) = (size.min(TABLE_MAX_BYTES), self.table.size_max());
        if size != before {
            self.resized = Some(self.resized.unwrap_or(before).min(size));
            self.table.resize(size);
        }
    }

    /// Starts a block.
    pub(crate) fn begin(&mut self, out: &mut Vec<u8>) {
        let Some(lowest) = self.resized.take() else { return };
        // RFC 7541 section 4.2.
        if lowest < self.table.size_max() {
            integer::encode(lowest, 5, 0x20, out);
        }
        integer::encode(self.table.size_max(), 5, 0x20, out);
    }

    /// Appends an entry of the static table.
    pub(crate) fn indexed(index: usize, out: &mut Vec<u8>) {
        integer::encode(index, 7, 0x80, out);
    }

    /// Appends a literal with a name from the static table, without indexing.
    pub(crate) fn named(index: usize, value: &[u8], out: &mut Vec<u8>) {
        integer::encode(index, 4, 0, out);
        string(value, out);
    }

    /// Appends a literal with a literal name, without indexing.
    pub(crate) fn unnamed(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        out.push(0);
        string(name, out);
        string(value, out);
    }

    /// Appends the field in `line`, `name: value` without its line end, unless `drops` says that a
    /// field with this name has no place in HTTP/2. Returns whether it was a line.
    #[inline]
    pub(crate) fn line(
        &mut self,
        line: &[u8],
        drops: impl FnOnce(Known) -> bool,
        out: &mut Vec<u8>,
    ) -> bool {
        let hash = hash(line);
        if let Some(index) = self.find(hash, line) {
            Encoder::indexed(index, out);
            return true;
        }
        let Some(colon) = memchr::memchr(b':', line) else { return false };
        let known = Known::of(&line[..colon]);
        if !drops(known) {
            self.literal(known, (&line[..colon], line), hash, out);
        }
        true
    }

    /// Appends a pseudo-header field with a name from the static table. `line` identifies the field
    /// among all lines and ends with its value.
    pub(crate) fn pseudo(
        &mut self,
        index: usize,
        (line, value_len): (&[u8], usize),
        name_len: usize,
        out: &mut Vec<u8>,
    ) {
        let hash = hash(line);
        if let Some(index) = self.find(hash, line) {
            return Encoder::indexed(index, out);
        }
        let size = name_len + value_len + FIELD_EXTRA_BYTES;
        let adds = self.seen_before(hash, line, size);
        let (prefix, flags) = if adds { (6, 0x40) } else { (4, 0) };
        integer::encode(index, prefix, flags, out);
        string(&line[line.len() - value_len..], out);
    }

    /// Discards the block since the last [`Encoder::begin`], which is not sent: the peer may lack
    /// any entry.
    pub(crate) fn abandon_block(&mut self) {
        self.table.clear();
        self.resized = Some(0);
    }

    /// Frees all memory. The next block empties the peer's table, too.
    pub(crate) fn shrink(&mut self) {
        if self.table.len() > 0 {
            self.abandon_block();
        }
        self.table.shrink();
        self.seen = Vec::new();
    }

    fn literal(
        &mut self,
        known: Known,
        (name, line): (&[u8], &[u8]),
        hash: u32,
        out: &mut Vec<u8>,
    ) {
        // A connection carries requests of several users; none may find out another's secrets by
        // guessing table entries (RFC 7541 section 7.1.3).
        let is_secret = matches!(
            known,
            Known::Authorization | Known::ProxyAuthorization | Known::Cookie | Known::SetCookie
        );
        let value = line[name.len() + 1..].trim_ascii();
        let size = name.len() + value.len() + FIELD_EXTRA_BYTES;
        let (prefix, flags) = match is_secret {
            true => (4, 0x10),
            false if self.seen_before(hash, line, size) => (6, 0x40),
            false => (4, 0),
        };
        let mut lower = [0; 64];
        if let Some(lower) = lower.get_mut(..name.len()) {
            lower.copy_from_slice(name);
            lower.make_ascii_lowercase();
            let index = index_of_name(lower).unwrap_or(0);
            integer::encode(index, prefix, flags, out);
            if index == 0 {
                string(lower, out);
            }
        } else {
            out.push(flags);
            string(&name.to_ascii_lowercase(), out);
        }
        string(value, out);
    }

    /// Returns the index of this line's entry.
    #[inline]
    fn find(&self, hash: u32, line: &[u8]) -> Option<usize> {
        let bucket = self.seen.get(bucket(hash)..)?;
        let matches = |seen: &Seen| seen.hash == hash as u16 && seen.number != 0;
        bucket.iter().take(WAYS).filter(|seen| matches(seen)).find_map(|seen| {
            let age = usize::from(self.added.wrapping_sub(seen.number));
            let (made_of, ()) = self.table.get(age)?;
            (made_of == line).then_some(STATIC_LEN + 1 + age)
        })
    }

    /// Returns whether the line was seen before and is now an entry; otherwise remembers it.
    fn seen_before(&mut self, hash: u32, line: &[u8], size: usize) -> bool {
        // Whitespace around a value takes memory but does not count towards the size.
        if line.len() > LINE_MAX_BYTES.min(size) {
            return false;
        }
        if self.seen.is_empty() {
            self.seen = vec![Seen::default(); SEEN];
        }
        let first = bucket(hash);
        let bucket = &mut self.seen[first..first + WAYS];
        if let Some(place) = bucket.iter().position(|seen| seen.hash == hash as u16) {
            if !self.table.add(line, size, ()) {
                return false;
            }
            self.added = self.added.wrapping_add(1);
            bucket[place].number = self.added;
            return true;
        }
        // Slots of entries are kept, so that lines that never repeat do not displace those that do.
        let has_entry = |seen: &Seen| {
            let age = usize::from(self.added.wrapping_sub(seen.number));
            seen.number != 0 && age < self.table.len()
        };
        let place = bucket.iter().position(|seen| !has_entry(seen)).unwrap_or(WAYS - 1);
        bucket[place] = Seen { hash: hash as u16, number: 0 };
        false
    }
}

/// Appends a string literal (RFC 7541 section 5.2) without Huffman coding. Coding would save a
/// fifth of the few lines that are not sent as an index, and cost more CPU time than all others
/// together, on both sides. HAProxy does not code either.
fn string(text: &[u8], out: &mut Vec<u8>) {
    integer::encode(text.len(), 7, 0, out);
    out.extend_from_slice(text);
}

/// Returns the position of a hash's bucket.
#[inline]
fn bucket(hash: u32) -> usize {
    (hash >> 16) as usize & (SEEN - 1) & !(WAYS - 1)
}

/// Hashes the length and the first and last eight bytes of a line, which distinguish the lines of a
/// head. Lines with equal hashes are compared.
#[inline]
fn hash(line: &[u8]) -> u32 {
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    };
    let (first, last) = match (line.first_chunk::<8>(), line.last_chunk::<8>()) {
        (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
        _ => (word(line), 0),
    };
    // A folded multiplication, as in wyhash and foldhash: every input bit affects every output bit.
    // The constants are arbitrary odd numbers.
    let wide = u128::from(first ^ 0x9e37_79b9_7f4a_7c15 ^ line.len() as u64)
        * u128::from(last ^ 0xd1b5_4a32_d192_ed03);
    let folded = wide as u64 ^ (wide >> 64) as u64;
    (folded ^ folded >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::super::decoder::Decoder;
    use super::super::field::Line;
    use super::*;

    struct Pair {
        encoder: Encoder,
        decoder: Decoder,
    }

    impl Pair {
        fn new() -> Pair {
            Pair { encoder: Encoder::default(), decoder: Decoder::default() }
        }

        /// Encodes the lines; asserts that the decoder yields them; returns the block's length.
        fn send(&mut self, lines: &[String]) -> usize {
            let mut block = Vec::new();
            self.encoder.begin(&mut block);
            for line in lines {
                assert!(self.encoder.line(line.as_bytes(), |_| false, &mut block));
            }
            let mut decoded: Vec<String> = Vec::new();
            let each = |line: Line<'_>| decoded.push(String::from_utf8_lossy(line.bytes).into());
            self.decoder.decode(&block, &mut Vec::new(), each).unwrap();
            let lower = |line: &String| {
                let (name, value) = line.split_once(':').unwrap();
                format!("{}: {}\r\n", name.to_ascii_lowercase(), value.trim())
            };
            let expected: Vec<String> = lines.iter().map(lower).collect();
            assert_eq!(decoded, expected);
            self.encoder.table.check();
            block.len()
        }
    }

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn what_repeats_becomes_a_byte_and_secrets_do_not() {
        let head =
            lines("Server: an application\nX-Powered-By:  something \nVary: accept-encoding");
        let mut pair = Pair::new();
        let sizes = [0; 4].map(|_| pair.send(&head));
        assert!(sizes[0] > 40 && sizes[1] > 40, "{sizes:?}");
        assert_eq!(sizes[2..], [3, 3]);
        let secret = lines("Authorization: Basic abcdefgh\nCookie: a=b\nSet-Cookie: c=d");
        let sizes = [0; 4].map(|_| pair.send(&secret));
        assert!(sizes.iter().all(|&size| size == sizes[0]), "{sizes:?}");
    }

    #[test]
    fn lines_that_never_repeat_displace_none() {
        let mut pair = Pair::new();
        let steady = lines("a: stays\nb: stays too");
        for _ in 0..2 {
            pair.send(&steady);
        }
        for number in 0..2_000 {
            pair.send(&[format!("x-request-id: {number:040}")]);
        }
        let size = pair.send(&steady);
        assert!(size <= 4, "{size}");
    }

    #[test]
    fn both_tables_agree_after_anything() {
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut pair = Pair::new();
        for _ in 0..30_000 {
            if random.u8(..) < 3 {
                pair.encoder.limit(random.usize(..6_000));
            }
            if random.u8(..) < 3 {
                pair.encoder.shrink();
            }
            let mut some = || {
                let name = ["A", "x-long-name-of-a-field", "ETag", "b"][random.usize(..4)];
                let length = if random.u8(..) < 5 { 2_000 } else { 90 };
                let space = " ".repeat(if random.u8(..) < 20 { 500 } else { 1 });
                format!("{name}:{space}{}", "v".repeat(random.usize(..length)))
            };
            let head: Vec<String> = (0..4).map(|_| some()).collect();
            pair.send(&head);
        }
        assert!(pair.encoder.seen.capacity() * size_of::<Seen>() <= SEEN_BYTES);
    }

    /// More entries than numbers.
    #[test]
    fn numbers_of_entries_may_wrap() {
        let mut pair = Pair::new();
        for number in 0..70_000 {
            let line = [format!("a: {number}")];
            for _ in 0..2 {
                pair.send(&line);
            }
        }
    }

    #[test]
    fn a_size_that_falls_and_rises_is_announced_with_its_lowest() {
        let mut pair = Pair::new();
        for _ in 0..3 {
            pair.send(&lines("a: b"));
        }
        pair.encoder.limit(0);
        pair.encoder.limit(100);
        let mut block = Vec::new();
        pair.encoder.begin(&mut block);
        assert_eq!(block, [0x20, 0x3f, 100 - 31]);
        assert_eq!(pair.encoder.table.len(), 0);
        pair.encoder.begin(&mut block);
        assert_eq!(block.len(), 3);
    }

    #[test]
    fn what_is_no_field_line_is_refused() {
        assert!(!Encoder::default().line(b"no colon", |_| false, &mut Vec::new()));
        let mut out = Vec::new();
        assert!(Encoder::default().line(b"Connection: close", Known::is_hop_by_hop, &mut out));
        assert!(out.is_empty());
    }
}
