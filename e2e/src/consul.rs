//! Consul: the real agent, which `make consul` builds, and a small one inside the test ([`FakeConsul`])
//! that makes mistakes on demand.
//!
//! An agent runs in development mode unless [`Options::durable`] is set: it elects itself in a third of a second
//! and keeps nothing on disk. A durable one needs a second and a half.

mod answer;
mod cluster;
mod fake;
mod registrations;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde_json::{Value, json};

pub use answer::{Health, Instance};
pub use cluster::Cluster;
pub use fake::{ConsulApi, FakeConsul};

use crate::http::{Connection, Response};
use crate::{CONSUL, Pair, Process, Scene, find, wait};

/// The token that may do everything, where [`Options::acl`] is set.
pub const MANAGEMENT_TOKEN: &str = "c0ffee00-0000-4000-8000-000000000001";

const HTTP_PORT: u16 = 8500;
const HTTPS_PORT: u16 = 8501;
const SERF_PORT: u16 = 8301;
const RPC_PORT: u16 = 8300;
/// A new leader is there after a few seconds; a busy machine needs longer.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// The last byte of the address that the harness's own requests come from, so that a limit on the connections
/// of a client does not count them with those of Weir.
const HARNESS_HOST: u8 = 253;

/// How an agent runs.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Access control lists, with the default policy "deny" and [`MANAGEMENT_TOKEN`].
    pub acl: bool,
    /// Certificate and key of HTTPS, which [`Consul::url`] then names. The plain port stays open.
    pub tls: Option<Pair>,
    /// How many connections a client address may have (`http_max_conns_per_client`); Consul's default is 200.
    pub connections_per_client_max: Option<u32>,
    /// Whether the agent keeps its data on disk, so that it survives [`Consul::restart`].
    pub durable: bool,
    /// Metadata of the node, an object.
    pub node_meta: Option<Value>,
}

/// A running agent, which is a server.
pub struct Consul {
    process: Process,
    name: String,
    ip: Ipv4Addr,
    harness_ip: Ipv4Addr,
    options: Options,
    /// The addresses of all servers, if there is more than this one.
    servers: Vec<Ipv4Addr>,
}

impl Consul {
    /// Starts one at the scene's address `host` and waits until it has a leader and knows itself.
    pub fn start(scene: &Scene, host: u8) -> Consul {
        Self::start_with(scene, host, Options::default())
    }

    /// As [`Consul::start`], with options.
    pub fn start_with(scene: &Scene, host: u8, options: Options) -> Consul {
        let mut consul = Self::spawn(scene, host, options, Vec::new());
        consul.wait_until_ready();
        consul
    }

    fn spawn(scene: &Scene, host: u8, options: Options, servers: Vec<Ipv4Addr>) -> Consul {
        let (name, ip) = (format!("consul{host}"), scene.ip(host));
        let file = format!("{name}.json");
        scene.file(&file, settings(scene, &name, ip, &options, &servers).to_string());
        let process = Self::run(scene, &name, options.durable);
        Consul { process, name, ip, harness_ip: scene.ip(HARNESS_HOST), options, servers }
    }

    fn run(scene: &Scene, name: &str, durable: bool) -> Process {
        let file = scene.folder().join(format!("{name}.json")).display().to_string();
        let mode = if durable { &[][..] } else { &["-dev"] };
        let words = [&["agent", "-config-file", &file], mode].concat();
        Process::start(scene, name, &find(CONSUL).expect("the scene has looked for it"), words)
    }

    /// Waits until it has a leader and the catalog lists the agent's own service. Before that, Consul answers
    /// queries about services with an empty list.
    pub fn wait_until_ready(&mut self) {
        wait::until(&format!("{} to be ready", self.name), READY_WITHIN, || {
            assert!(self.process.is_running(), "{} ended:\n{}", self.name, self.process.stdout());
            let answer = self.try_request("GET", "/v1/health/service/consul", b"").ok()?;
            let nodes = answer.json();
            let is_listed =
                nodes.as_array()?.iter().any(|one| one["Node"]["Node"] == self.name.as_str());
            (answer.status == 200 && is_listed).then_some(())
        });
    }

    /// Where it answers over plain HTTP.
    pub fn address(&self) -> SocketAddr {
        (self.ip, HTTP_PORT).into()
    }

    /// Where clients reach it: HTTPS if it has a certificate.
    pub fn url(&self) -> String {
        match self.options.tls {
            Some(_) => format!("https://{}:{HTTPS_PORT}", self.ip),
            None => format!("http://{}", self.address()),
        }
    }

    /// The name of its node.
    pub fn node(&self) -> &str {
        &self.name
    }

    /// Its process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Registers a service with this agent: the body of `PUT /v1/agent/service/register`.
    pub fn register(&self, service: &Value) {
        self.put("/v1/agent/service/register", service);
    }

    /// Removes the service with this ID.
    pub fn deregister(&self, id: &str) {
        self.put(&format!("/v1/agent/service/deregister/{id}"), &Value::Null);
    }

