//! Servers that count requests by id, so that a request executed twice is detected. `servers/ids.py`
//! has what they share.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::servers::{file, wait_until_listening};
use crate::{Process, Scene, find, http};

/// A running one.
pub struct Counting {
    process: Process,
    address: SocketAddr,
}

impl Counting {
    /// uWSGI's `http-socket`, which closes after every response without saying so, at the scene's
    /// address `host`, port 8080.
    pub fn uwsgi(scene: &Scene, host: u8) -> Counting {
        let address = scene.address(host, 8080);
        let application = file("servers/ids.py").to_string_lossy().into_owned();
        let address_word = address.to_string();
        let words = [
            // Debian keeps the language apart from the program.
            "--plugin",
            "python3",
            "--http-socket",
            &address_word,
            "--wsgi-file",
            &application,
            "--need-app",
            "--threads",
            "32",
            "--listen",
            "1024",
            "--disable-logging",
        ];
        Self::start(scene, &format!("uwsgi{host}"), find("uwsgi").expect("uwsgi"), &words, address)
    }

    /// `servers/idle.py` at `address`, which closes connections that have been idle for `idle_s`.
    pub fn idle(scene: &Scene, address: SocketAddr, idle_s: f64) -> Counting {
        let script = file("servers/idle.py").to_string_lossy().into_owned();
        let (address_word, idle_s) = (address.to_string(), idle_s.to_string());
        let words = [script.as_str(), "--address", &address_word, "--idle-s", &idle_s];
        let python = find("python3").expect("python3");
        Self::start(scene, &format!("idle{}", address.port()), python, &words, address)
    }

    fn start(
        scene: &Scene,
        name: &str,
        program: PathBuf,
        words: &[&str],
        address: SocketAddr,
    ) -> Counting {
        let mut process = Process::start(scene, name, &program, words);
        wait_until_listening(&mut process, address);
        Counting { process, address }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// One of its numbers: `requests`, `distinct`, `duplicates`.
    pub fn stat(&self, name: &str) -> u64 {
        let stats = http::get(self.address, "/-/stats").expect("the server's own numbers").json();
        stats[name].as_u64().unwrap_or_else(|| panic!("no number {name} in {stats}"))
    }
}
