//! `weir trace` against tshark 4.0: what both say of each frame of the same capture.
//!
//! Named cases (`e2e/cases/trace`), random conversations with their seeds, everything that TCP comes
//! wrapped in, every form of file; and files that are broken.

#[path = "trace/beyond.rs"]
mod beyond;
#[path = "trace/case.rs"]
#[allow(unreachable_pub, reason = "a module of this test")]
mod case;
#[path = "trace/hostile.rs"]
mod hostile;
#[path = "trace/live.rs"]
mod live;
#[path = "trace/oracle.rs"]
#[allow(unreachable_pub, reason = "a module of this test")]
mod oracle;
#[path = "trace/packets.rs"]
#[allow(unreachable_pub, reason = "a module of this test")]
mod packets;
#[path = "trace/random.rs"]
#[allow(unreachable_pub, reason = "a module of this test")]
mod random;
#[path = "trace/real.rs"]
mod real;
#[path = "trace/tcpdump.rs"]
#[allow(unreachable_pub, reason = "a module of this test")]
mod tcpdump;
#[path = "trace/wrapped.rs"]
#[allow(unreachable_pub, reason = "a module of this test")]
mod wrapped;

use std::path::Path;
use std::process::{Command, Stdio};

use e2e::Scene;
use packets::{Frame, pcap, pcapng};

/// Fewer would mean that files were lost.
const CASES_MIN: usize = 88;

#[test]
fn every_case() {
    let cases = case::read_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cases/trace"));
    assert!(cases.len() >= CASES_MIN, "{} cases", cases.len());
    let Some(scene) = Scene::new("trace-cases", &["tshark"]) else { return };
    if !oracle::is_the_one() {
        return;
    }
    let mut frames: Vec<Frame> = Vec::new();
    let mut names: Vec<(u64, &str)> = Vec::new();
    for case in &cases {
        names.push((frames.len() as u64, &case.name));
        frames.extend(case.frames.iter().cloned());
    }
    let path = scene.file("cases.pcap", pcap(&frames, true, true));
    let compared = oracle::compare(&path, |number| {
        let at = names.partition_point(|(first, _)| *first < number);
        let (first, name) = names[at - 1];
        format!("{name}, its frame {}", number - first)
    });
    println!("trace: {} cases, {compared} frames", cases.len());
    syns_are_counted_as_by_tshark(&path);
}

/// SYNs and SYN+ACKs sent again, each as in the column of its own: in JSON, in CSV and in the text.
fn syns_are_counted_as_by_tshark(path: &Path) {
    let counted = ["0", "1"].map(|ack| {
        let filter =
            format!("tcp.flags.syn==1 && tcp.flags.ack=={ack} && tcp.analysis.retransmission");
        let tshark = Command::new("tshark")
            .arg("-r")
            .arg(path)
            .args(["-Y", &filter, "-T", "fields", "-e", "frame.number"])
            .stderr(Stdio::null())
            .output()
            .expect("tshark");
        String::from_utf8_lossy(&tshark.stdout).lines().count() as u64
    });
    assert!(counted.iter().all(|count| *count > 0) && counted[0] != counted[1], "{counted:?}");
    let weir = |words: &[&str]| {
        let output = Command::new(e2e::binary()).arg("trace").args(words).arg(path).output();
        String::from_utf8(output.expect("weir").stdout).expect("UTF-8")
    };
    let report: serde_json::Value = serde_json::from_str(&weir(&["--json"])).expect("JSON");
    let names = ["syn_retransmissions", "syn_ack_retransmissions"];
    assert_eq!(names.map(|name| report["totals"][name].as_u64()), counted.map(Some));
    let csv = weir(&["--csv"]);
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let heading = lines.next().expect("a heading");
    let places = names.map(|name| heading.iter().position(|one| *one == name).expect("its column"));
    let mut sums = [0, 0];
    for line in lines {
        for (sum, place) in sums.iter_mut().zip(places) {
            *sum += line[place].parse::<u64>().expect("a count");
        }
    }
    assert_eq!(sums, counted);
    let text = weir(&[]);
    let headed = text.lines().any(|line| line.trim_end().ends_with("SYN  SYN+ACK"));
    assert!(headed, "{text}");
    let page = path.with_extension("html");
    weir(&["--html", &page.to_string_lossy()]);
    let page = std::fs::read_to_string(page).expect("the page");
    for heading in ["SYN again", "SYN+ACK again"] {
        assert!(page.contains(&format!(">{heading}</th>")), "{heading}");
    }
    let all = text.lines().find(|line| line.trim_start().starts_with("in all")).expect("the sum");
    let cells: Vec<&str> = all.split_whitespace().rev().take(2).collect();
    assert_eq!(cells, [counted[1].to_string(), counted[0].to_string()], "{all}");
}