    /// Switches the maintenance mode of the service with this ID.
    pub fn maintenance(&self, id: &str, on: bool) {
        self.put(&format!("/v1/agent/service/maintenance/{id}?enable={on}"), &Value::Null);
    }

    /// Switches the maintenance mode of the node, which concerns all its services.
    pub fn node_maintenance(&self, on: bool) {
        self.put(&format!("/v1/agent/maintenance?enable={on}"), &Value::Null);
    }

    /// Reports success for a TTL check.
    pub fn pass(&self, check: &str) {
        self.put(&format!("/v1/agent/check/pass/{check}"), &Value::Null);
    }

    /// Reports a warning for a TTL check.
    pub fn warn(&self, check: &str) {
        self.put(&format!("/v1/agent/check/warn/{check}"), &Value::Null);
    }

    /// Reports failure for a TTL check.
    pub fn fail(&self, check: &str) {
        self.put(&format!("/v1/agent/check/fail/{check}"), &Value::Null);
    }

    /// GET of any path, with [`MANAGEMENT_TOKEN`] where there are ACLs.
    pub fn get(&self, path: &str) -> Response {
        self.try_request("GET", path, b"").unwrap_or_else(|e| panic!("{}: {path}: {e}", self.name))
    }

    /// PUT to any path, which must succeed; returns the answer's JSON.
    pub fn put(&self, path: &str, body: &Value) -> Value {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let answer = self.try_request("PUT", path, body.as_bytes());
        let answer = answer.unwrap_or_else(|error| panic!("{}: {path}: {error}", self.name));
        assert_eq!(answer.status, 200, "{}: {path}: {}", self.name, answer.text());
        answer.json()
    }

    /// Creates a policy with these rules and a token for it. Returns the token's accessor ID and its secret, which
    /// clients send.
    pub fn token(&self, policy: &str, rules: &str) -> (String, String) {
        self.put("/v1/acl/policy", &json!({ "Name": policy, "Rules": rules }));
        let token = self.put("/v1/acl/token", &json!({ "Policies": [{ "Name": policy }] }));
        let field = |name: &str| token[name].as_str().expect("an ID").to_owned();
        (field("AccessorID"), field("SecretID"))
    }

