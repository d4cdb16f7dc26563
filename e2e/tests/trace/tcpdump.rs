//! tcpdump beside Weir: what both see of the same packets.

use std::path::PathBuf;
use std::time::Duration;

use e2e::{Process, Scene, find, wait};
use rustix::process::Signal;

const SOON: Duration = Duration::from_secs(10);
/// A file that has not grown for so long holds everything.
const STILL: Duration = Duration::from_millis(300);

/// A capture that is being made.
pub struct Tcpdump {
    process: Process,
    path: PathBuf,
}

/// One that was made.
#[derive(Debug)]
pub struct Dumped {
    /// The file.
    pub path: PathBuf,
    /// Packets that tcpdump wrote.
    pub captured: u64,
    /// Packets that it had no room for.
    pub dropped: u64,
}

impl Tcpdump {
    /// Captures on `interface` of the calling thread's namespace what passes `filter`, and waits until it
    /// does. The first `snaplen` bytes of each packet are kept.
    pub fn start(
        scene: &Scene,
        name: &str,
        interface: &str,
        snaplen: u32,
        filter: &str,
    ) -> Tcpdump {
        let path = scene.folder().join(format!("{name}.pcap"));
        let snaplen = snaplen.to_string();
        let file = path.to_string_lossy();
        let mut words = vec!["-i", interface, "-s", &snaplen, "-w", &file, "-n", "-U"];
        words.extend(["--immediate-mode", "-B", "65536", "--time-stamp-precision=nano"]);
        words.extend(["-Z", "root"]);
        words.extend(filter.split_whitespace());
        let mut process =
            Process::start(scene, &format!("tcpdump-{name}"), &find("tcpdump").unwrap(), words);
        wait::until("tcpdump to listen", SOON, || {
            assert!(process.is_running(), "tcpdump ended: {}", process.stderr());
            process.stderr().contains("listening on").then_some(())
        });
        Tcpdump { process, path }
    }

    /// Waits until nothing more comes.
    pub fn settle(&self) {
        let size = || std::fs::metadata(&self.path).map_or(0, |about| about.len());
        let mut last = (size(), std::time::Instant::now());
        wait::until("the capture to settle", SOON, || {
            if size() != last.0 {
                last = (size(), std::time::Instant::now());
            }
            (last.1.elapsed() >= STILL).then_some(())
        });
    }

    /// Ends it, once nothing more comes.
    pub fn stop(mut self) -> Dumped {
        self.settle();
        self.process.signal(Signal::INT);
        let finished = self.process.wait(SOON);
        let said = &finished.stderr;
        // "12 packets captured", "0 packets dropped by kernel"
        let figure = |what: &str| {
            let line = said.lines().find(|line| line.ends_with(what));
            line.and_then(|line| line.split(' ').next()?.parse().ok())
                .unwrap_or_else(|| panic!("{what}? {said}"))
        };
        let captured = figure("captured");
        let dropped = figure("dropped by kernel");
        Dumped { path: self.path, captured, dropped }
    }
}
