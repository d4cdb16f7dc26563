//! Nomad: the real agent, which `make nomad` builds, and a small one inside the test ([`FakeNomad`]) that makes
//! mistakes on demand.
//!
//! The agent is a server and a client. Its jobs run `sleep` and register services for the servers of the test.

mod fake;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

pub use fake::{FakeNomad, NomadApi, Registration};

use crate::http::{Connection, Response};
use crate::{NOMAD, Process, Scene, find, wait};

/// The token that may do everything, where there are ACLs.
pub const MANAGEMENT_TOKEN: &str = "c0ffee00-0000-4000-8000-000000000002";

const HTTP_PORT: u16 = 4646;
const RPC_PORT: u16 = 4647;
const SERF_PORT: u16 = 4648;
/// It looks at the machine for some seconds; a busy machine needs longer.
const READY_WITHIN: Duration = Duration::from_mins(2);

/// A running agent. It keeps its data.
pub struct Nomad {
    process: Process,
    name: String,
    ip: Ipv4Addr,
    folder: PathBuf,
    acl: bool,
}

impl Nomad {
    /// Starts one at the scene's address `host` and waits until it can run jobs; with `acl`, only
    /// [`MANAGEMENT_TOKEN`] may do something.
    pub fn start(scene: &Scene, host: u8, acl: bool) -> Nomad {
        let (name, ip) = (format!("nomad{host}"), scene.ip(host));
        let folder = scene.folder().join(format!("{name}-data"));
        scene.file(&format!("{name}.hcl"), settings(&name, ip, &folder, acl));
        let process = Self::run(scene, &name);
        let mut nomad = Nomad { process, name, ip, folder, acl };
        if acl {
            nomad.bootstrap();
        }
        nomad.wait_until_ready();
        nomad
    }

    fn run(scene: &Scene, name: &str) -> Process {
        let file = scene.folder().join(format!("{name}.hcl")).display().to_string();
        let words = ["agent", "-config", &file];
        Process::start(scene, name, &find(NOMAD).expect("the scene has looked for it"), words)
    }

    fn bootstrap(&mut self) {
        let body = json!({ "BootstrapSecret": MANAGEMENT_TOKEN }).to_string();
        wait::until("the first token", READY_WITHIN, || {
            let answer = self.try_request("POST", "/v1/acl/bootstrap", body.as_bytes()).ok()?;
            (answer.status == 200).then_some(())
        });
    }

    /// Waits until it has a leader and its own node is ready.
    pub fn wait_until_ready(&mut self) {
        wait::until(&format!("{} to be ready", self.name), READY_WITHIN, || {
            assert!(self.process.is_running(), "{} ended:\n{}", self.name, self.process.stdout());
            let nodes = self.try_request("GET", "/v1/nodes", b"").ok()?.json();
            let is_ready = nodes.as_array()?.iter().any(|one| one["Status"] == "ready");
            is_ready.then_some(())
        });
    }

    /// Where clients reach it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    fn address(&self) -> SocketAddr {
        (self.ip, HTTP_PORT).into()
    }

    /// Runs the job `web` with a task for each of these servers, which registers the service `web` there with
    /// these tags. Tasks that are no longer among them are stopped.
    pub fn run_web(&self, servers: &[(SocketAddr, &[&str])]) {
        let groups: Vec<Value> =
            servers.iter().map(|(address, tags)| group(*address, tags)).collect();
        let job = json!({ "ID": "web", "Name": "web", "Type": "service", "Datacenters": ["dc1"],
            "Update": { "MinHealthyTime": 100_000_000, "HealthCheck": "task_states" },
            "TaskGroups": groups });
        self.call("POST", "/v1/jobs", &json!({ "Job": job }));
    }

    /// Sets the number of tasks for a server of [`Nomad::run_web`]. Waits for what Nomad does not allow beside it:
    /// a deployment that is not complete.
    pub fn scale_web(&self, address: SocketAddr, count: u32) {
        let target = json!({ "Group": group_name(address) });
        let body = json!({ "Count": count, "Target": target }).to_string();
        wait::until("the job to be scaled", READY_WITHIN, || {
            let path = "/v1/job/web/scale";
            let answer = self.try_request("POST", path, body.as_bytes()).expect("an answer");
            let is_early = answer.text().contains("active deployment");
            assert!(is_early || answer.status == 200, "{}: {}", answer.status, answer.text());
            (answer.status == 200).then_some(())
        });
    }

    /// Stops the job `web` and all its tasks.
    pub fn stop_web(&self) {
        self.call("DELETE", "/v1/job/web", &Value::Null);
    }

    /// The addresses at which the service `web` is registered.
    pub fn registered(&self) -> Vec<String> {
        let rows = self.call("GET", "/v1/service/web", &Value::Null);
        let address = |one: &Value| one["Address"].as_str().unwrap_or_default().to_owned();
        let mut all: Vec<String> = rows.as_array().into_iter().flatten().map(address).collect();
        all.sort();
        all
    }

    /// Creates a token that may read the jobs of the default namespace, and their services. Returns the token's
    /// accessor ID and its secret, which clients send.
    pub fn token(&self) -> (String, String) {
        let rules = "namespace \"default\" { policy = \"read\" }";
        self.call("POST", "/v1/acl/policy/readers", &json!({ "Name": "readers", "Rules": rules }));
        let token = json!({ "Name": "weir", "Type": "client", "Policies": ["readers"] });
        let token = self.call("POST", "/v1/acl/token", &token);
        let field = |name: &str| token[name].as_str().expect("an ID").to_owned();
        (field("AccessorID"), field("SecretID"))
    }

    /// Deletes the token with this accessor ID.
    pub fn revoke(&self, accessor: &str) {
        self.call("DELETE", &format!("/v1/acl/token/{accessor}"), &Value::Null);
    }

    /// A request that must succeed; returns the answer's JSON.
    pub fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = self.try_request(method, path, body.as_bytes());
        let answer = answer.unwrap_or_else(|error| panic!("{}: {path}: {error}", self.name));
        assert_eq!(answer.status, 200, "{}: {path}: {}", self.name, answer.text());
        answer.json()
    }

    /// SIGKILL. Its tasks go on, as they do under any agent.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Kills it, if it runs, and starts it again with its data.
    pub fn restart(&mut self, scene: &Scene) {
        self.process.kill();
        self.process = Self::run(scene, &self.name);
        self.wait_until_ready();
    }

    fn try_request(&self, method: &str, path: &str, body: &[u8]) -> std::io::Result<Response> {
        let token = format!("X-Nomad-Token: {MANAGEMENT_TOKEN}");
        let fields: &[&str] = if self.acl { &[&token] } else { &[] };
        Connection::open(self.address())?.request(method, path, fields, body)
    }
}

