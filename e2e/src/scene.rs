//! A test's place on the machine: a folder, a private piece of loopback, and its turn.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::peers;

/// Tests that measure take the machine for themselves; all others share it. This orders the tests of
/// one process, which are those of one file under `cargo test`.
static MACHINE: RwLock<()> = RwLock::new(());

/// The port that holds a scene's claim on its addresses.
const CLAIM_PORT: u16 = 10_009;

enum Turn {
    Shared(#[expect(dead_code, reason = "held, not read")] RwLockReadGuard<'static, ()>),
    Alone(#[expect(dead_code, reason = "held, not read")] RwLockWriteGuard<'static, ()>),
}

/// What a test stands on. Everything made in it is gone when it is dropped; after a failure the
/// folder stays, and its place is printed.
pub struct Scene {
    folder: PathBuf,
    /// 127.a.b.0/24 is this scene's, proven by the listener below.
    network: [u8; 2],
    _claim: TcpListener,
    _turn: Turn,
}

impl Scene {
    /// A scene for the test `name` that needs the programs `needs` (and [`crate::NAMESPACES`]).
    /// `None` when the test cannot run here; it should then return.
    pub fn new(name: &str, needs: &[&str]) -> Option<Scene> {
        let turn =
            || Turn::Shared(MACHINE.read().unwrap_or_else(std::sync::PoisonError::into_inner));
        Self::with_turn(name, needs, turn)
    }

    /// Like [`Scene::new`], for a test that needs the machine for itself: no other test of its file
    /// runs beside it, and under nextest no other test at all.
    pub fn alone(name: &str, needs: &[&str]) -> Option<Scene> {
        check_group(name);
        let turn =
            || Turn::Alone(MACHINE.write().unwrap_or_else(std::sync::PoisonError::into_inner));
        Self::with_turn(name, needs, turn)
    }

    fn with_turn(name: &str, needs: &[&str], turn: impl FnOnce() -> Turn) -> Option<Scene> {
        if !peers::are_there(name, needs) {
            return None;
        }
        let turn = turn();
        let (network, claim) = claim();
        let [a, b] = network;
        let folder = std::env::temp_dir().join(format!("weir-e2e-{a}-{b}-{name}"));
        drop(std::fs::remove_dir_all(&folder));
        std::fs::create_dir_all(&folder).expect("a folder for the test");
        Some(Scene { folder, network, _claim: claim, _turn: turn })
    }

    /// The scene's `host`-th address. By habit 1 is Weir's and servers begin at 11.
    pub fn ip(&self, host: u8) -> Ipv4Addr {
        let [a, b] = self.network;
        Ipv4Addr::new(127, a, b, host)
    }

    /// That address with a port; every port of it is free.
    pub fn address(&self, host: u8, port: u16) -> SocketAddr {
        SocketAddr::new(self.ip(host).into(), port)
    }

    /// Where clients connect to Weir.
    pub fn front(&self) -> SocketAddr {
        self.address(1, 8080)
    }

    /// Where Weir's admin API is.
    pub fn admin(&self) -> SocketAddr {
        self.address(1, 9900)
    }

    /// The scene's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes `text` into the folder as `name`; yields its path.
    pub fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.join(name);
        std::fs::write(&path, text).expect("a file in the test's folder");
        path
    }

    /// A configuration: `top` holds keys that stand before the first table; then come the
    /// admin API, a listener `public` at [`Scene::front`], and `rest`.
    pub fn config(&self, top: &str, rest: &str) -> String {
        let (front, admin) = (self.front(), self.admin());
        format!(
            "{top}\n[admin]\naddress = \"{admin}\"\n\n\
             [[listener]]\nname = \"public\"\naddress = \"{front}\"\n\n{rest}\n"
        )
    }

    /// A configuration as [`Scene::config`] makes it, with two workers, one route for everything,
    /// and one service `app` with the lines `service` and servers at `servers`.
    pub fn one_service(&self, service: &str, servers: &[SocketAddr]) -> String {
        let servers = crate::server_tables("app", servers);
        self.config(
            "workers = 2",
            &format!("[[route]]\nservice = \"app\"\n\n[service.app]\n{service}\n\n{servers}"),
        )
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("what the processes wrote is in {}", self.folder.display());
        } else {
            drop(std::fs::remove_dir_all(&self.folder));
        }
    }
}

/// Under nextest every test is a process, so that [`MACHINE`] orders nothing: the tests that run
/// alone are listed in its configuration. Fails a test that is missing there.
fn check_group(name: &str) {
    if let Ok(group) = std::env::var("NEXTEST_TEST_GROUP") {
        assert_eq!(
            group, "alone",
            "{name} uses Scene::alone: add its test to the group `alone` in .config/nextest.toml"
        );
    }
}

/// A /24 of loopback that is not in use: other tests, of this run or another, are kept out by
/// the listener on it.
fn claim() -> ([u8; 2], TcpListener) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..10_000 {
        let count = NEXT.fetch_add(1, Ordering::Relaxed);
        // Neighbouring pids should not walk over each other's claims.
        let mixed = (std::process::id().wrapping_mul(64).wrapping_add(count)) % (250 * 250);
        let network = [(mixed / 250) as u8 + 2, (mixed % 250) as u8 + 2];
        let address = Ipv4Addr::new(127, network[0], network[1], 254);
        if let Ok(listener) = TcpListener::bind((address, CLAIM_PORT)) {
            return (network, listener);
        }
    }
    panic!("no free piece of loopback for the test");
}
