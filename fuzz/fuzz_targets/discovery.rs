//! Any bytes as what a source of servers answers. The first byte chooses the parser, by a letter that the seeds
//! use. What is accepted is bounded, and what is refused has one line that a terminal shows as it is.
#![no_main]

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use discovery::consul::tags::{
    Published, ROUTES_MAX, SERVICE_ROUTES_MAX, TAG_BYTES_MAX, published, settle,
};
use discovery::etcd::{self, Keys, Lines};
use discovery::prometheus::{self, Options};
use discovery::srv::{self, Record};
use discovery::{
    Answer, REFUSED_MAX, ROWS_MAX, Saved, SavedService, ServiceSource, consul, nomad, rows,
};
use libfuzzer_sys::fuzz_target;
use model::{
    Discover, Hold, HostPattern, ListedLimits, Moment, PathMatch, RouteTagFormat, ServerSource,
};

/// The name of a file, with a character that must not be shown.
const OBJECT: &str = "a\n.json";

/// The identity of the source in saved servers, as in the seeds.
const IDENTITY: &str = "s";

fuzz_target!(|data: &[u8]| {
    let Some((&parser, data)) = data.split_first() else { return };
    for limits in [ListedLimits::Each, ListedLimits::Added] {
        match parser {
            b'c' => check(consul::instances(data, consul::Reading { limits, port: None })),
            b'n' => {
                let tag = (limits == ListedLimits::Added).then(|| "v2".into());
                check(nomad::registrations(data, &nomad::Reading { limits, port: None, tag }));
            }
            b'e' => etcd_stream(data, limits),
            b'v' => etcd_values(data, limits),
            _ => {}
        }
    }
    for port in [None, Some(8080)] {
        match parser {
            b'd' => check(srv::servers(&records(data), port)),
            b't' => check(rows::toml(data, OBJECT, port)),
            b'j' => check(prometheus::json(data, OBJECT, &Options { port })),
            b'y' => check(prometheus::yaml(data, OBJECT, &Options { port })),
            _ => {}
        }
    }
    match parser {
        b's' => saved(data),
        b'r' => routes(data),
        _ => {}
    }
});

fn check(answer: Result<Answer, String>) {
    let answer = match answer {
        Ok(answer) => answer,
        Err(why) => return assert_line(&why),
    };
    assert!(answer.rows.len() <= ROWS_MAX && answer.refused.len() <= REFUSED_MAX);
    assert!(answer.refused.len() as u64 <= answer.refused_count);
    let mut targets: Vec<_> = answer.rows.iter().map(|row| row.server.target.to_string()).collect();
    targets.sort_unstable();
    assert!(targets.windows(2).all(|pair| pair[0] != pair[1]), "a server that is listed twice");
    for row in &answer.rows {
        assert!(row.server.weight <= 1_000 && row.server.in_flight_max != Some(0));
        assert!(row.object.len() <= 256 && !row.object.contains(char::is_control));
    }
    for refused in &answer.refused {
        assert!(refused.object.len() <= 256 && !refused.object.contains(char::is_control));
        assert_line(&refused.why);
    }
}

fn assert_line(why: &str) {
    assert!(!why.is_empty() && why.len() <= 512 && !why.contains(char::is_control), "{why:?}");
}

/// The first line is a list of keys, the others are messages of a watch, in chunks of a length that the data gives.
fn etcd_stream(data: &[u8], limits: ListedLimits) {
    let first = data.iter().position(|&byte| byte == b'\n').unwrap_or(data.len());
    let (list, stream) = data.split_at(first);
    let mut keys = match Keys::listed(list, "/web/", etcd::Reading { limits, port: None }) {
        Ok(keys) => keys,
        Err(why) => {
            assert_line(&why);
            let (why, needs_token) = etcd::refusal(500, list, str::to_owned);
            assert_line(&why);
            assert!(!needs_token || !list.is_empty());
            let _ = etcd::token(list).map_err(|why| assert_line(&why));
            return;
        }
    };
    check(Ok(keys.answer()));
    let mut lines = Lines::new();
    let mut taken = Vec::new();
    for chunk in stream.chunks(1 + stream.len() % 61) {
        lines.push(chunk);
        while let Some(line) = lines.next_line().expect("shorter than a line may be") {
            taken.push(line.to_vec());
            let before = keys.revision();
            let _ = keys.on_message(line).map_err(|why| assert_line(&why));
            assert!(keys.revision() >= before);
            check(Ok(keys.answer()));
        }
    }
    let end = stream.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let whole = stream[..end].split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    assert!(whole.eq(taken.iter().map(Vec::as_slice)), "lines differ from those of the stream");
}