    /// Deletes the token with this accessor ID.
    pub fn revoke(&self, accessor: &str) {
        let path = format!("/v1/acl/token/{accessor}");
        let answer = self.try_request("DELETE", &path, b"").expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Kills it, if it runs, and starts it again with the same ports. Without its data the index begins again at
    /// a small number. Keeping data takes [`Options::durable`].
    pub fn restart(&mut self, scene: &Scene, keep_data: bool) {
        assert!(self.options.durable || !keep_data, "only a durable agent keeps its data");
        self.process.kill();
        if !keep_data {
            drop(std::fs::remove_dir_all(data_folder(scene, &self.name)));
        }
        self.process = Self::run(scene, &self.name, self.options.durable);
        // One server of several is ready when the others have elected a leader, and it may be the first of them.
        if self.servers.is_empty() {
            self.wait_until_ready();
        }
    }

    fn try_request(&self, method: &str, path: &str, body: &[u8]) -> std::io::Result<Response> {
        let token = format!("X-Consul-Token: {MANAGEMENT_TOKEN}");
        let fields: &[&str] = if self.options.acl { &[&token] } else { &[] };
        let mut connection = Connection::open_from(self.harness_ip, self.address())?;
        connection.request(method, path, fields, body)
    }
}

fn data_folder(scene: &Scene, name: &str) -> std::path::PathBuf {
    scene.folder().join(format!("{name}-data"))
}

/// The agent's configuration file.
fn settings(
    scene: &Scene,
    name: &str,
    ip: Ipv4Addr,
    options: &Options,
    servers: &[Ipv4Addr],
) -> Value {
    let mut settings = json!({
        "node_name": name, "server": true, "bind_addr": ip, "client_addr": ip.to_string(),
        "log_level": "INFO", "disable_update_check": true,
        "node_meta": options.node_meta.clone().unwrap_or_else(|| json!({})),
        "ports": {
            "http": HTTP_PORT, "https": if options.tls.is_some() { i32::from(HTTPS_PORT) } else { -1 },
            "serf_lan": SERF_PORT, "server": RPC_PORT,
            "dns": -1, "grpc": -1, "grpc_tls": -1, "serf_wan": -1,
        },
    });
    if options.durable {
        settings["data_dir"] = json!(data_folder(scene, name));
        settings["bootstrap_expect"] = json!(servers.len().max(1));
        // The shortest timeouts of an election that are not those of the development mode.
        settings["performance"] = json!({ "raft_multiplier": 1 });
        settings["retry_join"] = json!(servers);
        settings["retry_interval"] = json!("250ms");
    }
    if options.acl {
        let tokens = json!({ "initial_management": MANAGEMENT_TOKEN, "agent": MANAGEMENT_TOKEN });
        settings["acl"] = json!({ "enabled": true, "default_policy": "deny", "tokens": tokens });
        // With streaming, Consul closes a revoked token's subscription before it commits the token's removal. If its
        // own client subscribes again in between, it gets the answers until it restarts.
        settings["use_streaming_backend"] = json!(false);
    }
    if let Some(pair) = &options.tls {
        let https = json!({ "cert_file": pair.chain, "key_file": pair.key });
        settings["tls"] = json!({ "https": https });
    }
    if let Some(max) = options.connections_per_client_max {
        settings["limits"] = json!({ "http_max_conns_per_client": max });
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Authority;

    const SOON: Duration = Duration::from_secs(20);

    fn index(answer: &Response) -> u64 {
        answer.field("x-consul-index").and_then(|text| text.parse().ok()).expect("an index")
    }

    fn web(port: u16) -> Value {
        let check =
            json!({ "CheckID": "alive", "Name": "alive", "TTL": "1h", "Status": "passing" });
        json!({ "ID": "web-1", "Name": "web", "Address": "10.0.0.1", "Port": port, "Check": check })
    }

    fn listed(consul: &Consul, query: &str) -> usize {
        let answer = consul.get(&format!("/v1/health/service/web{query}")).json();
        answer.as_array().map_or(0, Vec::len)
    }

    fn wait_for_listed(consul: &Consul, query: &str, count: usize) {
        let what = format!("{count} instances of web{query}");
        wait::until(&what, SOON, || (listed(consul, query) == count).then_some(()));
    }

    #[test]
    #[ignore = "needs a program that only `make prove` builds"]
    fn a_real_blocking_query_ends_at_a_change() {
        let Some(scene) = Scene::new("consul-real", &[CONSUL]) else { return };
        let mut consul = Consul::start(&scene, 20);
        consul.register(&web(80));
        wait_for_listed(&consul, "?passing", 1);
        let seen = index(&consul.get("/v1/health/service/web"));
        let woken = std::thread::scope(|scope| {
            let path = format!("/v1/health/service/web?index={seen}&wait=60s");
            let query = scope.spawn({
                let consul = &consul;
                move || consul.get(&path)
            });
            consul.fail("alive");
            query.join().expect("an answer")
        });
        assert!(index(&woken) > seen);
        wait_for_listed(&consul, "?passing", 0);
        consul.warn("alive");
        consul.pass("alive");
        wait_for_listed(&consul, "?passing", 1);
        for switch in [Consul::node_maintenance, |consul: &Consul, on| {
            consul.maintenance("web-1", on);
        }] {
            switch(&consul, true);
            wait_for_listed(&consul, "?passing", 0);
            switch(&consul, false);
            wait_for_listed(&consul, "?passing", 1);
        }
        consul.deregister("web-1");
        wait_for_listed(&consul, "", 0);
        let before = index(&consul.get("/v1/health/service/web"));
        consul.restart(&scene, false);
        assert!(index(&consul.get("/v1/health/service/web")) < before, "the index begins again");
    }

    #[test]
    #[ignore = "needs a program that only `make prove` builds"]
    fn a_real_agent_has_tls_tokens_and_a_limit_of_connections() {
        let Some(scene) = Scene::new("consul-options", &[CONSUL, "curl"]) else { return };
        let authority = Authority::new(&scene, "Consul CA");
        let pair = authority.issue("consul", &[&scene.ip(20).to_string()]);
        let consul = Consul::start_with(
            &scene,
            20,
            Options {
                acl: true,
                tls: Some(pair),
                connections_per_client_max: Some(3),
                ..Options::default()
            },
        );
        consul.register(&web(80));
        let rules =
            "service_prefix \"\" { policy = \"read\" } node_prefix \"\" { policy = \"read\" }";
        let (accessor, secret) = consul.token("readers", rules);
        let url = format!("{}/v1/health/service/web", consul.url());
        let ca = authority.pem().display().to_string();
        let with = |token: &str| {
            let token = format!("X-Consul-Token: {token}");
            crate::clients::curl(&scene, &["--cacert", &ca, "-H", &token, &url]).stdout
        };
        wait::until("the instance", SOON, || with(&secret).contains("web-1").then_some(()));
        consul.revoke(&accessor);
        wait::until("the refusal", SOON, || with(&secret).contains("ACL not found").then_some(()));
        // Further connections are opened until one is refused; those before it are kept.
        let mut kept = Vec::new();
        let refusal = wait::until("a refused connection", SOON, || {
            let mut one = Connection::open(consul.address()).unwrap();
            one.stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
            let answer = one.response(false).ok();
            kept.push(one);
            answer
        });
        assert_eq!(refusal.status, 429);
        assert!(kept.len() <= 4, "{} connections before the refusal", kept.len() - 1);
    }

    #[test]
    #[ignore = "needs a program that only `make prove` builds"]
    fn a_durable_agent_keeps_its_services() {
        let Some(scene) = Scene::new("consul-durable", &[CONSUL]) else { return };
        let options = Options { durable: true, ..Options::default() };
        let mut consul = Consul::start_with(&scene, 20, options);
        consul.register(&web(80));
        wait_for_listed(&consul, "", 1);
        consul.kill();
        consul.restart(&scene, true);
        wait_for_listed(&consul, "", 1);
        consul.restart(&scene, false);
        assert_eq!(listed(&consul, ""), 0);
    }
}
