//! `clients/paced.py`: POSTs at a pace, so that connections have rested for a time of the test's
//! choosing, each with an id that a server of [`crate::Counting`] counts.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;

use crate::clients::next_number;
use crate::servers::file;
use crate::{Process, Scene, find};

/// How they come.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Kept connections of the clients.
    pub connections: u32,
    /// In all.
    pub requests: u32,
    /// Between an answer and the next request on its connection, in milliseconds.
    pub pause_ms: (u32, u32),
    /// All connections rest equally long, and come as one wave.
    pub together: bool,
}

/// Running clients.
pub struct Paced {
    process: Process,
    requests: u32,
}

impl Paced {
    /// Starts them; they ask for `target` at `address`.
    pub fn start(scene: &Scene, address: SocketAddr, target: &str, pace: Pace) -> Paced {
        let Pace { connections, requests, pause_ms: (least, most), together } = pace;
        let mut words = vec![file("clients/paced.py").to_string_lossy().into_owned()];
        words.extend(["--address".to_owned(), address.to_string()]);
        words.extend(["--target".to_owned(), target.to_owned()]);
        words.extend(["--connections".to_owned(), connections.to_string()]);
        words.extend(["--requests".to_owned(), requests.to_string()]);
        words.extend(["--pause-ms".to_owned(), format!("{least}-{most}")]);
        words.extend(together.then(|| "--together".to_owned()));
        let name = format!("paced-{}", next_number());
        let python = find("python3").expect("python3");
        Paced { process: Process::start(scene, &name, &python, words), requests }
    }

    /// Waits until all have been sent and answered, `within` this time.
    pub fn finish(mut self, within: Duration) -> Answered {
        let finished = self.process.wait(within);
        assert_eq!(finished.code, Some(0), "paced.py: {}", finished.stderr);
        let json: Value = serde_json::from_str(&finished.stdout).expect("paced.py's report");
        Answered { requests: u64::from(self.requests), json }
    }
}

/// What `clients/paced.py` reports.
#[derive(Debug)]
pub struct Answered {
    /// Requests sent.
    pub requests: u64,
    /// All of it; paced.py's header says what is in it.
    pub json: Value,
}

impl Answered {
    /// Requests that were not answered with a 200 that was theirs.
    pub fn failed(&self) -> u64 {
        let good = self.json["statuses"]["200"].as_u64().unwrap_or(0);
        self.requests - good + self.json["wrong"].as_u64().expect("a count")
    }
}