/// Values of keys, divided by the byte 0.
fn etcd_values(data: &[u8], limits: ListedLimits) {
    let kvs = data.split(|&byte| byte == 0).take(8).enumerate().map(|(at, value)| {
        let [key, value] =
            [format!("/web/{at}").as_bytes(), value].map(|bytes| BASE64_STANDARD.encode(bytes));
        format!(r#"{{"key":"{key}","mod_revision":"1","value":"{value}"}}"#)
    });
    let kvs = kvs.collect::<Vec<_>>().join(",");
    let list = format!(r#"{{"header":{{"revision":"9"}},"kvs":[{kvs}]}}"#);
    let keys = Keys::listed(list.as_bytes(), "/web/", etcd::Reading { limits, port: Some(80) });
    check(Ok(keys.expect("a valid list").answer()));
}

/// Records of 6 bytes, the length of a name, and the name.
fn records(mut data: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    while let [a, b, c, d, e, f, length, rest @ ..] = data {
        let (name, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        data = rest;
        records.push(Record {
            priority: u16::from_be_bytes([*a, *b]),
            weight: u16::from_be_bytes([*c, *d]),
            port: u16::from_be_bytes([*e, *f]),
            target: String::from_utf8_lossy(name).into_owned(),
        });
    }
    records
}

/// What is restored from a file is the same again once it has been saved.
fn saved(data: &[u8]) {
    let saved = match Saved::parse(data) {
        Ok(saved) => saved,
        Err(why) => return assert_line(&why),
    };
    let again = Saved::parse(&saved.bytes()).expect("a file that Weir wrote");
    assert_eq!(saved.services, again.services);
    for service in saved.services.values() {
        let source = restored(service);
        let state = source.saved().expect("the servers of this source");
        assert_eq!(servers(&source), servers(&restored(&state)));
    }
}

fn restored(service: &SavedService) -> ServiceSource {
    let policy = Discover {
        source: ServerSource::Consul { service: "web".into(), tag: None },
        port: None,
        limits: ListedLimits::Each,
        hold: Hold { share: 0.5, max: Duration::from_secs(60) },
        saved: true,
        kept_max: None,
    };
    let parts = [None, Some("dc1".into())];
    let mut source = ServiceSource::new(Arc::new(policy), IDENTITY.into(), parts);
    source.restore(service, Moment::ZERO);
    source
}

fn servers(source: &ServiceSource) -> Vec<String> {
    source.servers().map(|one| format!("{:?}", one.server)).collect()
}

/// Routes that services publish. Their hosts are allowed, and after a decision each has one owner.
fn routes(data: &[u8]) {
    let allowed = [
        HostPattern::Exact("web.example".to_owned()),
        HostPattern::Wildcard("apps.example".to_owned()),
    ];
    let published = match published(data, RouteTagFormat::ALL, &allowed, &[]) {
        Ok(published) => published,
        Err(why) => return assert_line(&why),
    };
    check_routes(&published);
    let settled = settle(&[], published.clone());
    check_routes(&settled);
    let mut places = HashSet::new();
    assert!(settled.routes.iter().all(|route| places.insert((&route.host, &route.path))));
    let of_all = |all: &Published| all.routes.len() as u64 + all.refused.count;
    assert_eq!(of_all(&published), of_all(&settled));
    let again = settle(&settled.routes, published.clone());
    assert_eq!(again, settled);
    // What the last service had before, it keeps.
    let last = published.routes.last().map(|route| route.service.clone());
    let had: Vec<_> = published
        .routes
        .iter()
        .filter(|one| Some(&one.service) == last.as_ref())
        .cloned()
        .collect();
    let kept = settle(&had, published).routes;
    assert!(had.iter().all(|route| kept.contains(route)));
}

fn check_routes(published: &Published) {
    let Published { routes, listed, refused } = published;
    assert!(routes.iter().all(|route| listed.contains(&*route.service)));
    assert!(routes.len() <= ROUTES_MAX && refused.examples.len() <= REFUSED_MAX);
    assert!(refused.examples.len() as u64 <= refused.count);
    for refused in &refused.examples {
        assert!(refused.object.len() <= 256 && !refused.object.contains(char::is_control));
        assert_line(&refused.why);
    }
    for of_service in routes.chunk_by(|one, next| one.service == next.service) {
        assert!(of_service.len() <= SERVICE_ROUTES_MAX);
    }
    assert!(routes.windows(2).all(|pair| pair[0].service <= pair[1].service));
    for route in routes {
        let host = route.host.to_string();
        assert!(host == "web.example" || host.ends_with(".apps.example"), "{host}");
        assert!(route.tag.len() <= TAG_BYTES_MAX);
        let (PathMatch::Prefix(path) | PathMatch::Exact(path)) = &route.path;
        assert!(!model::path::has_dot_segments(path) && model::path::canonical(path) == *path);
        if let Some(strip) = &route.strip {
            assert!(strip.starts_with('/') && !strip.ends_with('/') && path.starts_with(&**strip));
        }
    }
}
