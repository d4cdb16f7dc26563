//! Two private networks of a test, joined by a lab link that delays, drops or reorders packets as the
//! test requests.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::namespace::Namespace;
use crate::{Process, Scene, binary, wait};

/// A near network, in which the test runs, a far one, and the link between them.
pub struct Linked {
    near: Namespace,
    far: Namespace,
    link: Option<Process>,
    file: PathBuf,
}

impl Linked {
    /// Makes them and runs `test` in the near one; what it starts is there too. `ways` is what
    /// `weir lab link --file` reads (`both = { delay = "30ms" }`, or `there` and `back`), `words`
    /// are further ones for `weir lab link`.
    pub fn run<R: Send>(
        scene: &Scene,
        ways: &str,
        words: &[&str],
        test: impl FnOnce(&mut Linked) -> R + Send,
    ) -> R {
        let mut linked = Linked::make(scene, ways, words);
        // A thread of its own, because it moves house and a test's thread may be the main one.
        let ended = std::thread::scope(|scope| {
            let inside = || {
                linked.near.enter();
                test(&mut linked)
            };
            scope.spawn(inside).join()
        });
        ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn make(scene: &Scene, ways: &str, words: &[&str]) -> Linked {
        crate::namespace::remove_leftovers();
        let (near, far) = (Namespace::make("near"), Namespace::make("far"));
        let file = scene.file("link.toml", ways);
        let link = start(scene, [&near, &far], &file, words);
        for (end, host) in [(&near, 1), (&far, 2)] {
            end.ip(&["addr", "add", &format!("10.98.0.{host}/24"), "dev", "link0"]);
            // Their own choice is this machine's, and may be another elsewhere.
            let route = ["route", "replace", "10.98.0.0/24", "dev", "link0"];
            end.ip(&[&route[..], &["congctl", "cubic"]].concat());
        }
        Linked { near, far, link: Some(link), file }
    }

    /// An address of the near network.
    pub fn near(&self, port: u16) -> SocketAddr {
        SocketAddr::new(Ipv4Addr::new(10, 98, 0, 1).into(), port)
    }

    /// An address of the far network.
    pub fn far(&self, port: u16) -> SocketAddr {
        SocketAddr::new(Ipv4Addr::new(10, 98, 0, 2).into(), port)
    }

    /// Runs `work` in the far network; processes that it starts live there.
    pub fn inside_far<R>(&self, work: impl FnOnce() -> R) -> R {
        self.far.enter();
        let result = work();
        self.near.enter();
        result
    }

    /// `ip WORDS` in the near network, then in the far one.
    pub fn ip_in_both(&self, words: &[&str]) {
        self.near.ip(words);
        self.far.ip(words);
    }

    /// The link's process.
    pub fn process(&self) -> &Process {
        self.link.as_ref().expect("the link has not ended")
    }

    /// Has the link do something else from now on.
    pub fn set(&self, ways: &str) {
        std::fs::write(&self.file, ways).expect("the link's file");
        self.process().signal(Signal::HUP);
    }

    /// Ends the link; what it counted.
    pub fn end(&mut self) -> Value {
        let mut link = self.link.take().expect("the link has not ended");
        let finished = link.terminate(Duration::from_secs(10));
        let last = finished.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {finished:?}"))
    }
}

/// Starts a link between two networks, as `file` says, by a device `link0` in each.
pub(crate) fn start(scene: &Scene, ends: [&Namespace; 2], file: &Path, words: &[&str]) -> Process {
    for end in ends {
        // Otherwise its kernel looks for routers, by unrequested packets.
        end.exec("sysctl", &["-qw", "net.ipv6.conf.default.disable_ipv6=1"]);
    }
    let devices = ends.map(|end| format!("{}:link0", end.name()));
    let all = ["lab", "link", &devices[0], &devices[1], "--file", &file.to_string_lossy()];
    let all = all.iter().chain(words).copied();
    let mut link = Process::start(scene, ends[0].name(), binary(), all);
    wait::until("the link", Duration::from_secs(10), || {
        assert!(link.is_running(), "{}", link.stderr());
        link.stdout().contains("ready").then_some(())
    });
    link
}
