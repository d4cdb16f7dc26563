//! Synthetic captures beyond tshark's flags: undecoded packets, packets captured twice, and connections
//! without any reply.

use e2e::{Scene, run};
use serde_json::Value;

use crate::packets::{ACK, Frame, PSH, SYN, Segment, ethernet, ipv4, pcap, udp};

/// Milliseconds after the first moment of a capture.
fn at(ms: u64) -> u64 {
    1_600_000_000_000_000_000 + ms * 1_000_000
}

/// `weir trace --json` of `frames`, and its text.
fn told(scene: &Scene, frames: &[Frame]) -> (Value, String) {
    let path = scene.file("told.pcap", pcap(frames, true, true));
    let path = path.to_string_lossy();
    let said = run(scene, &["trace", "--json", &path]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let report = serde_json::from_str(&said.stdout).expect("JSON");
    (report, run(scene, &["trace", &path]).stdout)
}

/// The rules that found something, with their severity.
fn found(report: &Value) -> Vec<(&str, &str)> {
    let findings = report["diagnosis"]["findings"].as_array().expect("findings");
    findings
        .iter()
        .filter_map(|one| Some((one["rule"].as_str()?, one["severity"].as_str()?)))
        .collect()
}

#[test]
fn what_is_not_decoded_is_named_with_its_share() {
    let Some(scene) = Scene::new("trace-undecoded", &[]) else { return };
    let over_udp = |port: u16, body: &[u8]| {
        ethernet(0x0800, &ipv4([192, 0, 2, 1], [192, 0, 2, 2], 17, 1, 0, &udp(port, body)))
    };
    let tcp = Segment { ports: [4_000, 80], flags: ACK, length: 100, ..Segment::default() };
    // The bytes of one packet, and what it is called.
    // CAPWAP's short header, an Ethernet frame in it, and a fragment's first piece.
    let inside = ethernet(0x0800, &tcp.ipv4());
    let capwap = |flags: u8| [&[0, 16, 2, flags, 0, 1, 0, 0], &inside[..]].concat();
    let cases: [(Vec<u8>, &str); 14] = [
        (over_udp(443, &[0x40; 400]), "UDP port 443 (QUIC)"),
        (over_udp(2_152, &[0x32, 1, 0, 4, 0, 0, 0, 0, 0, 1, 0, 0]), "GTP-U"),
        (over_udp(5_247, &[0, 16, 2, 0x80, 0, 1, 0, 0]), "CAPWAP, fragments"),
        (over_udp(5_247, &capwap(0x80)), "CAPWAP, fragments"),
        (over_udp(5_247, &capwap(0xc0)), "CAPWAP, fragments"),
        (over_udp(5_247, &capwap(0x08)), "CAPWAP, keep-alives"),
        (
            over_udp(5_247, &[&[1, 0, 0, 0, 23, 0xfe, 0xfd][..], &[9; 90]].concat()),
            "CAPWAP, encrypted (DTLS)",
        ),
        (ethernet(0x0806, &[0; 28]), "Ethernet type 0x0806 (ARP)"),
        (ethernet(0x88e5, &[0; 200]), "Ethernet type 0x88e5 (MACsec)"),
        (ethernet(0x0800, &ipv4([1; 4], [2; 4], 50, 1, 0, &[9; 300])), "IP protocol 50 (ESP)"),
        (ethernet(0x0800, &ipv4([1; 4], [2; 4], 132, 1, 0, &[9; 30])), "IP protocol 132 (SCTP)"),
        (ethernet(0x8864, &[0x11, 0, 0, 1, 0, 6, 0xc0, 0x21, 9, 1, 0, 4]), "0xc021 (LCP)"),
        (ethernet(60, &[0x42; 60]), "LLC"),
        (ethernet(0x0800, &ipv4([1; 4], [2; 4], 6, 1, 0, &[0; 8])), "headers cut off"),
    ];
    for (bytes, name) in cases {
        let (wire_bytes, whole) = (bytes.len(), ethernet(0x0800, &tcp.ipv4()));
        let share = 100.0 * wire_bytes as f64 / (wire_bytes + 3 * whole.len()) as f64;
        let frames: Vec<Frame> = std::iter::once(bytes)
            .chain(std::iter::repeat_n(whole, 3))
            .zip(0..)
            .map(|(bytes, ms)| Frame::new(at(ms), 1, bytes))
            .collect();
        let (report, text) = told(&scene, &frames);
        let undecoded = report["undecoded"].as_array().expect("undecoded");
        assert_eq!(undecoded.len(), 1, "{name}: {undecoded:?}");
        let what = undecoded[0]["what"].as_str().expect("a name");
        assert!(what.contains(name), "{name}: {what}");
        assert_eq!(undecoded[0]["bytes"], wire_bytes);
        let line = text.lines().find(|line| line.starts_with("Without TCP")).unwrap_or_default();
        assert!(line.contains("1 packet, 25 % of all") && line.contains(name), "{name}: {line}");
        let severity = if share >= 50.0 { "advice" } else { "note" };
        assert!(found(&report).contains(&("capture_undecoded", severity)), "{name}: {text}");
        assert!(!text.contains("No findings"), "{name}: {text}");
    }
}

#[test]
fn a_syn_ack_without_an_identification_is_not_one_that_was_captured_twice() {
    let Some(scene) = Scene::new("trace-no-id", &[]) else { return };
    // A SYN that is repeated after a second meets the SYN-ACK that the server repeats after a second.
    for (ip_id, twice) in [(0, 0), (7, 1)] {
        let syn = |id| Segment { ports: [4_000, 80], flags: SYN, ip_id: id, ..Segment::default() };
        let syn_ack = Segment { from: 1, flags: SYN | ACK, acknowledged: 1, ip_id, ..syn(1) };
        let frames = [
            Frame::new(at(0), 101, syn(1).ipv4()),
            Frame::new(at(1), 101, syn_ack.ipv4()),
            Frame::new(at(1_000), 101, syn(2).ipv4()),
            Frame::new(at(1_001), 101, syn_ack.ipv4()),
            Frame::new(at(1_001) + 200_000, 101, syn_ack.ipv4()),
        ];
        let (report, _) = told(&scene, &frames);
        let directions = report["connections"][0]["directions"].as_array().expect("directions");
        let captured = directions.iter().filter_map(|one| one["captured_twice"].as_u64());
        assert_eq!(captured.sum::<u64>(), twice, "identification {ip_id}");
    }
}

/// A client's connection from `port`: its handshake at `start_ms`, then data of `length` bytes that is
/// sent again when the timer says so and never acknowledged.
fn stuck(port: u16, start_ms: u64, length: usize) -> Vec<Frame> {
    let from_client = |sequence, flags, length, ip_id| Segment {
        ports: [port, 80],
        sequence,
        acknowledged: if flags == SYN { 0 } else { 701 },
        flags,
        window: 500,
        length,
        ip_id,
        ..Segment::default()
    };
    let syn_ack = Segment { from: 1, acknowledged: 101, ..from_client(700, SYN | ACK, 0, 0) };
    let data = |ip_id| from_client(101, ACK | PSH, length, ip_id).ipv4();
    let mut frames = vec![
        Frame::new(at(start_ms), 101, from_client(100, SYN, 0, 1).ipv4()),
        Frame::new(at(start_ms + 10), 101, Segment { sequence: 700, ..syn_ack }.ipv4()),
        Frame::new(at(start_ms + 20), 101, from_client(101, ACK, 0, 2).ipv4()),
    ];
    for (after_ms, ip_id) in (3..).zip([21, 230, 640, 1_460, 3_100]).map(|(id, ms)| (ms, id)) {
        frames.push(Frame::new(at(start_ms + after_ms), 101, data(ip_id)));
    }
    frames
}

#[test]
fn long_segments_that_never_arrive_are_told_from_a_dead_peer() {
    let Some(scene) = Scene::new("trace-stuck", &[]) else { return };
    let all = |connections: &[(u64, usize)]| {
        let ports = 4_000..;
        let mut frames: Vec<Frame> = ports
            .zip(connections)
            .flat_map(|(port, (ms, length))| stuck(port, *ms, *length))
            .collect();
        frames.sort_by_key(|frame| frame.time_ns);
        frames
    };
    // When each connection begins, in ms, and its data's length; what is found.
    let twenty: Vec<(u64, usize)> = (0..20).map(|number| (number * 10, 1_448)).collect();
    let short: Vec<(u64, usize)> = (0..20).map(|number| (number * 10, 300)).collect();
    let cases: [(&[(u64, usize)], &str); 5] = [
        // Handshakes pass, nothing long does.
        (&twenty, "capture_mtu"),
        // One alone: the peer was not heard again, or was.
        (&[(0, 1_448)], "capture_dead_peer"),
        (&[(0, 1_448), (2_000, 1_448)], "capture_mtu"),
        // Short ones do not arrive either.
        (&short, "capture_dead_peer"),
        (&[(0, 1_448), (10, 300)], "capture_dead_peer"),
    ];
    for (connections, rule) in cases {
        let (report, text) = told(&scene, &all(connections));
        assert_eq!(found(&report), [(rule, "critical")], "{connections:?}: {text}");
    }
}
