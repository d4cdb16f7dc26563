//! `CDN-Loop` (RFC 8586): counts how often a request has already passed one instance. The proxy
//! decides what to do about a loop.

use super::grammar::{list_elements, trim_ows};
use super::known::Known;
use super::request::RequestHead;

impl RequestHead {
    /// Counts how often `id` occurs in the CDN-Loop fields: once for each time that the instance
    /// with that ID has forwarded the request. Parameters after an ID do not matter (RFC 8586
    /// section 2).
    pub fn cdn_loop_passes(&self, id: &[u8]) -> usize {
        if self.known(Known::CdnLoop).is_none() {
            return 0;
        }
        self.fields()
            .filter(|field| field.known == Known::CdnLoop)
            .flat_map(|field| list_elements(field.value))
            .filter(|info| {
                let own = info.split(|&byte| byte == b';').next().unwrap_or_default();
                trim_ows(own) == id
            })
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HeadLimits, Parsed, parse_request};
    use super::*;

    #[test]
    fn passes_are_counted_over_fields_lists_and_parameters() {
        let cases = [
            ("", 0),
            ("CDN-Loop: weir-1\r\n", 1),
            ("cdn-loop: weir-1, weir-1 ,other\r\nX: y\r\nCDN-Loop: weir-1\r\n", 3),
            ("CDN-Loop: weir-1; a=b, weir-1;c, weir-1 ; d=\"e\"\r\n", 3),
            ("CDN-Loop: weir-12, xweir-1, weir-1x, WEIR-1\r\n", 0),
            ("CDN_Loop: weir-1\r\nVia: weir-1\r\n", 0),
        ];
        for (fields, passes) in cases {
            let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
            let mut head = RequestHead::default();
            let parsed = parse_request(text.as_bytes(), &HeadLimits::default(), &mut head);
            assert_eq!(parsed, Ok(Parsed::Complete { consumed: text.len() }), "{fields}");
            assert_eq!(head.cdn_loop_passes(b"weir-1"), passes, "{fields}");
        }
    }
}