#[test]
fn random_conversations() {
    let Some(scene) = Scene::new("trace-random", &["tshark"]) else { return };
    if !oracle::is_the_one() {
        return;
    }
    for seed in e2e::seeds() {
        println!("trace: seed {seed}");
        let path = scene.file("wild.pcap", pcap(&random::wild(seed, 6_000), true, true));
        oracle::compare(&path, |_| format!("wild, WEIR_SEED={seed}"));
        let mut frames = Vec::new();
        for (port, snaplen) in (0..).zip([65_535, 96, 54, 40, 65_535, 65_535, 65_535, 65_535]) {
            random::transfer(
                seed.wrapping_add(u64::from(port)),
                2_000 + port,
                snaplen,
                &mut frames,
            );
        }
        frames.sort_by_key(|frame| frame.time_ns);
        let path = scene.file("transfers.pcap", pcap(&frames, true, true));
        oracle::compare(&path, |_| format!("transfers, WEIR_SEED={seed}"));
    }
}

#[test]
fn everything_that_tcp_comes_wrapped_in() {
    let Some(scene) = Scene::new("trace-wrapped", &["tshark"]) else { return };
    if !oracle::is_the_one() {
        return;
    }
    let mut frames: Vec<Frame> = Vec::new();
    let mut names: Vec<(u64, &str)> = Vec::new();
    for (name, wrapped) in wrapped::all() {
        names.push((frames.len() as u64, name));
        frames.extend(wrapped);
    }
    let path = scene.file("wrapped.pcapng", pcapng(&frames, true, 9));
    oracle::compare(&path, |number| {
        let at = names.partition_point(|(first, _)| *first < number);
        names[at - 1].1.to_owned()
    });
    for (name, bytes) in [
        ("big.pcap", pcap(&wrapped::big_endian(), false, true)),
        ("big.pcapng", pcapng(&wrapped::big_endian(), false, 9)),
    ] {
        oracle::compare(&scene.file(name, bytes), |_| name.to_owned());
    }
}

#[test]
fn every_form_of_file_says_the_same() {
    let Some(scene) = Scene::new("trace-forms", &["tshark", "gzip"]) else { return };
    if !oracle::is_the_one() {
        return;
    }
    let mut frames = Vec::new();
    random::transfer(7, 2_000, 120, &mut frames);
    // Whole microseconds, so that every form can hold the times.
    for frame in &mut frames {
        frame.time_ns -= frame.time_ns % 1_000;
    }
    let first = scene.file("first.pcap", pcap(&frames, true, true));
    oracle::compare(&first, |_| "the first form".to_owned());
    let expected = oracle::weir(&first);
    assert!(
        expected.values().any(|(_, flags)| !flags.is_empty()),
        "nothing to tell forms apart by"
    );
    for is_little in [true, false] {
        let forms = [
            pcap(&frames, is_little, false),
            pcap(&frames, is_little, true),
            pcapng(&frames, is_little, 6),
            pcapng(&frames, is_little, 9),
        ];
        for (number, bytes) in forms.iter().enumerate() {
            let path = scene.file("form", bytes);
            assert!(oracle::weir(&path) == expected, "form {number}, little-endian: {is_little}");
        }
    }
    // Two sections behind each other, each with its own byte order, and between them a block that
    // tshark gives a frame number to.
    let (one, other) = frames.split_at(frames.len() / 2);
    let sections = [pcapng(one, true, 9), pcapng(other, false, 9)].concat();
    oracle::compare(&scene.file("sections.pcapng", sections), |_| String::new());
    // 2^-20 s is coarser than a microsecond: tshark judges.
    oracle::compare(&scene.file("binary.pcapng", pcapng(&frames, true, 0x94)), |_| String::new());
    for program in ["gzip", "zstd"] {
        let Some(program) = e2e::find(program) else { continue };
        let output = Command::new(program).arg("-c").arg(&first).output().expect("compressing");
        let twice = scene.file("compressed", output.stdout);
        assert!(oracle::weir(&twice) == expected, "compressed");
        let input = std::fs::File::open(&twice).expect("the compressed file");
        let said = Command::new(e2e::binary())
            .args(["trace", "-", "--frames"])
            .stdin(Stdio::from(input))
            .output()
            .expect("weir");
        let lines = String::from_utf8_lossy(&said.stdout).lines().count();
        assert_eq!(lines, expected.len(), "from standard input");
    }
}

