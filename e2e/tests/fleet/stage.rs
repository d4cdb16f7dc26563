//! Balancers of one fleet, each a process with an address of its own on loopback.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use e2e::{App, Process, Scene, Zones, binary, http, wait};
use serde_json::Value;

/// For anything that has to happen at some time, on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(30);

pub(crate) const KEY: &str = "a secret of a fleet in a test, 48 bytes of letters";

/// The host of the first balancer on the scene's network.
const FIRST_HOST: u8 = 100;

/// How one member is configured.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) zone: String,
    pub(crate) keys: Vec<&'static str>,
    /// Replaces the name `b<number>`.
    pub(crate) name: Option<&'static str>,
    /// Numbers of the members that it knows at the start.
    pub(crate) knows: Vec<usize>,
    pub(crate) probers: u8,
    /// Services and routes.
    pub(crate) rest: String,
}

impl Settings {
    /// A member of the zone `a` that knows the first one.
    pub(crate) fn new(rest: &str) -> Settings {
        Settings {
            zone: "a".to_owned(),
            keys: vec![KEY],
            name: None,
            knows: vec![0],
            probers: 2,
            rest: rest.to_owned(),
        }
    }
}

/// A running member.
pub(crate) struct Member {
    number: usize,
    process: Process,
    admin: SocketAddr,
}

/// Where member `number` is: its address for the given port.
pub(crate) fn address(scene: &Scene, number: usize, port: u16) -> SocketAddr {
    let host = FIRST_HOST + u8::try_from(number).expect("few members");
    scene.address(host, port)
}

/// The configuration of member `number`.
fn config(scene: &Scene, number: usize, settings: &Settings) -> String {
    let Settings { zone, keys, name, knows, probers, rest } = settings;
    let at = |port| address(scene, number, port);
    let name = name.map_or_else(|| format!("b{number}"), str::to_owned);
    let known: Vec<String> =
        knows.iter().map(|other| format!("\"{}\"", address(scene, *other, 7946))).collect();
    let keys: Vec<String> = keys.iter().map(|key| format!("\"{key}\"")).collect();
    let mut text = format!(
        "workers = 1\nzone = \"{zone}\"\nreload = {{ watch = false }}\nstate_directory = \"{}\"\n",
        scene.folder().join(format!("state{number}")).display()
    );
    let _ = write!(
        text,
        "[log]\naccess = \"off\"\n[admin]\naddress = \"{}\"\n[[listener]]\naddress = \"{}\"\n\
         [fleet]\naddress = \"{}\"\nname = \"{name}\"\nhost = \"host{number}\"\nprobers = {probers}\n\
         members = [{}]\nkeys = [{}]\n{rest}\n",
        at(9900),
        at(8080),
        at(7946),
        known.join(", "),
        keys.join(", ")
    );
    text
}

impl Member {
    pub(crate) fn start(scene: &Scene, number: usize, settings: &Settings) -> Member {
        let member = Member::start_unready(scene, number, settings);
        member.wait_until_ready();
        member
    }

    pub(crate) fn start_unready(scene: &Scene, number: usize, settings: &Settings) -> Member {
        let file = scene.file(&format!("b{number}.toml"), config(scene, number, settings));
        let words = ["serve", &file.display().to_string()].map(str::to_owned);
        let process = Process::start(scene, &format!("b{number}"), binary(), words);
        Member { number, process, admin: address(scene, number, 9900) }
    }

    pub(crate) fn wait_until_ready(&self) {
        wait::until("a member to be ready", SOON, || {
            let status = http::get(self.admin, "/api/v1/status").ok()?;
            (status.json()["ready"] == true).then_some(())
        });
    }

    /// Reloads with other settings.
    pub(crate) fn reload(&self, scene: &Scene, settings: &Settings) -> Value {
        scene.file(&format!("b{}.toml", self.number), config(scene, self.number, settings));
        self.post("/api/v1/reload")
    }

    pub(crate) fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Where clients reach it.
    pub(crate) fn front(&self, scene: &Scene) -> SocketAddr {
        address(scene, self.number, 8080)
    }

