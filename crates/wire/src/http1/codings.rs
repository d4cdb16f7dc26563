//! Evaluates the Transfer-Encoding fields of a message (RFC 9112 sections 6.1 and 7). `request` and
//! `response` decide how to respond.

use super::grammar::{is_token, list_elements, trim_ows};

/// The transfer codings of a message, from all of its Transfer-Encoding fields.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TransferCodings {
    count: usize,
    chunked: usize,
    last_is_chunked: bool,
    malformed: bool,
}

/// The result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// No Transfer-Encoding.
    None,
    /// Exactly one coding, chunked.
    Chunked,
    /// Other codings before a final chunked.
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
            let name_len = element.iter().position(|&b| b == b';').unwrap_or(element.len());
            let name = trim_ows(&element[..name_len]);
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
            TransferCodings { malformed: true, .. }
            | TransferCodings { last_is_chunked: false, .. } => Coding::Malformed,
            TransferCodings { count: 1, .. } => Coding::Chunked,
            TransferCodings { chunked: 1, .. } => Coding::Unknown,
            TransferCodings { .. } => Coding::Malformed,
        }
    }
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
        for unknown in [&["gzip, chunked"][..], &["gzip", "chunked"], &["x;q=1,\tchunked"]] {
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
}
