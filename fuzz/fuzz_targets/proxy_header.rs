//! Any bytes as a PROXY header. A verdict is never taken back, and what is accepted is the same
//! again once Weir has rewritten it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::proxy_protocol::{
    Header, Origin, Parsed, UNIQUE_ID_MAX_BYTES, V1_MAX_BYTES, V2_MAX_BYTES, VALUE_MAX_BYTES,
    parse, write_v1, write_v2,
};

fuzz_target!(|data: &[u8]| {
    let verdict = parse(data);
    for len in [data.len() / 3, data.len() / 2, data.len().saturating_sub(1), 15, 27] {
        match parse(&data[..len.min(data.len())]) {
            Ok(Parsed::Partial) => {}
            earlier => assert_eq!(earlier, verdict),
        }
    }
    let Ok(Parsed::Complete { consumed, header }) = verdict else {
        assert!(verdict.is_err() || data.len() < V2_MAX_BYTES);
        return;
    };

    assert!(consumed <= data.len() && consumed <= V2_MAX_BYTES);
    assert_eq!(parse(&data[..consumed]), verdict);
    check_parts(&header);

    let (mut line, mut binary) = (Vec::new(), Vec::new());
    write_v1(&mut line, header.origin);
    assert!(line.len() <= V1_MAX_BYTES);
    let origin = match header.origin {
        Origin::Local => Origin::Unknown,
        other => other,
    };
    let only_origin = Header { origin, ..Header::default() };
    assert_eq!(parse(&line), whole(&line, only_origin));

    write_v2(&mut binary, &header);
    assert!(binary.len() <= V2_MAX_BYTES);
    let written = match header.origin {
        Origin::Tcp { .. } => written(header),
        origin => Header { origin, ..Header::default() },
    };
    assert_eq!(parse(&binary), whole(&binary, written));
});

fn whole<'a, E>(bytes: &[u8], header: Header<'a>) -> Result<Parsed<'a>, E> {
    Ok(Parsed::Complete { consumed: bytes.len(), header })
}

fn check_parts(header: &Header<'_>) {
    if let Origin::Tcp { source, destination } = header.origin {
        assert_eq!(source.ip(), source.ip().to_canonical());
        assert_eq!(destination.ip(), destination.ip().to_canonical());
    }
    assert!(header.unique_id.is_none_or(|id| id.len() <= UNIQUE_ID_MAX_BYTES));
    let texts = [
        header.authority,
        header.ssl.and_then(|ssl| ssl.version),
        header.ssl.and_then(|ssl| ssl.cipher),
    ];
    for text in texts.into_iter().flatten() {
        assert!(!text.chars().any(char::is_control));
    }
}

/// Without the values that are too long to be written.
fn written(header: Header<'_>) -> Header<'_> {
    Header {
        authority: header.authority.filter(|value| value.len() <= VALUE_MAX_BYTES),
        alpn: header.alpn.filter(|value| value.len() <= VALUE_MAX_BYTES),
        ssl: header.ssl.map(|mut ssl| {
            ssl.version = ssl.version.filter(|value| value.len() <= VALUE_MAX_BYTES);
            ssl.cipher = ssl.cipher.filter(|value| value.len() <= VALUE_MAX_BYTES);
            ssl.common_name = ssl.common_name.filter(|value| value.len() <= VALUE_MAX_BYTES);
            ssl
        }),
        ..header
    }
}
