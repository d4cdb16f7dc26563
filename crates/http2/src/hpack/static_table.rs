//! The static table of RFC 7541 appendix A.

use super::field::{Kind, Line};

/// The number of entries; their indices begin with 1.
pub(crate) const STATIC_LEN: usize = 61;

macro_rules! lines {
    ($(($name:literal, $value:literal))+) => {
        [$(Line {
            bytes: concat!($name, ": ", $value, "\r\n").as_bytes(),
            name_len: $name.len(),
            kind: Kind::of_name($name.as_bytes()),
        }),+]
    };
}

static LINES: [Line<'static>; STATIC_LEN] = LINES_CONST;
const LINES_CONST: [Line<'static>; STATIC_LEN] = lines! {
    (":authority", "")
    (":method", "GET")
    (":method", "POST")
    (":path", "/")
    (":path", "/index.html")
    (":scheme", "http")
    (":scheme", "https")
    (":status", "200")
    (":status", "204")
    (":status", "206")
    (":status", "304")
    (":status", "400")
    (":status", "404")
    (":status", "500")
    ("accept-charset", "")
    ("accept-encoding", "gzip, deflate")
    ("accept-language", "")
    ("accept-ranges", "")
    ("accept", "")
    ("access-control-allow-origin", "")
    ("age", "")
    ("allow", "")
    ("authorization", "")
    ("cache-control", "")
    ("content-disposition", "")
    ("content-encoding", "")
    ("content-language", "")
    ("content-length", "")
    ("content-location", "")
    ("content-range", "")
    ("content-type", "")
    ("cookie", "")
    ("date", "")
    ("etag", "")
    ("expect", "")
    ("expires", "")
    ("from", "")
    ("host", "")
    ("if-match", "")
    ("if-modified-since", "")
    ("if-none-match", "")
    ("if-range", "")
    ("if-unmodified-since", "")
    ("last-modified", "")
    ("link", "")
    ("location", "")
    ("max-forwards", "")
    ("proxy-authenticate", "")
    ("proxy-authorization", "")
    ("range", "")
    ("referer", "")
    ("refresh", "")
    ("retry-after", "")
    ("server", "")
    ("set-cookie", "")
    ("strict-transport-security", "")
    ("transfer-encoding", "")
    ("user-agent", "")
    ("vary", "")
    ("via", "")
    ("www-authenticate", "")
};

/// Returns the entry with this index.
pub(crate) fn line(index: usize) -> Option<Line<'static>> {
    LINES.get(index.checked_sub(1)?).copied()
}

/// Returns the index of the entry with this name, which is in lower case and not a pseudo-header
/// field's.
pub(crate) fn index_of_name(name: &[u8]) -> Option<usize> {
    let (start, end) = (*LENGTHS.get(name.len())?, *LENGTHS.get(name.len() + 1)?);
    let candidates = &BY_LENGTH[usize::from(start)..usize::from(end)];
    let found = candidates.iter().find(|&&index| LINES[usize::from(index) - 1].name() == name)?;
    Some(usize::from(*found))
}

/// The first entry that is not a pseudo-header field.
const REGULAR: usize = 15;
const NAME_MAX_BYTES: usize = 27;

/// The regular entries' indices by the length of their names, and where those of each length begin.
static BY_LENGTH: [u8; STATIC_LEN + 1 - REGULAR] = by_length().0;
static LENGTHS: [u8; NAME_MAX_BYTES + 2] = by_length().1;

const fn by_length() -> ([u8; STATIC_LEN + 1 - REGULAR], [u8; NAME_MAX_BYTES + 2]) {
    let (mut order, mut starts) = ([0; STATIC_LEN + 1 - REGULAR], [0; NAME_MAX_BYTES + 2]);
    let (mut length, mut at) = (0, 0);
    while length <= NAME_MAX_BYTES {
        starts[length] = at as u8;
        let mut index = REGULAR;
        while index <= STATIC_LEN {
            if LINES_CONST[index - 1].name_len == length {
                order[at] = index as u8;
                at += 1;
            }
            index += 1;
        }
        length += 1;
    }
    starts[length] = at as u8;
    (order, starts)
}

/// Indices of pseudo-header fields, by name or by name and value.
pub(crate) mod index {
    pub(crate) const AUTHORITY: usize = 1;
    pub(crate) const METHOD_GET: usize = 2;
    pub(crate) const METHOD_POST: usize = 3;
    pub(crate) const PATH_ROOT: usize = 4;
    pub(crate) const SCHEME_HTTP: usize = 6;
    pub(crate) const SCHEME_HTTPS: usize = 7;
    pub(crate) const STATUS_200: usize = 8;
    pub(crate) const CONTENT_LENGTH: usize = 28;
    /// The statuses that have entries, in their order from [`STATUS_200`].
    pub(crate) const STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_by_their_names() {
        for entry in 1..=STATIC_LEN {
            let line = line(entry).unwrap();
            assert_ne!(line.kind, Kind::Invalid);
            if !line.kind.is_pseudo() {
                assert_eq!(index_of_name(line.name()), Some(entry));
            }
        }
        assert_eq!((line(0).is_none(), line(62).is_none()), (true, true));
        assert_eq!(index_of_name(b"x-other"), None);
        assert_eq!(line(index::STATUS_200).unwrap().value(), b"200");
        assert_eq!(line(index::PATH_ROOT).unwrap().value(), b"/");
        assert_eq!(line(index::CONTENT_LENGTH).unwrap().name(), b"content-length");
    }
}
