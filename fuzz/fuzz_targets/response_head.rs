//! Any bytes as a response head. What is accepted must be inside its bounds, framed in one way
//! only, and the same again once Weir has rewritten it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::http1::encode::{put_field, put_status_line};
use wire::http1::{HeadLimits, Known, Parsed, ResponseBody, ResponseHead, Version, parse_response};

const LIMITS: HeadLimits = HeadLimits { head_max_bytes: 2048, target_max_bytes: 0, fields_max: 32 };

fuzz_target!(|data: &[u8]| {
    let mut head = ResponseHead::default();
    let verdict = parse_response(data, &LIMITS, &mut head);
    let mut again = ResponseHead::default();
    for len in [data.len() / 3, data.len() / 2, data.len().saturating_sub(1)] {
        match parse_response(&data[..len], &LIMITS, &mut again) {
            Ok(Parsed::Complete { .. }) => assert!(verdict.is_ok()),
            Ok(Parsed::Partial) => {}
            Err(_) => assert!(verdict.is_err()),
        }
    }
    let Ok(Parsed::Complete { consumed }) = verdict else {
        return;
    };

    assert!(consumed <= data.len());
    assert!(data[..consumed].ends_with(b"\r\n\r\n"));
    assert!((100..=999).contains(&head.status()));
    assert!(head.fields().len() <= LIMITS.fields_max);
    assert_eq!(head.body(true), ResponseBody::None);
    for field in head.fields() {
        assert!(!field.name.is_empty() && field.name.is_ascii());
        assert!(!field.name.iter().any(|b| b" \t:\r\n\0".contains(b)));
        assert!(field.value.iter().all(|&b| b == b'\t' || b >= b' ' && b != 0x7f));
    }

    // Everything, written by us.
    let mut written = Vec::new();
    put_status_line(&mut written, head.version(), head.status(), head.reason());
    for field in head.fields() {
        put_field(&mut written, field.name, field.value);
    }
    written.extend_from_slice(b"\r\n");
    reread(&head, &written, &mut again);
    assert_eq!(head.version(), again.version());
    assert_eq!(head.keep_alive(), again.keep_alive());
    assert_eq!(head.fields().len(), again.fields().len());

    // As a gateway would send it on.
    written.clear();
    put_status_line(&mut written, Version::Http11, head.status(), head.reason());
    for field in head.fields().filter(|field| !field.hop_by_hop) {
        put_field(&mut written, field.name, field.value);
    }
    if head.body(false) == ResponseBody::Chunked {
        put_field(&mut written, b"Transfer-Encoding", b"chunked");
    }
    written.extend_from_slice(b"\r\n");
    reread(&head, &written, &mut again);
    let lengths = again.fields().filter(|field| field.known == Known::ContentLength).count();
    assert!(lengths <= 1);
    assert!(lengths == 0 || !matches!(head.status(), 100..=199 | 204));
});

fn reread(head: &ResponseHead, written: &[u8], again: &mut ResponseHead) {
    let limits = HeadLimits { head_max_bytes: usize::MAX, fields_max: 64, ..LIMITS };
    let verdict = parse_response(written, &limits, again);
    let whole = Ok(Parsed::Complete { consumed: written.len() });
    assert_eq!(verdict, whole, "{}", written.escape_ascii());
    assert_eq!(head.status(), again.status());
    assert_eq!(head.body(false), again.body(false));
}
