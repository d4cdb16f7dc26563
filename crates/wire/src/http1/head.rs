//! What request and response heads share: finding the end of a head, the kept field storage, and
//! what Connection and Transfer-Encoding say. Start lines are `request` and `response`.

use super::error::{RequestError, ResponseError};
use super::grammar::{is_token, is_value_byte, list_elements};
use super::known::Known;

/// No message may have more fields than this, whatever its [`HeadLimits`] say: it is what the
/// parser keeps room for on its stack.
pub const FIELDS_MAX: usize = 256;

/// Connection options that are compared with every field, so that their number has a bound.
const CONNECTION_OPTIONS_MAX: usize = 32;

/// HTTP versions that are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    #[default]
    Http11,
}

/// How large a head may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// The whole head: start line, fields, the empty line and every CRLF.
    pub head_max_bytes: usize,
    /// A request's target. Not used for responses.
    pub target_max_bytes: usize,
    /// Number of field lines; more than [`FIELDS_MAX`] means [`FIELDS_MAX`].
    pub fields_max: usize,
}

impl Default for HeadLimits {
    /// 32 KiB, of which the target 8 KiB (RFC 9112 section 3 asks for 8000 at least), 128 fields.
    fn default() -> HeadLimits {
        HeadLimits {
            head_max_bytes: 32 * 1024,
            target_max_bytes: 8 * 1024,
            fields_max: 128,
        }
    }
}

/// What became of the input.
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
    /// As sent; names are compared without regard to case.
    pub name: &'a [u8],
    /// Without the whitespace around it. Visible ASCII, SP, HTAB and obs-text only.
    pub value: &'a [u8],
    /// The name, classified.
    pub known: Known,
    /// Not to be forwarded as it is: it concerns this connection only (RFC 9110 section 7.6.1) or
    /// is listed in Connection, or its name would be taken for another's behind us.
    pub hop_by_hop: bool,
}

/// A message's fields in the order in which they came.
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

impl ExactSizeIterator for Fields<'_> {}

/// A field as ranges of the kept bytes; 32 bits suffice, a head being far smaller than 4 GiB.
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

/// A range of kept bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    #[inline]
    pub(super) fn new(start: usize, len: usize) -> Span {
        Span {
            start: start as u32,
            end: (start + len) as u32,
        }
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

/// The fields of a head: a copy of their bytes, and where each stands in it. Capacities are kept.
#[derive(Clone, Debug, Default)]
pub(super) struct FieldStore {
    bytes: Vec<u8>,
    rows: Vec<Row>,
    /// A bit for each [`Known`] that is present.
    present: u64,
}

impl FieldStore {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.rows.clear();
        self.present = 0;
    }

    /// Copies the bytes that the rows pushed afterwards lie in.
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
        self.rows.push(Row {
            name: span(name),
            value: span(value),
            known,
            hop_by_hop,
        });
    }

    #[inline]
    pub(super) fn iter(&self) -> Fields<'_> {
        Fields {
            bytes: &self.bytes,
            rows: self.rows.iter(),
        }
    }

    #[inline]
    pub(super) fn has(&self, known: Known) -> bool {
        self.present & (1 << known as u8) != 0
    }

    /// The first value of that name.
    #[inline]
    pub(super) fn known(&self, known: Known) -> Option<&[u8]> {
        if !self.has(known) {
            return None;
        }
        let row = self.rows.iter().find(|row| row.known == known)?;
        Some(row.value.of(&self.bytes))
    }

    /// The first value of a name, compared without regard to case.
    pub(super) fn field(&self, name: &[u8]) -> Option<&[u8]> {
        match Known::of(name) {
            Known::Other => self
                .iter()
                .find(|field| field.name.eq_ignore_ascii_case(name))
                .map(|field| field.value),
            known => self.known(known),
        }
    }

    /// Pointers and capacities, to show that they stay.
    #[cfg(test)]
    pub(super) fn capacities(&self) -> (*const u8, usize, usize) {
        (
            self.bytes.as_ptr(),
            self.bytes.capacity(),
            self.rows.capacity(),
        )
    }

    /// The one value of that name; `None` if there is none or more than one.
    pub(super) fn only(&self, known: Known) -> Option<&[u8]> {
        let mut values = self.rows.iter().filter(|row| row.known == known);
        let first = values.next()?;
        values.next().is_none().then(|| first.value.of(&self.bytes))
    }

    /// Marks every field of that name as not to be forwarded, but for the first if `keep_first`.
    pub(super) fn withhold(&mut self, known: Known, keep_first: bool) {
        let rows = self.rows.iter_mut().filter(|row| row.known == known);
        for row in rows.skip(usize::from(keep_first)) {
            row.hop_by_hop = true;
        }
    }

    /// Shortens every value of that name to its first list element.
    pub(super) fn keep_first_element(&mut self, known: Known) {
        for row in self.rows.iter_mut().filter(|row| row.known == known) {
            let value = row.value.of(&self.bytes);
            let lead = value
                .iter()
                .take_while(|&&b| matches!(b, b' ' | b'\t'))
                .count();
            let element = list_elements(value).next().map_or(0, <[u8]>::len);
            row.value = Span::new(row.value.start as usize + lead, element);
        }
    }

    /// Reads every Connection field and marks what it lists (RFC 9110 section 7.6.1).
    #[inline]
    pub(super) fn read_connection(&mut self) -> Result<ConnectionOptions, HeadFault> {
        let mut options = ConnectionOptions::default();
        if !self.has(Known::Connection) {
            return Ok(options);
        }
        let mut count = 0;
        let mut names = [Span::default(); CONNECTION_OPTIONS_MAX];
        let mut names_len = 0;
        for row in self
            .rows
            .iter()
            .filter(|row| row.known == Known::Connection)
        {
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

/// The transfer codings of a message, all its Transfer-Encoding fields together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TransferCodings {
    count: usize,
    chunked: usize,
    last_is_chunked: bool,
    malformed: bool,
}

/// What the transfer codings amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// No Transfer-Encoding.
    None,
    /// Exactly one coding, chunked.
    Chunked,
    /// Others before a final chunked.
    Unknown,
    /// Anything else.
    Malformed,
}

