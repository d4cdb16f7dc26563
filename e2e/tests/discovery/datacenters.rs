//! Two datacenters of Consul: servers of the second one are used when the first one has none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use e2e::rogue::Rogue;
use e2e::{Scene, Weir, wait};
use serde_json::json;

use super::reload::reload;
use super::stage::{
    SOON, Server, Steady, config, consul_at, source, wait_for_error, wait_for_recovery,
    wait_for_standings, wait_until_saved,
};

/// The hosts of each datacenter's instances; `None`: it cannot be asked.
type Listed = HashMap<&'static str, Option<Vec<u8>>>;

/// An agent that answers for two datacenters, `east` and `west`.
struct Agent {
    _rogue: Rogue,
    listed: Arc<Mutex<Listed>>,
}

impl Agent {
    fn start(scene: &Scene, listed: [(&'static str, Option<Vec<u8>>); 2]) -> Agent {
        let listed = Arc::new(Mutex::new(Listed::from(listed)));
        let answers = Arc::clone(&listed);
        let ips: Vec<_> = (0..=255).map(|host| scene.ip(host)).collect();
        let rogue = Rogue::start(scene.address(40, 8500), move |peer| {
            while let Some(head) = peer.request() {
                // A question with an index waits for a change; this one looks five times a second.
                if head.contains("index=") {
                    std::thread::sleep(Duration::from_millis(200));
                }
                let name = if head.contains("dc=east") { "east" } else { "west" };
                let hosts = answers.lock().unwrap()[name].clone();
                let entries = hosts.as_ref().map(|hosts| {
                    let entry = |host: &u8| {
                        json!({ "Node": { "Node": name, "Address": "127.0.0.2" }, "Checks": [],
                            "Service": { "ID": host.to_string(), "Address": ips[usize::from(*host)], "Port": 8080 } })
                    };
                    hosts.iter().map(entry).collect::<Vec<_>>()
                });
                let (status, body) = match entries {
                    Some(entries) => (200, json!(entries).to_string()),
                    None => (500, format!("No path to datacenter {name}")),
                };
                let length = body.len();
                peer.say(format!(
                    "HTTP/1.1 {status} Some\r\nX-Consul-Index: 7\r\nContent-Length: {length}\r\n\r\n{body}"
                ));
            }
        });
        Agent { _rogue: rogue, listed }
    }

    fn set(&self, datacenter: &'static str, hosts: Option<Vec<u8>>) {
        self.listed.lock().unwrap().insert(datacenter, hosts);
    }
}

fn two_datacenters(scene: &Scene) -> String {
    let state = scene.folder().join("state");
    std::fs::create_dir_all(&state).unwrap();
    let consul = consul_at(&format!("http://{}", scene.address(40, 8500)));
    let top = format!(
        "state_directory = \"{}\"\n{consul}\ndatacenters = [\"east\", \"west\"]",
        state.display()
    );
    config(scene, &top, "consul = \"web\"", "")
}

const ALL: &[u8] = &[11, 12, 13, 14, 15];
const EAST: &[u8] = &[11, 12];
const WEST: &[u8] = &[13, 14, 15];

fn full() -> [(&'static str, Option<Vec<u8>>); 2] {
    [("east", Some(EAST.to_vec())), ("west", Some(WEST.to_vec()))]
}

#[test]
fn the_second_datacenter_serves_while_the_first_has_no_server() {
    let Some(scene) = Scene::new("discovery-datacenters", &[]) else { return };
    let _servers: Vec<_> = ALL.iter().map(|&host| Server::start(&scene, host)).collect();
    let agent = Agent::start(&scene, full());
    let weir = Weir::start(&scene, &two_datacenters(&scene));
    let steady = Steady::start(&weir);
    steady.only(EAST);
    // What cannot be asked keeps its servers.
    agent.set("east", None);
    wait_for_error(&weir, "app", &["No path to datacenter east"]);
    steady.only(EAST);
    agent.set("east", Some(Vec::new()));
    steady.only(WEST);
    wait_for_recovery(&weir, "app");
    agent.set("west", None);
    wait_for_error(&weir, "app", &["No path to datacenter west"]);
    steady.only(WEST);
    agent.set("east", Some(EAST.to_vec()));
    steady.only(EAST);
    steady.finish();
}

#[test]
fn a_reload_keeps_the_servers_of_a_datacenter_that_fails() {
    let Some(scene) = Scene::new("discovery-datacenter-reload", &[]) else { return };
    let _servers: Vec<_> = ALL.iter().map(|&host| Server::start(&scene, host)).collect();
    let agent = Agent::start(&scene, full());
    let text = two_datacenters(&scene);
    let weir = Weir::start(&scene, &text);
    let steady = Steady::start(&weir);
    wait_for_standings(&weir, &[(ALL, "listed")]);
    agent.set("east", None);
    wait_for_error(&weir, "app", &["datacenter east"]);
    reload(&scene, &weir, &text.replace("wait = \"1s\"", "wait = \"2s\""));
    wait_for_error(&weir, "app", &["datacenter east"]);
    // West has answered to the new settings by then.
    steady.next(200);
    wait_for_standings(&weir, &[(ALL, "listed")]);
    steady.only(EAST);
    steady.finish();
}

#[test]
fn a_start_uses_saved_servers_of_a_datacenter_that_fails() {
    let Some(scene) = Scene::new("discovery-datacenter-start", &[]) else { return };
    let _servers: Vec<_> = ALL.iter().map(|&host| Server::start(&scene, host)).collect();
    let agent = Agent::start(&scene, full());
    let text = two_datacenters(&scene);
    let mut weir = Weir::start(&scene, &text);
    wait_for_standings(&weir, &[(ALL, "listed")]);
    wait_until_saved(&scene, &[scene.address(11, 8080), scene.address(15, 8080)]);
    weir.kill();
    agent.set("east", None);
    let weir = Weir::start(&scene, &text);
    wait_for_error(&weir, "app", &["datacenter east"]);
    let steady = Steady::start(&weir);
    wait::until("the answer of the other datacenter", SOON, || {
        source(&weir, "app")["answered_ms_ago"].is_f64().then_some(())
    });
    steady.only(EAST);
    wait_for_standings(&weir, &[(ALL, "listed")]);
    steady.finish();
}
