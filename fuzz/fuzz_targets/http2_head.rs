//! Any message head that HTTP/2 can carry, made of the input line by line: method, target,
//! authority, then fields. The text that is made of it must be one head and nothing more: whatever
//! the parser takes of it has the fields that the peer sent, and says of the body what the stream
//! says.
#![no_main]

use http::{HeaderName, HeaderValue, Method, Request, Uri};
use libfuzzer_sys::fuzz_target;
use wire::http1::{HeadLimits, Known, Parsed, RequestBody, RequestHead, parse_request};
use wire::http2::{read_request, read_trailers, write_request, write_trailers};

const LIMITS: HeadLimits = HeadLimits {
    head_max_bytes: 16_384,
    target_max_bytes: 4096,
    fields_max: 128,
};

fuzz_target!(|data: &[u8]| {
    let Some(head) = request(data) else { return };
    let ended = data.len() % 2 == 0;
    let mut text = Vec::new();
    write_request(&head, None, ended, &mut text);

    let mut read = RequestHead::default();
    let verdict = parse_request(&text, &LIMITS, &mut read);
    if let Ok(parsed) = verdict {
        let whole = Parsed::Complete {
            consumed: text.len(),
        };
        assert_eq!(parsed, whole, "{}", text.escape_ascii());
        assert_eq!(read.method(), head.method().as_str());
        let sent = |name: &[u8]| {
            head.headers()
                .keys()
                .any(|key| key.as_str().as_bytes().eq_ignore_ascii_case(name))
        };
        for field in read.fields() {
            let ours = matches!(field.known, Known::Host | Known::TransferEncoding);
            assert!(ours || sent(field.name), "{}", text.escape_ascii());
        }
        assert!(read.upgrade().is_none(), "only an extended CONNECT asks for one");
        if !head.headers().contains_key("content-length") {
            let expected = if ended {
                RequestBody::None
            } else {
                RequestBody::Chunked
            };
            assert_eq!(read.body(), expected, "{}", text.escape_ascii());
        }
    }
    // Towards a server of HTTP/2 the text is read back, or refused; never a panic.
    let _ = read_request(&text, "https");

    let mut lines = Vec::new();
    write_trailers(head.headers(), &mut lines);
    if let Ok(trailers) = read_trailers(&lines) {
        assert!(trailers.len() <= head.headers().len());
    }
});

fn request(data: &[u8]) -> Option<Request<()>> {
    let mut lines = data.split(|&byte| byte == b'\n');
    let method = Method::from_bytes(lines.next()?).ok()?;
    let target = lines.next()?;
    let authority = lines.next()?;
    let uri = Uri::builder()
        .scheme("https")
        .authority(authority)
        .path_and_query(target);
    let mut head = Request::new(());
    *head.method_mut() = method;
    *head.uri_mut() = uri.build().ok()?;
    for line in lines {
        let colon = line.iter().position(|&byte| byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        let value = HeaderValue::from_bytes(&line[colon + 1..]).ok()?;
        head.headers_mut().append(name, value);
    }
    Some(head)
}