#[test]
fn a_broken_file_is_read_as_far_as_it_goes() {
    let Some(scene) = Scene::new("trace-broken", &[]) else { return };
    let mut frames = Vec::new();
    random::transfer(9, 2_000, 120, &mut frames);
    let whole = pcap(&frames, true, true);
    let told = |name: &str, bytes: &[u8]| {
        let path = scene.file(name, bytes);
        let finished = e2e::run(&scene, &["trace", "--frames", &path.to_string_lossy()]);
        (finished.code, finished.stdout.lines().count(), finished.stderr)
    };
    let (code, lines, said) = told("cut.pcap", &whole[..whole.len() - 7]);
    assert_eq!((code, lines), (Some(1), frames.len() - 1));
    assert!(said.contains("cut off in the middle of a packet"), "{said}");
    let mut damaged = whole.clone();
    let third = 24 + frames[..2].iter().map(|frame| 16 + frame.captured).sum::<usize>();
    damaged[third + 8..third + 12].fill(0xff);
    let (code, lines, said) = told("damaged.pcap", &damaged);
    assert_eq!((code, lines), (Some(1), 2));
    assert!(said.contains(&format!("byte {third}:")) && said.contains("after 2 frames"), "{said}");
    // The report tells what was read, and that it is not all.
    let path = scene.file("cut.pcap", &whole[..whole.len() - 7]);
    let finished = e2e::run(&scene, &["trace", &path.to_string_lossy()]);
    assert_eq!(finished.code, Some(1));
    for part in ["Not read to its end", "cut off in the middle", "What it means"] {
        assert!(finished.stdout.contains(part), "no {part}: {}", finished.stdout);
    }
    let finished = e2e::run(&scene, &["trace", "--json", &path.to_string_lossy()]);
    let json: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON");
    assert_eq!(json["frames"], frames.len() - 1);
    assert!(json["stopped"]["why"].as_str().is_some_and(|why| why.contains("cut off")), "{json:#}");
    let (code, _, said) = told("text.pcap", b"GET / HTTP/1.1\r\nHost: example.com\r\n");
    assert_eq!(code, Some(1));
    assert!(said.contains("neither pcap nor pcapng"), "{said}");
    let (code, _, said) = told("empty.pcap", b"");
    assert_eq!(code, Some(1));
    assert!(said.contains("the file is empty"), "{said}");
    let finished = e2e::run(&scene, &["trace", "/does/not/exist.pcap"]);
    assert_eq!(finished.code, Some(1));
    assert!(finished.stderr.contains("cannot read /does/not/exist.pcap"), "{}", finished.stderr);
}

#[test]
fn pictures_are_whole_whatever_a_file_is_called() {
    let Some(scene) = Scene::new("trace-pictures", &["python3"]) else { return };
    let mut frames = Vec::new();
    random::transfer(7, 2_000, 120, &mut frames);
    let capture = scene.file("a <b>&\"capture'.pcap", pcap(&frames, true, true));
    for (name, words) in [("over-time", &[][..]), ("sequence", &["--stream", "0"])] {
        let (svg, html) = (scene.file(&format!("{name}.svg"), ""), scene.file("page.html", ""));
        let mut weir = Command::new(e2e::binary());
        weir.arg("trace").arg(&capture).args(words).arg("--svg").arg(&svg).arg("--html").arg(&html);
        let output = weir.output().expect("weir");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let parse = "import sys, xml.etree.ElementTree as tree\n\
                     print(*(element.tag.split('}')[1] for element in tree.parse(sys.argv[1]).iter()))";
        let python = e2e::find("python3").expect("python3");
        let parsed = Command::new(python).args(["-c", parse]).arg(&svg).output().expect("python3");
        let said = String::from_utf8_lossy(&parsed.stderr);
        assert!(parsed.status.success(), "{name} is no XML: {said}");
        let elements = String::from_utf8_lossy(&parsed.stdout).into_owned();
        for element in ["svg", "text", "path"] {
            assert!(elements.split_whitespace().any(|tag| tag == element), "{name}: {elements}");
        }
        // The page of a stream holds the same picture, the other one draws charts; both show the
        // file's name as text.
        let (svg, html) = (std::fs::read_to_string(&svg), std::fs::read_to_string(&html));
        let (svg, html) = (svg.expect("the picture"), html.expect("the page"));
        let inner = svg.split_once('>').expect("an element").1.trim();
        let has_picture = html.contains(inner.trim_end_matches("</svg>"));
        assert_eq!(has_picture, name == "sequence", "{name}: its picture");
        assert_eq!(html.contains("\"title\":\"Traffic\""), name == "over-time", "{name}: charts");
        assert!(html.contains("a &lt;b&gt;&amp;") && !html.contains("a <b>"), "{name}: its name");
    }
}
