//! Observes both ends of a fault at the same time, and compares the findings with the kernel's counters.

use std::time::Duration;

use e2e::{Finished, Process, binary, wait};
use rustix::process::Signal;

use crate::faults::Side;
use crate::stage::{Looked, Stage};
use crate::witness::{Counted, LOOK, contradiction};

/// What was said on both sides.
pub(crate) struct Both {
    server: Looked,
    client: Looked,
}

impl Both {
    pub(crate) fn on(&self, side: Side) -> &Looked {
        match side {
            Side::Server => &self.server,
            Side::Client => &self.client,
        }
    }
}

/// Bounds every wait.
const WAIT_MAX: Duration = Duration::from_mins(1);

impl Stage<'_> {
    /// Looks at both namespaces while `happens` is done. What it yields is kept until both doctors have
    /// ended. They are stopped in between, so that however long it takes, their first samples come before
    /// it and their last after it.
    pub(crate) fn look_both<Kept>(&self, happens: impl FnOnce() -> Kept) -> Both {
        let time = format!("{}ms", LOOK.as_millis());
        let words = ["doctor", "--netns", "own", "--for", &time, "--json"];
        let start = |name| Process::start(self.scene, name, binary(), words);
        let before = [Counted::now(), self.as_client(Counted::now)];
        let mut server = start("doctor-server");
        let mut client = self.as_client(|| start("doctor-client"));
        for doctor in [&server, &client] {
            has_a_sample(doctor);
            doctor.signal(Signal::STOP);
        }
        let kept = happens();
        server.signal(Signal::CONT);
        client.signal(Signal::CONT);
        let ended = [server.wait(WAIT_MAX), client.wait(WAIT_MAX)];
        let after = [Counted::now(), self.as_client(Counted::now)];
        drop(kept);
        let [server, client] = ended.map(Looked::read);
        Both {
            server: server.held_against([&before[0], &after[0]], &after[1]),
            client: client.held_against([&before[1], &after[1]], &after[0]),
        }
    }

    /// The same as [`counted`] at the clients.
    pub(crate) fn counted_at_client(&self, name: &str, least: u64) {
        self.as_client(|| counted(name, least));
    }
}

/// Waits until the kernel has counted `least` of `name` in the calling thread's namespace, the server's.
pub(crate) fn counted(name: &str, least: u64) {
    let is_reached = || (Counted::now().of(name) >= least).then_some(());
    assert!(
        wait::within(WAIT_MAX, is_reached).is_some(),
        "{name} is {} after {WAIT_MAX:?}; it should be at least {least}",
        Counted::now().of(name)
    );
}

impl Looked {
    fn read(ended: Finished) -> Looked {
        let Finished { code, stdout, stderr } = ended;
        let report = serde_json::from_str(&stdout);
        let report = report.unwrap_or_else(|error| panic!("no report: {error}\n{stdout}{stderr}"));
        Looked { code, report, contradictions: Vec::new() }
    }

    fn held_against(self, counted: [&Counted; 2], other_end: &Counted) -> Looked {
        let of = |finding| contradiction(finding, counted, other_end);
        let contradictions = self.of_the_network().filter_map(of).collect();
        Looked { contradictions, ..self }
    }
}

/// The doctor sleeps between its samples, and at no other time.
fn has_a_sample(doctor: &Process) {
    let path = format!("/proc/{}/wchan", doctor.pid());
    wait::until("the doctor's first sample", WAIT_MAX, || {
        std::fs::read_to_string(&path)
            .is_ok_and(|where_| where_.contains("nanosleep"))
            .then_some(())
    });
}
