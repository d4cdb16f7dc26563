//! `weir trace live` in a namespace: it counts what tcpdump captures, grows while it runs, ends on
//! request, and reports what it could not see.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use e2e::{App, NAMESPACES, Process, Scene, Zones, binary, find, run, run_by, wait};
use rustix::process::Signal;
use serde_json::Value;

use crate::real::one_processor;
use crate::tcpdump::Tcpdump;

const SOON: Duration = Duration::from_secs(20);

/// Starts `weir trace live WORDS` and waits until nothing escapes it.
fn start(scene: &Scene, words: &[&str]) -> Process {
    let words = [&["trace", "live"], words].concat();
    let mut live = Process::start(scene, "live", binary(), words);
    wait::until("weir to capture", SOON, || {
        assert!(live.is_running(), "weir ended: {}", live.stderr());
        live.stderr().contains("capturing on").then_some(())
    });
    live
}

/// `curl WORDS`, to its end.
fn curl(words: &[&str]) {
    let curl = Command::new(find("curl").unwrap())
        .args(["--silent", "--show-error", "--max-time", "20", "--output", "/dev/null"])
        .args(words)
        .output()
        .expect("curl");
    assert!(curl.status.success(), "curl {words:?}: {curl:?}");
}

fn nft(rules: &str) {
    let output = Command::new(find("nft").unwrap()).arg(rules).output().expect("nft");
    assert!(output.status.success(), "{output:?}");
}

/// Packets leave `interface` one by one, as on a wire.
fn offloads_off(interface: &str) {
    let words = ["-K", interface, "tso", "off", "gso", "off", "gro", "off"];
    let output = Command::new(find("ethtool").unwrap()).args(words).output().expect("ethtool");
    assert!(output.status.success(), "{output:?}");
}

/// Waits until no connection of this namespace has anything to send: they are closed, or wait for
/// nothing but time.
fn nothing_under_way() {
    const TIME_WAIT: &str = "06";
    const LISTEN: &str = "0A";
    wait::until("connections to end", SOON, || {
        let table = std::fs::read_to_string("/proc/thread-self/net/tcp").expect("connections");
        let mut states = table.lines().skip(1).filter_map(|line| line.split_whitespace().nth(3));
        states.all(|state| matches!(state, TIME_WAIT | LISTEN)).then_some(())
    });
}

/// What `weir trace --json` says of a file.
fn of_file(scene: &Scene, path: &Path) -> Value {
    let said = run(scene, &["trace", "--json", &path.to_string_lossy()]);
    assert_eq!(said.code, Some(0), "{said:?}");
    serde_json::from_str(&said.stdout).expect("JSON")
}

#[test]
fn it_counts_what_tcpdump_captures() {
    let needs = [NAMESPACES, "tcpdump", "curl", "python3", "ethtool"];
    let Some(scene) = Scene::new("trace-live", &needs) else { return };
    Zones::run(&["app"], |zones| {
        let [wanted, other] = [8080, 8081].map(|port| zones.address("app", 11, port));
        let elsewhere = zones.address("app", 12, 8080);
        // On two processors, packets of both directions may pass at the same moment, and two programs
        // that capture may be handed them in different orders.
        one_processor();
        let _apps = zones.inside("app", || {
            offloads_off("eth0");
            // So that there is something to count.
            nft("add table inet lossy; \
                 add chain inet lossy in { type filter hook input priority 0; }; \
                 add rule inet lossy in tcp dport 8080 numgen random mod 20 == 0 drop");
            [("wanted", wanted), ("other", other), ("elsewhere", elsewhere)]
                .map(|(name, address)| App::start_at(&scene, name, address, &[]))
        });
        offloads_off("zone1");
        let host = wanted.ip().to_string();
        let filter = format!("tcp port 8080 and host {host}");
        let dump = Tcpdump::start(&scene, "same", "zone1", 65_535, &filter);
        let words = ["zone1", "--for", "60s", "--port", "8080", "--host", &host, "--json"];
        let mut live = start(&scene, &words);
        let upload = scene.file("upload", vec![b'x'; 1_500_000]);
        for address in [wanted, other, elsewhere] {
            curl(&[
                "--data-binary",
                &format!("@{}", upload.display()),
                &format!("http://{address}/"),
            ]);
            curl(&[&format!("http://{address}/?size=500000")]);
        }
        // What is still unacknowledged would be sent again, after one capture has ended or the other.
        nothing_under_way();
        zones.inside("app", nothing_under_way);
        let dumped = dump.stop();
        live.signal(Signal::INT);
        let finished = live.wait(SOON);
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        let lived: Value = serde_json::from_str(&finished.stdout).expect("one JSON object");
        let filed = of_file(&scene, &dumped.path);
        assert_eq!(lived["dropped_while_capturing"], 0, "{lived:#}");
        assert_eq!(dumped.dropped, 0);
        assert_eq!(lived["frames"], dumped.captured);
        assert_eq!(lived["totals"], filed["totals"]);
        assert_eq!(lived["connections_in_all"], 2);
        assert_eq!((&lived["interface"], &lived["file"]), (&"zone1".into(), &Value::Null));
        let again = lived["totals"]["retransmission"].as_u64();
        assert!(again > Some(0), "nothing was lost: {:#}", lived["totals"]);
    });
}