impl Drop for Nomad {
    /// Ends the tasks and unmounts their folders, which outlive an agent that is killed.
    fn drop(&mut self) {
        if self.process.is_running() {
            drop(self.try_request("DELETE", "/v1/job/web?purge=true", b""));
            let _ =
                wait::within(Duration::from_secs(10), || self.mounts().is_empty().then_some(()));
        }
        self.process.kill();
        for mount in self.mounts() {
            // What cannot be unmounted is seen when the scene's folder is removed.
            let _ = rustix::mount::unmount(&mount, rustix::mount::UnmountFlags::DETACH);
        }
    }
}

impl Nomad {
    /// What is mounted in its folder.
    fn mounts(&self) -> Vec<String> {
        let folder = self.folder.display().to_string();
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let places = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        places.filter(|place| place.starts_with(&folder)).map(str::to_owned).collect()
    }
}

fn group_name(address: SocketAddr) -> String {
    format!("at-{}", address.ip())
}

/// A group with a task that sleeps, and a service of the server at this address.
fn group(address: SocketAddr, tags: &[&str]) -> Value {
    let service = json!({ "Name": "web", "Provider": "nomad", "Tags": tags,
        "Address": address.ip(), "PortLabel": address.port().to_string() });
    let task = json!({ "Name": "sleep", "Driver": "raw_exec",
        "Config": { "command": "/bin/sleep", "args": ["600"] },
        "LogConfig": { "MaxFiles": 1, "MaxFileSizeMB": 1 },
        "Resources": { "CPU": 10, "MemoryMB": 10 }, "KillTimeout": 1_000_000_000_u64 });
    json!({ "Name": group_name(address), "Count": 1, "Tasks": [task], "Services": [service],
        "EphemeralDisk": { "SizeMB": 10 } })
}

/// The agent's configuration file.
fn settings(name: &str, ip: Ipv4Addr, folder: &std::path::Path, acl: bool) -> String {
    let folder = folder.display();
    format!(
        "name = \"{name}\"\ndata_dir = \"{folder}\"\nbind_addr = \"{ip}\"\n\
         log_level = \"INFO\"\ndisable_update_check = true\nleave_on_terminate = false\n\
         ports {{\n http = {HTTP_PORT}\n rpc = {RPC_PORT}\n serf = {SERF_PORT}\n}}\n\
         advertise {{\n http = \"{ip}\"\n rpc = \"{ip}\"\n serf = \"{ip}\"\n}}\n\
         server {{\n enabled = true\n bootstrap_expect = 1\n raft_multiplier = 1\n}}\n\
         client {{\n enabled = true\n network_interface = \"lo\"\n cpu_total_compute = 4000\n\
          memory_total_mb = 4000\n options = {{\n\
          \"driver.allowlist\" = \"raw_exec\"\n\
          \"fingerprint.denylist\" = \"env_aws,env_gce,env_azure,env_digitalocean,consul,vault,cni,bridge\"\n }}\n}}\n\
         plugin \"raw_exec\" {{\n config {{\n enabled = true\n }}\n}}\n\
         consul {{\n auto_advertise = false\n server_auto_join = false\n client_auto_join = false\n}}\n\
         acl {{\n enabled = {acl}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs a program that only `make prove` builds"]
    fn a_real_agent_registers_what_its_jobs_run() {
        let Some(scene) = Scene::new("nomad-real", &[NOMAD]) else { return };
        let nomad = Nomad::start(&scene, 20, true);
        let servers = [11, 12].map(|host| scene.address(host, 8080));
        let wait_for = |count: usize| {
            wait::until("registrations", READY_WITHIN, || {
                (nomad.registered().len() == count).then_some(())
            });
        };
        nomad.run_web(&servers.map(|address| (address, &["v2"][..])));
        wait_for(2);
        assert_eq!(nomad.registered()[0], servers[0].ip().to_string());
        nomad.scale_web(servers[0], 0);
        wait_for(1);
        nomad.scale_web(servers[0], 1);
        wait_for(2);
        let (accessor, _) = nomad.token();
        nomad.revoke(&accessor);
        nomad.stop_web();
        wait_for(0);
    }
}
