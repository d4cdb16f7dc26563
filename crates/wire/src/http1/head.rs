//! Shared by request and response heads: limits, reusable field storage, and Connection options.
//! `scan` finds a head's end; start lines are in `request` and `response`.

use super::error::HeadFault;
use super::grammar::list_elements;
use super::known::Known;

/// Maximum number of fields of any message, whatever its [`HeadLimits`] say: the parser reserves
/// room for this many on its stack.
pub const FIELDS_MAX: usize = 256;

/// Maximum number of Connection options, since each is compared with every field.
const CONNECTION_OPTIONS_MAX: usize = 32;

/// Supported HTTP versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    #[default]
    Http11,
}

impl Version {
    /// Returns the version's number as used in `Via`: `1.0`, `1.1`.
    pub fn number(self) -> &'static str {
        match self {
            Version::Http10 => "1.0",
            Version::Http11 => "1.1",
        }
    }
}

/// Size limits of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// The whole head: start line, fields, the empty line and every CRLF.
    pub head_max_bytes: usize,
    /// A request's target. Not used for responses.
    pub target_max_bytes: usize,
    /// Number of field lines; more than [`FIELDS_MAX`] means [`FIELDS_MAX`].
    pub fields_max: usize,
}

impl HeadLimits {
    /// Returns the limits of a client's request to a listener with this `head_max_bytes`. The target may
    /// have 8 KiB, as by default in nginx and Apache, and the head 128 fields.
    pub const fn of_client(head_max_bytes: u32) -> HeadLimits {
        HeadLimits {
            head_max_bytes: head_max_bytes as usize,
            target_max_bytes: 8 * 1024,
            fields_max: 128,
        }
    }
}

impl Default for HeadLimits {
    /// 32 KiB, of which the target 8 KiB (RFC 9112 section 3 requires at least 8000 bytes), 128
    /// fields.
    fn default() -> HeadLimits {
        HeadLimits { head_max_bytes: 32 * 1024, target_max_bytes: 8 * 1024, fields_max: 128 }
    }
}

/// The result of parsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The head is not complete: read more and parse again from its first byte.
    Partial,
    /// The head is complete.
    Complete {
        /// Bytes of input up to and including the head's last; the body begins after them.
        consumed: usize,
    },
}

/// A field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldRef<'a> {
    /// As sent; names are compared ignoring case.
    pub name: &'a [u8],
    /// Without the whitespace around it. Visible ASCII, SP, HTAB and obs-text only.
    pub value: &'a [u8],
    /// The name, classified.
    pub known: Known,
    /// Must not be forwarded as it is: it concerns this connection only (RFC 9110 section 7.6.1) or
    /// is listed in Connection, or a server could take its name for another's.
    pub hop_by_hop: bool,
}

/// A message's fields in the order received.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    rows: std::slice::Iter<'a, Row>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = FieldRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<FieldRef<'a>> {
        self.rows.next().map(|row| row.on(self.bytes))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }
}

impl DoubleEndedIterator for Fields<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.rows.next_back().map(|row| row.on(self.bytes))
    }
}

impl ExactSizeIterator for Fields<'_> {}

/// A field as ranges of the stored bytes; 32 bits suffice, since a head is far smaller than 4 GiB.
#[derive(Clone, Copy, Debug)]
struct Row {
    name: Span,
    value: Span,
    known: Known,
    hop_by_hop: bool,
}

impl Row {
    #[inline]
    fn on<'a>(&self, bytes: &'a [u8]) -> FieldRef<'a> {
        FieldRef {
            name: self.name.of(bytes),
            value: self.value.of(bytes),
            known: self.known,
            hop_by_hop: self.hop_by_hop,
        }
    }
}

/// A range of stored bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    #[inline]
    pub(super) fn new(start: usize, len: usize) -> Span {
        Span { start: start as u32, end: (start + len) as u32 }
    }

    #[inline]
    pub(super) fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..self.end as usize]
    }

    #[inline]
    pub(super) fn of_str(self, text: &str) -> &str {
        &text[self.start as usize..self.end as usize]
    }

    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// The fields of a head: a copy of their bytes, and the position of each in it. Capacities are
/// kept.
#[derive(Clone, Debug, Default)]
pub(super) struct FieldStore {
    bytes: Vec<u8>,
    rows: Vec<Row>,
    /// One bit for each [`Known`] that is present.
    present: u64,
}