#[test]
fn a_pipe_has_a_line_for_each_interval_and_then_the_report() {
    let needs = [NAMESPACES, "curl", "python3"];
    let Some(scene) = Scene::new("trace-pipe", &needs) else { return };
    Zones::run(&[], |_| {
        let app = App::start_at(&scene, "app", ([127, 0, 0, 1], 8080).into(), &[]);
        let url = format!("http://{}/?size=100000", app.address());
        let mut live = start(&scene, &["lo", "--for", "60s", "--interval", "100ms"]);
        // `   0.1 <> 0.2 s        25 packets   120 kB`
        let told = |said: &str| -> Vec<u64> {
            let lines = said.lines().filter(|line| line.contains(" packets "));
            lines.filter_map(|line| figure_before(line, " packets")).collect()
        };
        for round in 1..=2 {
            let before = told(&live.stdout()).len();
            curl(&[&url]);
            wait::until(&format!("the line of round {round}"), SOON, || {
                (told(&live.stdout()).len() > before).then_some(())
            });
            assert!(live.is_running());
        }
        live.signal(Signal::INT);
        let finished = live.wait(SOON);
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        let said = &finished.stdout;
        let frames = said
            .lines()
            .find_map(|line| figure_before(line.strip_prefix("lo, live: ")?, " frames"));
        assert_eq!(frames, Some(told(said).iter().sum()), "{said}");
        assert!(!said.contains('\u{1b}'), "no terminal is there: {said}");
        let at = |what: &str| said.find(what).unwrap_or_else(|| panic!("no {what} in {said}"));
        assert!(at(" packets ") < at("Over time") && at("Over time") < at("What it means"));
    });
}

/// `1234` of `… 1,234 packets`.
fn figure_before(line: &str, what: &str) -> Option<u64> {
    let word = line.split(what).next()?.split_whitespace().next_back()?;
    word.replace(',', "").parse().ok()
}

#[test]
fn csv_grows_too() {
    let Some(scene) = Scene::new("trace-csv", &[NAMESPACES, "curl", "python3"]) else { return };
    Zones::run(&[], |_| {
        let app = App::start_at(&scene, "app", ([127, 0, 0, 1], 8080).into(), &[]);
        let mut live = start(&scene, &["lo", "--for", "60s", "--interval", "100ms", "--csv"]);
        curl(&[&format!("http://{}/", app.address())]);
        wait::until("a row", SOON, || (live.stdout().lines().count() > 1).then_some(()));
        assert!(live.is_running());
        live.signal(Signal::TERM);
        let finished = live.wait(SOON);
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        let mut lines = finished.stdout.lines();
        let names = lines.next().unwrap_or_default();
        assert!(names.starts_with("start_s,end_s,frames,"), "{names}");
        for line in lines {
            assert_eq!(line.split(',').count(), names.split(',').count(), "{line}");
        }
    });
}

