//! Captures made to exhaust their reader: what was not followed is reported, in text and JSON.

use std::time::Duration;

use e2e::{Process, Scene, binary, run};
use serde_json::Value;

use crate::packets::{ACK, Frame, SYN, Segment, ethernet, ipv4, pcap};

const START_NS: u64 = 1_600_000_000_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// A frame of raw IP.
fn raw(time_ns: u64, bytes: Vec<u8>) -> Frame {
    Frame::new(START_NS + time_ns, 101, bytes)
}

fn segment(port: u16, flags: u16, sequence: u32) -> Segment {
    Segment { ports: [port, 80], flags, sequence, window: 100, ..Segment::default() }
}

/// The report on `frames`.
fn text(scene: &Scene, frames: &[Frame], words: &[&str]) -> String {
    let path = scene.file("hostile.pcap", pcap(frames, true, true));
    let said = run(scene, &[&["trace", &path.to_string_lossy()], words].concat());
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    said.stdout
}

/// The report's head, up to its first table, and the JSON.
fn analysed(scene: &Scene, frames: &[Frame], words: &[&str]) -> (String, Value) {
    let said = text(scene, frames, words);
    let path = scene.folder().join("hostile.pcap");
    let json = run(scene, &[&["trace", &path.to_string_lossy(), "--json"], words].concat());
    assert_eq!(json.code, Some(0), "{}", json.stderr);
    let head = said.split("\n\n").next().unwrap_or_default().to_owned();
    (head, serde_json::from_str(&json.stdout).expect("JSON"))
}

#[test]
fn what_is_beyond_a_bound_is_said() {
    let Some(scene) = Scene::new("trace-hostile", &[]) else { return };

    let syns: Vec<Frame> =
        (0..50).map(|n| raw(n, segment(1_000 + n as u16, SYN, 7).ipv4())).collect();
    let (head, json) = analysed(&scene, &syns, &["--connections-max", "10"]);
    assert!(
        head.contains("Not analysed: 40 segments of connections beyond the first 10"),
        "{head}"
    );
    assert_eq!(
        (&json["segments_not_analysed"], &json["connections_in_all"]),
        (&40.into(), &10.into())
    );
    assert_eq!(json["totals"]["segments"], 50);

    // First fragments whose rest never comes: 1,024 packets may wait.
    let first = |n: u16| ipv4([10, 0, 0, 1], [10, 0, 0, 2], 6, n, 0x2000, &[0; 24]);
    let fragments: Vec<Frame> = (0..1_100).map(|n| raw(n.into(), first(n))).collect();
    let (head, json) = analysed(&scene, &fragments, &[]);
    assert!(head.contains("Not put together: 76 fragments"), "{head}");
    assert_eq!(json["fragments_dropped"], 76);

    // A tag within a tag within a tag …
    let tags = [0, 1, 0x81, 0].repeat(20);
    let nested = [&tags[..], &[0, 1, 8, 0], &segment(1, ACK, 1).ipv4()].concat();
    let nested = Frame::new(START_NS, 1, ethernet(0x8100, &nested));
    let (head, json) = analysed(&scene, &[nested], &[]);
    assert!(head.contains("Not looked into: 1 packet with more than 16 headers"), "{head}");
    assert_eq!((&json["packets_too_deep"], &json["totals"]["segments"]), (&1.into(), &0.into()));

    // A frame in each of more intervals than are kept.
    let apart: Vec<Frame> =
        (0..100_001).map(|n| raw(n * SECOND_NS, segment(1, ACK, 1).ipv4())).collect();
    let said = text(&scene, &apart, &[]);
    assert!(said.contains("its intervals are 2 s"), "{said}");
    assert!(said.contains("100,001 frames"), "{said}");

    // More frames than are kept for one connection.
    let many: Vec<Frame> =
        (0..200_010).map(|n| raw(n * 1_000, segment(1, ACK, 1).ipv4())).collect();
    let said = text(&scene, &many, &["--stream", "0"]);
    assert!(
        said.contains("10 frames beyond the first 200000 are left out"),
        "how many are left out"
    );
    assert!(said.lines().count() > 200_000, "{} lines", said.lines().count());
}

#[test]
fn more_connections_than_rules_look_at_are_said() {
    let Some(scene) = Scene::new("trace-many", &[]) else { return };
    let syns: Vec<Frame> =
        (0..10_001).map(|n| raw(n, segment(1_000 + n as u16, SYN, 7).ipv4())).collect();
    let path = scene.file("many.pcap", pcap(&syns, true, true));
    let said = run(&scene, &["trace", &path.to_string_lossy()]).stdout;
    assert!(said.contains("This is of the 10,000 connections with the most trouble"), "{said}");
}

#[test]
fn a_packet_of_unlikely_length_and_too_many_interfaces() {
    let Some(scene) = Scene::new("trace-interfaces", &[]) else { return };
    let block = |kind: u32, body: &[u8]| {
        let length = (12 + body.len() as u32).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, body, &length].concat()
    };
    let section = block(
        0x0a0d_0d0a,
        &[&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat(),
    );
    let interfaces = block(1, &[101, 0, 0, 0, 0, 0, 0, 0]).repeat(4_097);
    let path = scene.file("interfaces.pcapng", [section, interfaces].concat());
    let said = run(&scene, &["trace", &path.to_string_lossy()]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("more than 4096 interfaces"), "{}", said.stderr);
    assert_eq!(said.stdout, "", "nothing was read, so nothing is reported");
}

/// A flood of SYNs from as many senders as are followed: the program is as large as the connections
/// that it follows, and no larger.
#[test]
fn a_flood_of_syns_takes_bounded_memory() {
    let Some(scene) = Scene::new("trace-flood", &[]) else { return };
    let syn = |n: u32| {
        let [_, a, b, c] = n.to_be_bytes();
        ipv4([11, a, b, c], [10, 0, 0, 2], 6, 1, 0, &segment(1_000, SYN, 7).tcp())
    };
    let syns: Vec<Frame> = (0..60_000).map(|n| raw(u64::from(n) * 1_000, syn(n))).collect();
    let path = scene.file("flood.pcap", pcap(&syns, true, true));
    let largest = |name: &str, most: &str| {
        let path = path.to_string_lossy();
        let words = [
            "-f",
            "%M",
            &binary().to_string_lossy(),
            "trace",
            &path,
            "--json",
            "--connections-max",
            most,
        ];
        let time = e2e::find("time").expect("time");
        let said = Process::start(&scene, name, &time, words).wait(Duration::from_secs(50));
        assert_eq!(said.code, Some(0), "{}", said.stderr);
        let kib = said.stderr.lines().next_back().and_then(|line| line.trim().parse::<u64>().ok());
        kib.expect("its largest size") * 1024
    };
    let few = largest("few", "1000");
    let many = largest("many", "60000");
    let each = (many - few) / 59_000;
    println!("trace: {few} bytes with 1,000 connections, {many} with 60,000: {each} each");
    assert!(few < 64 << 20, "{few} bytes for 1,000 connections");
    assert!(each < 3_000, "{each} bytes for each connection");
}