impl TransferCodings {
    #[inline]
    pub(super) fn read(&mut self, value: &[u8]) {
        if value.eq_ignore_ascii_case(b"chunked") {
            self.count += 1;
            self.chunked += 1;
            self.last_is_chunked = true;
            return;
        }
        for element in list_elements(value) {
            let name_len = element
                .iter()
                .position(|&b| b == b';')
                .unwrap_or(element.len());
            let name = super::grammar::trim_ows(&element[..name_len]);
            let is_chunked = name.eq_ignore_ascii_case(b"chunked");
            // chunked takes no parameters (RFC 9112 section 7.1).
            self.malformed |= !is_token(name) || (is_chunked && name_len != element.len());
            self.count += 1;
            self.chunked += usize::from(is_chunked);
            self.last_is_chunked = is_chunked;
        }
    }

    pub(super) fn coding(self) -> Coding {
        match self {
            TransferCodings { count: 0, .. } => Coding::None,
            TransferCodings {
                malformed: true, ..
            }
            | TransferCodings {
                last_is_chunked: false,
                ..
            } => Coding::Malformed,
            TransferCodings { count: 1, .. } => Coding::Chunked,
            TransferCodings { chunked: 1, .. } => Coding::Unknown,
            TransferCodings { .. } => Coding::Malformed,
        }
    }
}

/// What can be wrong with a head whichever way it travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadFault {
    BareLineFeed,
    BareCarriageReturn,
    StartLineTooLong,
    HeadTooLarge,
    TooManyFields,
    MissingColon,
    BadFieldName,
    SpaceBeforeColon,
    LineFolding,
    BadFieldValue,
    TooManyConnectionOptions,
}

impl From<HeadFault> for RequestError {
    fn from(fault: HeadFault) -> RequestError {
        match fault {
            HeadFault::BareLineFeed => RequestError::BareLineFeed,
            HeadFault::BareCarriageReturn => RequestError::BareCarriageReturn,
            HeadFault::StartLineTooLong => RequestError::TargetTooLong,
            HeadFault::HeadTooLarge => RequestError::HeadTooLarge,
            HeadFault::TooManyFields => RequestError::TooManyFields,
            HeadFault::MissingColon => RequestError::MissingColon,
            HeadFault::BadFieldName => RequestError::BadFieldName,
            HeadFault::SpaceBeforeColon => RequestError::SpaceBeforeColon,
            HeadFault::LineFolding => RequestError::LineFolding,
            HeadFault::BadFieldValue => RequestError::BadFieldValue,
            HeadFault::TooManyConnectionOptions => RequestError::TooManyConnectionOptions,
        }
    }
}

impl From<HeadFault> for ResponseError {
    fn from(fault: HeadFault) -> ResponseError {
        match fault {
            HeadFault::BareLineFeed => ResponseError::BareLineFeed,
            HeadFault::BareCarriageReturn => ResponseError::BareCarriageReturn,
            HeadFault::StartLineTooLong | HeadFault::HeadTooLarge => ResponseError::HeadTooLarge,
            HeadFault::TooManyFields => ResponseError::TooManyFields,
            HeadFault::MissingColon => ResponseError::MissingColon,
            HeadFault::BadFieldName | HeadFault::SpaceBeforeColon => ResponseError::BadFieldName,
            HeadFault::LineFolding => ResponseError::LineFolding,
            HeadFault::BadFieldValue => ResponseError::BadFieldValue,
            HeadFault::TooManyConnectionOptions => ResponseError::TooManyConnectionOptions,
        }
    }
}

