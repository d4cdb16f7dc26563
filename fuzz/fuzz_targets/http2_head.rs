//! Any request that the parser accepts, sent over HTTP/2 from one engine to another. What arrives
//! must be one whole head with the same method and the same authority, and fields that were sent;
//! or nothing is sent at all.
#![no_main]

use http2::{Config, Connection, Event, Role, Scratch, WebSocket};
use libfuzzer_sys::fuzz_target;
use model::Moment;
use wire::http1::{HeadLimits, Known, Parsed, RequestBody, RequestHead, parse_request};

const CONFIG: Config = Config {
    streams_max: 10,
    head_max_bytes: 65_536,
    window_bytes: 65_535,
    window_max_bytes: 65_535,
    connection_window_bytes: 70_000,
    websocket: WebSocket { key: || "AAAA".to_owned(), accept: |_| "BBBB".to_owned() },
};

const LIMITS: HeadLimits =
    HeadLimits { head_max_bytes: 65_536, target_max_bytes: 65_536, fields_max: 128 };

fuzz_target!(|data: &[u8]| {
    let mut sent = RequestHead::default();
    let Ok(Parsed::Complete { consumed }) = parse_request(data, &LIMITS, &mut sent) else {
        return;
    };
    // The proxy writes an Upgrade only where it was asked for.
    if sent.known(Known::Upgrade).is_some() && sent.upgrade().is_none() {
        return;
    }
    let Some(text) = carried(&data[..consumed]) else {
        return;
    };
    let mut read = RequestHead::default();
    match parse_request(&text, &LIMITS, &mut read) {
        Ok(parsed) => {
            let whole = Parsed::Complete { consumed: text.len() };
            assert_eq!(parsed, whole, "{}", text.escape_ascii());
        }
        // The parser refuses what it would refuse from any client.
        Err(_) => return,
    }
    let upgrades = read.upgrade().is_some();
    assert_eq!(read.method(), sent.method());
    assert_eq!(read.authority(), sent.authority());
    if !upgrades {
        let is_empty = matches!(read.body(), RequestBody::None | RequestBody::Length(0));
        assert!(is_empty, "{}", text.escape_ascii());
    }
    for field in read.fields().filter(|_| !upgrades) {
        let is_same = |name: &[u8]| name.eq_ignore_ascii_case(field.name);
        assert!(
            sent.fields().any(|sent| is_same(sent.name)) || is_same(b"host"),
            "{}",
            text.escape_ascii()
        );
    }
});

/// Sends a head without content; returns the head that arrives.
fn carried(text: &[u8]) -> Option<Vec<u8>> {
    let now = Moment::ZERO;
    let mut client = Connection::new(Role::Client { is_https: true }, CONFIG, now);
    let mut server = Connection::new(Role::Server, CONFIG, now);
    let mut scratch = Scratch::default();
    pass(&mut server, &mut client, &mut scratch);
    let key = client.open();
    client.send_head(key, text, true).ok()?;
    pass(&mut client, &mut server, &mut scratch).then(|| scratch.text().to_vec())
}

/// Passes the output of one side to the other; returns whether a request arrived.
fn pass(from: &mut Connection, to: &mut Connection, scratch: &mut Scratch) -> bool {
    let bytes = from.output().concat();
    from.sent(bytes.len());
    let (_, event) = to.receive(&bytes, scratch, Moment::ZERO);
    match event {
        Some(Event::Request { .. }) => true,
        // The parser of HTTP/1.1 accepts what HTTP/2 does not, such as a method's characters.
        Some(Event::Refused(_)) | None => false,
        Some(other) => panic!("{other:?} by {}", bytes.escape_ascii()),
    }
}
