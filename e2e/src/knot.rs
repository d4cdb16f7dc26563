//! Knot DNS, an authoritative DNS server of Debian, with one zone that the test sets.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::time::Duration;

use crate::{Process, Scene, find, wait};

/// The programs, from Debian's package knot.
pub const KNOT: [&str; 2] = ["knotd", "knotc"];

const ZONE: &str = "example";
const PORT: u16 = 5353;
const READY_WITHIN: Duration = Duration::from_secs(30);

/// A running one, for the zone `example`.
pub struct Knot {
    process: Process,
    ip: Ipv4Addr,
    /// Of the zone's last version.
    serial: u32,
}

impl Knot {
    /// Starts one at the scene's address `host` with these records, a line each, whose names are relative to
    /// `example.`, and waits until it answers its control program.
    pub fn start(scene: &Scene, host: u8, records: &str) -> Knot {
        let (ip, folder) = (scene.ip(host), scene.folder().display());
        scene.file(
            "knot.conf",
            format!(
                "server:\n  rundir: {folder}\n  listen: {ip}@{PORT}\n  udp-workers: 1\n  tcp-workers: 1\n  \
                 background-workers: 1\n\
                 control:\n  listen: {folder}/knot.sock\n\
                 database:\n  storage: {folder}/knot\n\
                 log:\n  - target: stderr\n    any: info\n\
                 zone:\n  - domain: {ZONE}\n    storage: {folder}\n    file: {ZONE}.zone\n    \
                 journal-content: none\n    zonefile-load: whole\n"
            ),
        );
        write_zone(scene, 1, records);
        let mut knot = Knot { process: Self::run(scene), ip, serial: 1 };
        knot.wait_until_ready(scene);
        knot
    }

    fn run(scene: &Scene) -> Process {
        let config = scene.folder().join("knot.conf").display().to_string();
        let program = find(KNOT[0]).expect("the scene has looked for it");
        Process::start(scene, "knot", &program, ["-c", &config])
    }

    fn wait_until_ready(&mut self, scene: &Scene) {
        wait::until("knot to be ready", READY_WITHIN, || {
            assert!(self.process.is_running(), "knot ended:\n{}", self.process.stderr());
            let status = control(scene, &["zone-status", ZONE]);
            status.contains(&format!("serial: {}", self.serial)).then_some(())
        });
    }

    /// Where it answers.
    pub fn address(&self) -> SocketAddr {
        (self.ip, PORT).into()
    }

    /// Replaces the records of the zone.
    pub fn set(&mut self, scene: &Scene, records: &str) {
        self.serial += 1;
        write_zone(scene, self.serial, records);
        control(scene, &["zone-reload", ZONE]);
        self.wait_until_ready(scene);
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again, after [`Knot::kill`], with the same zone.
    pub fn start_again(&mut self, scene: &Scene) {
        self.process = Self::run(scene);
        self.wait_until_ready(scene);
    }
}

fn write_zone(scene: &Scene, serial: u32, records: &str) {
    // Negative answers are valid for a second, too.
    let zone = format!(
        "$ORIGIN {ZONE}.\n$TTL 1\n@ SOA ns.{ZONE}. admin.{ZONE}. {serial} 3600 600 86400 1\n\
         @ NS ns\nns A 127.0.0.1\n{records}\n"
    );
    scene.file(&format!("{ZONE}.zone"), zone);
}

/// Runs knotc; returns what it wrote.
fn control(scene: &Scene, words: &[&str]) -> String {
    let config = scene.folder().join("knot.conf").display().to_string();
    let program = find(KNOT[1]).expect("the scene has looked for it");
    let output =
        Command::new(program).args(["--blocking", "--config", &config]).args(words).output();
    let output = output.expect("knotc");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs a program that only `make prove` installs"]
    fn a_zone_is_replaced_and_outlives_a_kill() {
        let Some(scene) = Scene::new("knot-real", &KNOT) else { return };
        let mut knot = Knot::start(&scene, 20, "a A 127.0.0.2");
        knot.set(&scene, "b A 127.0.0.3");
        let shown = control(&scene, &["zone-read", ZONE]);
        assert!(shown.contains("127.0.0.3") && !shown.contains("127.0.0.2"), "{shown}");
        knot.kill();
        knot.start_again(&scene);
    }
}