#[test]
fn a_terminal_is_redrawn_in_place() {
    let needs = [NAMESPACES, "curl", "python3", "script"];
    let Some(scene) = Scene::new("trace-terminal", &needs) else { return };
    Zones::run(&[], |_| {
        let app = App::start_at(&scene, "app", ([127, 0, 0, 1], 8080).into(), &[]);
        let command = format!("{} trace live lo --for 3s --interval 200ms", binary().display());
        let words = ["--quiet", "--return", "--flush", "--command", &command, "/dev/null"];
        let mut screen = Process::start(&scene, "screen", &find("script").unwrap(), words);
        let url = format!("http://{}/?size=100000", app.address());
        while screen.is_running() {
            curl(&[&url]);
            wait::measure_for(Duration::from_millis(100));
        }
        let finished = screen.wait(SOON);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        // Up so many lines, and clear from there.
        let pieces: Vec<&str> = finished.stdout.split("A\u{1b}[J").collect();
        assert!(pieces.len() > 3, "drawn {} times:\n{}", pieces.len(), finished.stdout);
        let (last, drawn) = pieces.split_last().unwrap();
        for piece in drawn {
            let (text, up) = piece.rsplit_once("\u{1b}[").expect("how far up");
            let lines = text.matches('\n').count();
            // The first also has what was said before.
            let extra = usize::from(text.contains("capturing on"));
            assert_eq!(up.parse().ok(), Some(lines - extra), "{text}");
            assert!(lines < 24, "{lines} lines on a terminal of 24: {text}");
            assert!(text.contains("left (Ctrl-C ends it)"), "{text}");
        }
        assert!(last.contains("Over time") && last.contains("What it means"), "{last}");
    });
}

#[test]
fn what_finds_no_room_is_counted_and_said() {
    let needs = [NAMESPACES, "tcpdump", "curl", "python3", "ethtool", "ip"];
    let Some(scene) = Scene::new("trace-drops", &needs) else { return };
    Zones::run(&["app"], |zones| {
        let address = zones.address("app", 11, 8080);
        // Many small packets: the ring keeps the headers of some fifty thousand.
        zones.ip(&["link", "set", "zone1", "mtu", "600"]);
        offloads_off("zone1");
        let _app = zones.inside("app", || {
            offloads_off("eth0");
            App::start_at(&scene, "app", address, &[])
        });
        let dump = Tcpdump::start(&scene, "all", "zone1", 96, "tcp");
        let mut live = start(&scene, &["zone1", "--for", "60s", "--port", "8080"]);
        live.signal(Signal::STOP);
        curl(&[&format!("http://{address}/?size=60000000")]);
        live.signal(Signal::CONT);
        let dumped = dump.stop();
        live.signal(Signal::INT);
        let finished = live.wait(SOON);
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        let said = &finished.stdout;
        let line = |with: &str| said.lines().find(|line| line.contains(with)).unwrap_or(said);
        let frames = figure_before(line("zone1, live: "), " frames").expect("frames");
        let dropped = figure_before(line("Dropped while it was captured"), " packets");
        let dropped = dropped.unwrap_or_else(|| panic!("nothing was dropped: {said}"));
        // What is dropped may also be ARP's and the like, of which a new network has a few.
        let others = (frames + dropped).checked_sub(dumped.captured + dumped.dropped);
        assert!(others.is_some_and(|others| others < 30), "{others:?} of {dumped:?}: {said}");
        assert!(said.contains("capture_gaps"), "{said}");
    });
}

#[test]
fn what_it_needs_is_said_in_one_line() {
    let Some(scene) = Scene::new("trace-capability", &["setpriv"]) else { return };
    let weir = binary().to_string_lossy();
    let by = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw", &weir];
    let finished = run_by(&scene, &by, &["trace", "live", "lo"]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    let command = format!("`sudo setcap cap_net_raw+ep {weir}`");
    for part in ["cannot capture on lo", "CAP_NET_RAW", &command] {
        assert!(finished.stderr.contains(part), "no {part}: {}", finished.stderr);
    }
    assert_eq!(finished.stdout, "");
}

#[test]
fn an_interface_that_is_not_there_or_goes_away() {
    let Some(scene) = Scene::new("trace-interface", &[NAMESPACES]) else { return };
    Zones::run(&[], |zones| {
        let finished = run(&scene, &["trace", "live", "no-such0"]);
        assert_eq!(finished.code, Some(1));
        assert!(finished.stderr.contains("`ip link` lists"), "{}", finished.stderr);
        zones.ip(&["link", "add", "short0", "type", "veth", "peer", "name", "short1"]);
        zones.ip(&["link", "set", "short0", "up"]);
        let mut live = start(&scene, &["short0", "--for", "60s"]);
        zones.ip(&["link", "del", "short0"]);
        let finished = live.wait(SOON);
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(finished.stderr.contains("ended before its time"), "{}", finished.stderr);
        assert!(finished.stdout.contains("What it means"), "the report so far: {finished:?}");
    });
}