    pub(crate) fn admin(&self) -> SocketAddr {
        self.admin
    }

    pub(crate) fn api(&self, path: &str) -> Value {
        http::get(self.admin, path).unwrap_or_else(|error| panic!("{path}: {error}")).json()
    }

    /// Sends an empty POST to the admin API.
    pub(crate) fn post(&self, path: &str) -> Value {
        let mut connection = http::Connection::open(self.admin).expect("the admin API");
        let answer = connection.request("POST", path, &[], b"").expect("an answer");
        answer.json()
    }

    pub(crate) fn fleet(&self) -> Value {
        self.api("/api/v1/fleet")
    }

    /// The names of the other members as it sees them.
    pub(crate) fn others(&self) -> Vec<String> {
        let fleet = self.fleet();
        let members = fleet["members"].as_array().cloned().unwrap_or_default();
        members.iter().map(|one| one["name"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Who runs its probes: assigned, stood in, relied.
    pub(crate) fn shares(&self) -> [u64; 3] {
        let fleet = self.fleet();
        ["assigned", "stood_in", "relied"].map(|key| fleet["probes"][key].as_u64().unwrap_or(0))
    }

    /// The health of the servers of a service, in order.
    pub(crate) fn health(&self, service: &str) -> Vec<String> {
        let service = self.api(&format!("/api/v1/services/{service}"));
        let servers = service["servers"].as_array().cloned().unwrap_or_default();
        servers.iter().map(|one| one["health"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

/// Rules for nftables that drop the datagrams between members on two sides; `delete table inet cut` ends that.
pub(crate) fn cut(scene: &Scene, one: &[usize], other: &[usize]) -> String {
    let side = |numbers: &[usize]| {
        let side: Vec<String> =
            numbers.iter().map(|number| address(scene, *number, 7946).ip().to_string()).collect();
        format!("{{ {} }}", side.join(", "))
    };
    let (one, other) = (side(one), side(other));
    let drop = |from: &str, to: &str| {
        format!("add rule inet cut in ip saddr {from} ip daddr {to} udp dport 7946 drop;")
    };
    format!(
        "add table inet cut; add chain inet cut in {{ type filter hook input priority 0; }}; {} {}",
        drop(&one, &other),
        drop(&other, &one)
    )
}

/// The network of the servers: members do not share checks of servers on loopback.
pub(crate) const SERVERS: &str = "servers";

/// Starts so many servers in their network, with these options of app.py.
pub(crate) fn start_apps(scene: &Scene, zones: &Zones, count: u8, words: &[&str]) -> Vec<App> {
    let start = |host: u8| {
        let address = zones.address(SERVERS, host, 8080);
        zones.inside(SERVERS, || App::start_at(scene, &format!("app{host}"), address, words))
    };
    (11..11 + count).map(start).collect()
}

/// Starts them again.
pub(crate) fn restart<'a>(
    scene: &Scene,
    zones: &Zones,
    apps: impl IntoIterator<Item = &'a mut App>,
) {
    zones.inside(SERVERS, || apps.into_iter().for_each(|app| app.restart(scene)));
}

/// Waits until each of these members sees exactly `others` others.
pub(crate) fn wait_until_all_see(members: &[Member], others: usize) {
    let mut seen = Vec::new();
    let found = wait::within(SOON, || {
        seen = members.iter().map(|member| member.others().len()).collect();
        seen.iter().all(|number| *number == others).then_some(())
    });
    assert!(found.is_some(), "waited for {others} others at each member; they see {seen:?}");
}

/// Waits until the servers of a service have this health at each of these members.
pub(crate) fn wait_for_health(members: &[Member], service: &str, health: &str) {
    let mut seen = Vec::new();
    let found = wait::within(SOON, || {
        seen = members.iter().map(|member| member.health(service)).collect();
        seen.iter().flatten().all(|one| one == health).then_some(())
    });
    assert!(found.is_some(), "waited for {health} at each member; they see {seen:?}");
}