impl FieldStore {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
        self.present = 0;
    }

    /// Copies the bytes that contain the rows pushed afterwards.
    #[inline]
    pub(super) fn start(&mut self, section: &[u8]) {
        self.clear();
        self.bytes.extend_from_slice(section);
    }

    /// Adds a field whose name and value are slices of the section given to `start`, which begins
    /// at address `base`.
    #[inline]
    pub(super) fn push(&mut self, base: usize, name: &[u8], value: &[u8], known: Known) {
        let span = |part: &[u8]| Span::new(part.as_ptr().addr() - base, part.len());
        let hop_by_hop = match known {
            Known::Other => Known::is_masked(name),
            _ => known.is_hop_by_hop(),
        };
        self.present |= 1 << known as u8;
        self.rows.push(Row { name: span(name), value: span(value), known, hop_by_hop });
    }

    #[inline]
    pub(super) fn iter(&self) -> Fields<'_> {
        Fields { bytes: &self.bytes, rows: self.rows.iter() }
    }

    #[inline]
    pub(super) fn has(&self, known: Known) -> bool {
        self.present & (1 << known as u8) != 0
    }

    /// Returns the first value of that name.
    #[inline]
    pub(super) fn known(&self, known: Known) -> Option<&[u8]> {
        if !self.has(known) {
            return None;
        }
        let row = self.rows.iter().find(|row| row.known == known)?;
        Some(row.value.of(&self.bytes))
    }

    /// Returns the first value of a name, compared ignoring case.
    pub(super) fn field(&self, name: &[u8]) -> Option<&[u8]> {
        match Known::of(name) {
            Known::Other | Known::XForwarded => self
                .iter()
                .find(|field| field.name.eq_ignore_ascii_case(name))
                .map(|field| field.value),
            known => self.known(known),
        }
    }

    /// Pointers and capacities, to show that they do not change.
    #[cfg(test)]
    pub(super) fn capacities(&self) -> (*const u8, usize, usize) {
        (self.bytes.as_ptr(), self.bytes.capacity(), self.rows.capacity())
    }

    /// Returns the only value of that name; `None` if there is none or more than one.
    pub(super) fn only(&self, known: Known) -> Option<&[u8]> {
        let mut values = self.rows.iter().filter(|row| row.known == known);
        let first = values.next()?;
        values.next().is_none().then(|| first.value.of(&self.bytes))
    }

    /// Returns the position of `part`, a slice of a field returned by this store.
    pub(super) fn span_of(&self, part: &[u8]) -> Span {
        Span::new(part.as_ptr().addr() - self.bytes.as_ptr().addr(), part.len())
    }

    /// Returns the bytes at a position.
    #[inline]
    pub(super) fn at(&self, span: Span) -> &[u8] {
        span.of(&self.bytes)
    }

    /// Marks every field of that name as not to be forwarded, except the first if `keep_first`.
    pub(super) fn withhold(&mut self, known: Known, keep_first: bool) {
        let rows = self.rows.iter_mut().filter(|row| row.known == known);
        for row in rows.skip(usize::from(keep_first)) {
            row.hop_by_hop = true;
        }
    }

    /// Removes the fields of these names.
    pub(super) fn remove(&mut self, is_removed: impl Fn(&[u8]) -> bool) {
        let bytes = &self.bytes;
        self.rows.retain(|row| !is_removed(row.name.of(bytes)));
    }

    /// Shortens every value of that name to its first list element.
    pub(super) fn keep_first_element(&mut self, known: Known) {
        for row in self.rows.iter_mut().filter(|row| row.known == known) {
            let value = row.value.of(&self.bytes);
            let lead = value.iter().take_while(|&&b| matches!(b, b' ' | b'\t')).count();
            let element = list_elements(value).next().map_or(0, <[u8]>::len);
            row.value = Span::new(row.value.start as usize + lead, element);
        }
    }

    /// Parses every Connection field and marks the fields that it lists (RFC 9110 section 7.6.1).
    #[inline]
    pub(super) fn read_connection(&mut self) -> Result<ConnectionOptions, HeadFault> {
        let mut options = ConnectionOptions::default();
        if !self.has(Known::Connection) {
            return Ok(options);
        }
        let mut count = 0;
        let mut names = [Span::default(); CONNECTION_OPTIONS_MAX];
        let mut names_len = 0;
        for row in self.rows.iter().filter(|row| row.known == Known::Connection) {
            let value = row.value.of(&self.bytes);
            let base = value.as_ptr().addr();
            for option in list_elements(value) {
                count += 1;
                if count > CONNECTION_OPTIONS_MAX {
                    return Err(HeadFault::TooManyConnectionOptions);
                }
                if option.eq_ignore_ascii_case(b"keep-alive") {
                    options.keep_alive = true;
                } else if option.eq_ignore_ascii_case(b"close") {
                    options.close = true;
                } else if option.eq_ignore_ascii_case(b"upgrade") {
                    options.upgrade = true;
                } else if !option.is_empty() {
                    let start = row.value.start as usize + (option.as_ptr().addr() - base);
                    names[names_len] = Span::new(start, option.len());
                    names_len += 1;
                }
            }
        }
        for name in &names[..names_len] {
            let name = name.of(&self.bytes);
            for row in &mut self.rows {
                if !row.known.is_protected() && row.name.of(&self.bytes).eq_ignore_ascii_case(name)
                {
                    row.hop_by_hop = true;
                }
            }
        }
        Ok(options)
    }
}

/// What the Connection fields say about the connection itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ConnectionOptions {
    pub(super) close: bool,
    pub(super) keep_alive: bool,
    pub(super) upgrade: bool,
}

impl ConnectionOptions {
    /// RFC 9112 section 9.3.
    #[inline]
    pub(super) fn persists(self, version: Version) -> bool {
        !self.close && (version == Version::Http11 || self.keep_alive)
    }
}
