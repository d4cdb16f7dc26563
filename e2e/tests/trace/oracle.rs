//! tshark and Weir on the same file, frame by frame.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// The flags that are compared: all that tshark 4.0 has.
pub const FLAGS: [&str; 18] = [
    "retransmission",
    "fast_retransmission",
    "spurious_retransmission",
    "out_of_order",
    "lost_segment",
    "ack_lost_segment",
    "duplicate_ack",
    "zero_window",
    "zero_window_probe",
    "zero_window_probe_ack",
    "window_update",
    "window_full",
    "keep_alive",
    "keep_alive_ack",
    "reused_ports",
    "tfo_syn",
    "tfo_ack",
    "tfo_ignored",
];
/// The version whose counts are Weir's.
const VERSION: &str = "4.0.";
/// Differences that are printed.
const SHOWN_MAX: usize = 12;

/// A frame: its stream, and its flags in the order of [`FLAGS`].
pub type Verdict = (String, Vec<&'static str>);

/// Whether the tshark that is here is the one whose counts are Weir's. Another one cannot judge.
pub fn is_the_one() -> bool {
    let output = Command::new("tshark").arg("--version").stderr(Stdio::null()).output();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let is_it =
        said.as_ref().is_ok_and(|said| said.contains(&format!("TShark (Wireshark) {VERSION}")));
    if !is_it {
        let in_ci = std::env::var("CI").is_ok_and(|value| !value.is_empty() && value != "false");
        assert!(!in_ci, "tshark is not {VERSION}x: {said:?}");
        eprintln!("trace: SKIPPED, tshark is not {VERSION}x");
    }
    is_it
}

/// What tshark says of each TCP frame of `path`.
pub fn tshark(path: &Path) -> BTreeMap<u64, Verdict> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(path).args(["-T", "fields", "-e", "frame.number", "-e", "tcp.stream"]);
    // Quoted headers of ICMP are connections too; the flags are those of the innermost.
    command.args(["-E", "occurrence=l"]);
    for flag in FLAGS {
        command.args(["-e", &format!("tcp.analysis.{flag}")]);
    }
    let output = command.stderr(Stdio::null()).output().expect("tshark");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut verdicts = BTreeMap::new();
    for line in text.lines() {
        let mut cells = line.split('\t');
        let number = cells.next().and_then(|cell| cell.parse().ok()).expect("a frame number");
        let stream = cells.next().unwrap_or_default().to_owned();
        let set = FLAGS.into_iter().zip(cells).filter(|(_, cell)| !cell.is_empty());
        let flags: Vec<&'static str> = set.map(|(flag, _)| flag).collect();
        if !stream.is_empty() {
            verdicts.insert(number, (stream, flags));
        }
    }
    verdicts
}

/// What Weir says of each.
pub fn weir(path: &Path) -> BTreeMap<u64, Verdict> {
    let output = Command::new(e2e::binary())
        .args(["trace", "--frames"])
        .arg(path)
        .output()
        .expect("weir trace");
    let text = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "weir trace {}: {said}", path.display());
    let mut verdicts = BTreeMap::new();
    for line in text.lines() {
        let mut cells = line.split('\t');
        let mut cell = || cells.next().unwrap_or_default();
        let number = cell().parse().expect("a frame number");
        let stream = cell().to_owned();
        let named: Vec<&str> = cell().split(' ').collect();
        let flags = FLAGS.into_iter().filter(|flag| named.contains(flag)).collect();
        verdicts.insert(number, (stream, flags));
    }
    verdicts
}

/// How many frames were compared; panics with what differs. `name` says what a frame belongs to.
pub fn compare(path: &Path, name: impl Fn(u64) -> String) -> usize {
    let (tshark, weir) = (tshark(path), weir(path));
    let mut numbers: Vec<u64> = tshark.keys().chain(weir.keys()).copied().collect();
    numbers.sort_unstable();
    numbers.dedup();
    let differing: Vec<u64> =
        numbers.iter().copied().filter(|number| tshark.get(number) != weir.get(number)).collect();
    let mut said = String::new();
    for number in differing.iter().take(SHOWN_MAX) {
        let (one, other) = (tshark.get(number), weir.get(number));
        let _ =
            writeln!(said, "frame {number} ({}): tshark {one:?}, weir {other:?}", name(*number));
    }
    assert!(
        differing.is_empty(),
        "{}: {} of {} frames differ\n{said}",
        path.display(),
        differing.len(),
        numbers.len()
    );
    assert!(!numbers.is_empty(), "{}: nothing to compare", path.display());
    numbers.len()
}