/// The length of the head that `input` begins with, empty line included; `None` if its end has not
/// come. `start_line` judges the start line (without CRLF) as soon as it is there.
///
/// Line by line, and every line is judged only by the bytes up to its end: so the verdict does not
/// depend on how the bytes were split on their way.
#[inline]
pub(super) fn scan<E: From<HeadFault>>(
    input: &[u8],
    limits: &HeadLimits,
    start_line_max_bytes: usize,
    start_line: impl FnOnce(&[u8]) -> Result<(), E>,
) -> Result<Option<usize>, E> {
    let lines_max = limits.fields_max.min(FIELDS_MAX) + 1;
    let mut start_line = Some(start_line);
    let mut begin = 0;
    let mut lines = 0;
    for feed in memchr::memchr_iter(b'\n', input) {
        if lines == 0 && feed >= start_line_max_bytes {
            return Err(HeadFault::StartLineTooLong.into());
        }
        if feed >= limits.head_max_bytes {
            return Err(HeadFault::HeadTooLarge.into());
        }
        let line = &input[begin..feed];
        let [line @ .., b'\r'] = line else {
            return Err(HeadFault::BareLineFeed.into());
        };
        if let Some(start_line) = start_line.take() {
            start_line(line)?;
        } else if line.is_empty() {
            return Ok(Some(feed + 1));
        }
        lines += 1;
        if lines > lines_max {
            return Err(HeadFault::TooManyFields.into());
        }
        begin = feed + 1;
    }
    if lines == 0 && input.len() > start_line_max_bytes {
        return Err(HeadFault::StartLineTooLong.into());
    }
    if input.len() > limits.head_max_bytes {
        return Err(HeadFault::HeadTooLarge.into());
    }
    Ok(None)
}

/// Which rule the first bad field line of `section` breaks. For the error's text only, after the
/// parser has refused the section; `spaces_before_colon` if these are allowed.
#[cold]
pub(super) fn diagnose_fields(section: &[u8], spaces_before_colon: bool) -> HeadFault {
    for line in section.split(|&b| b == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        if line.contains(&b'\r') {
            return HeadFault::BareCarriageReturn;
        }
        if matches!(line[0], b' ' | b'\t') {
            return HeadFault::LineFolding;
        }
        let Some(colon) = line.iter().position(|&b| b == b':') else {
            return HeadFault::MissingColon;
        };
        let name = &line[..colon];
        if !is_token(name) {
            let spaced = !name.is_empty() && is_token(super::grammar::trim_ows(name));
            if !spaced {
                return HeadFault::BadFieldName;
            }
            if !spaces_before_colon {
                return HeadFault::SpaceBeforeColon;
            }
        }
        if !line[colon + 1..].iter().copied().all(is_value_byte) {
            return HeadFault::BadFieldValue;
        }
    }
    HeadFault::BadFieldName
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coding(values: &[&str]) -> Coding {
        let mut codings = TransferCodings::default();
        for value in values {
            codings.read(value.as_bytes());
        }
        codings.coding()
    }

    #[test]
    fn transfer_codings() {
        assert_eq!(coding(&[]), Coding::None);
        for good in ["chunked", "CHUNKED", "cHuNkEd"] {
            assert_eq!(coding(&[good]), Coding::Chunked, "{good}");
        }
        for unknown in [
            &["gzip, chunked"][..],
            &["gzip", "chunked"],
            &["x;q=1,\tchunked"],
        ] {
            assert_eq!(coding(unknown), Coding::Unknown, "{unknown:?}");
        }
        for bad in [
            &[""][..],
            &["gzip"],
            &["identity"],
            &["xchunked"],
            &["chunked, identity"],
            &["chunked", "gzip"],
            &["chunked, chunked"],
            &["chunked", "chunked"],
            &["chunked,"],
            &[",chunked"],
            &["chunked;q=1"],
            &["chunked;"],
            &["\"chunked\""],
            &["chunked foo"],
            &["chunked\x0b"],
            &["chunked", ""],
        ] {
            assert_eq!(coding(bad), Coding::Malformed, "{bad:?}");
        }
    }

    #[test]
    fn scanning_bounds_are_exact() {
        let input = b"GET / HTTP/1.1\r\nA: b\r\n\r\nrest";
        let scan_with = |head, line, fields| {
            let limits = HeadLimits {
                head_max_bytes: head,
                target_max_bytes: 0,
                fields_max: fields,
            };
            scan::<RequestError>(input, &limits, line, |_| Ok(()))
        };
        assert_eq!(scan_with(24, 16, 1), Ok(Some(24)));
        assert_eq!(scan_with(23, 16, 1), Err(RequestError::HeadTooLarge));
        assert_eq!(scan_with(24, 15, 1), Err(RequestError::TargetTooLong));
        assert_eq!(scan_with(24, 16, 0), Err(RequestError::TooManyFields));
    }
}
