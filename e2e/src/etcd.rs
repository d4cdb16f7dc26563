//! etcd: the real one of Debian, asked through its JSON gateway, and a small one inside the test ([`FakeEtcd`])
//! that makes mistakes on demand.

mod cluster;
mod fake;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

pub use cluster::Cluster;
pub use fake::{FakeEtcd, Fault};

use crate::http::{Connection, Response};
use crate::{Pair, Process, Scene, find, wait};

/// The program, from Debian's package etcd-server.
pub const ETCD: &str = "etcd";
/// The password of `root`, after [`Etcd::enable_auth`].
const ROOT_PASSWORD: &str = "root-of-the-test";

const CLIENT_PORT: u16 = 2379;
const PEER_PORT: u16 = 2380;
/// Where the harness asks, always without TLS.
const HARNESS_PORT: u16 = 2381;
/// A leader is there after a second or two; a busy machine needs longer.
const READY_WITHIN: Duration = Duration::from_mins(1);

/// How an etcd runs.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Certificate and key of HTTPS, and the authority of the certificates that clients must have.
    pub mutual_tls: Option<(Pair, PathBuf)>,
    /// How long a token is valid after its last use, in seconds; etcd's default is 300.
    pub token_ttl_s: Option<u32>,
}

/// A running one. Its data are in the scene's folder.
pub struct Etcd {
    process: Process,
    name: String,
    ip: Ipv4Addr,
    options: Options,
    /// Name and address of every member.
    members: Vec<(String, Ipv4Addr)>,
    has_auth: bool,
}

impl Etcd {
    /// Starts one at the scene's address `host` and waits until it has a leader.
    pub fn start(scene: &Scene, host: u8) -> Etcd {
        Self::start_with(scene, host, Options::default())
    }

    /// As [`Etcd::start`], with options.
    pub fn start_with(scene: &Scene, host: u8, options: Options) -> Etcd {
        let mut etcd = Self::spawn(scene, host, options, &[host]);
        etcd.wait_until_ready();
        etcd
    }

    fn spawn(scene: &Scene, host: u8, options: Options, members: &[u8]) -> Etcd {
        let name = |host: u8| format!("etcd{host}");
        let members: Vec<_> = members.iter().map(|&host| (name(host), scene.ip(host))).collect();
        let (name, ip) = (name(host), scene.ip(host));
        let process = Self::run(scene, &name, ip, &options, &members, true);
        Etcd { process, name, ip, options, members, has_auth: false }
    }

    fn run(
        scene: &Scene,
        name: &str,
        ip: Ipv4Addr,
        options: &Options,
        members: &[(String, Ipv4Addr)],
        for_clients: bool,
    ) -> Process {
        let scheme = if options.mutual_tls.is_some() { "https" } else { "http" };
        let clients = format!("{scheme}://{ip}:{CLIENT_PORT}");
        let harness = format!("http://{ip}:{HARNESS_PORT}");
        let peer = |ip: Ipv4Addr| format!("http://{ip}:{PEER_PORT}");
        let all: Vec<_> =
            members.iter().map(|(name, ip)| format!("{name}={}", peer(*ip))).collect();
        let listen = if for_clients { format!("{clients},{harness}") } else { harness };
        let mut words: Vec<String> = [
            ("name", name.to_owned()),
            ("data-dir", data_folder(scene, name).display().to_string()),
            ("listen-client-urls", listen),
            ("advertise-client-urls", clients),
            ("listen-peer-urls", peer(ip)),
            ("initial-advertise-peer-urls", peer(ip)),
            ("initial-cluster", all.join(",")),
            ("logger", "zap".to_owned()),
            ("log-level", "warn".to_owned()),
        ]
        .into_iter()
        .map(|(name, value)| format!("--{name}={value}"))
        .collect();
        if let Some((pair, authority)) = &options.mutual_tls {
            words.push(format!("--cert-file={}", pair.chain.display()));
            words.push(format!("--key-file={}", pair.key.display()));
            words.push(format!("--trusted-ca-file={}", authority.display()));
            words.push("--client-cert-auth".to_owned());
        }
        words.extend(options.token_ttl_s.map(|ttl_s| format!("--auth-token-ttl={ttl_s}")));
        Process::start(scene, name, &find(ETCD).expect("the scene has looked for it"), words)
    }

    /// Waits until it answers and has a leader.
    pub fn wait_until_ready(&mut self) {
        wait::until(&format!("{} to be ready", self.name), READY_WITHIN, || {
            assert!(self.process.is_running(), "{} ended:\n{}", self.name, self.process.stderr());
            let mut connection = Connection::open(self.harness_address()).ok()?;
            let answer = connection.get("/health", &[]).ok()?;
            (answer.status == 200 && answer.json()["health"] == "true").then_some(())
        });
    }

    /// Where clients reach it.
    pub fn url(&self) -> String {
        let scheme = if self.options.mutual_tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}:{CLIENT_PORT}", self.ip)
    }

    /// Where the harness reaches it, without TLS.
    pub fn harness_address(&self) -> SocketAddr {
        (self.ip, HARNESS_PORT).into()
    }

    /// Its process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Sets a key. Returns the revision.
    pub fn put(&self, key: &str, value: &str) -> i64 {
        revision(&self.call("/v3/kv/put", &put_body(key, value)))
    }

    /// Sets a key that is deleted with this lease.
    pub fn put_with_lease(&self, key: &str, value: &str, lease: &str) {
        let mut body = put_body(key, value);
        body["lease"] = lease.into();
        self.call("/v3/kv/put", &body);
    }

    /// Deletes a key. Returns the revision.
    pub fn delete(&self, key: &str) -> i64 {
        revision(&self.call("/v3/kv/deleterange", &json!({ "key": encode(key) })))
    }

    /// Deletes all keys below this prefix, at once.
    pub fn delete_all(&self, prefix: &str) -> i64 {
        revision(&self.call("/v3/kv/deleterange", &range_body(prefix)))
    }

    /// The number of keys below this prefix.
    pub fn count(&self, prefix: &str) -> u64 {
        let answer = self.call("/v3/kv/range", &range_body(prefix));
        answer["count"].as_str().map_or(0, |count| count.parse().expect("a number"))
    }

    /// Grants a lease, which expires after `ttl_s` unless it is kept alive. Returns its ID.
    pub fn lease(&self, ttl_s: u32) -> String {
        let granted = self.call("/v3/lease/grant", &json!({ "TTL": ttl_s.to_string() }));
        granted["ID"].as_str().expect("an ID").to_owned()
    }

    /// Forgets the history before this revision.
    pub fn compact(&self, revision: i64) {
        self.call(
            "/v3/kv/compaction",
            &json!({ "revision": revision.to_string(), "physical": true }),
        );
    }

    /// Enables authentication, with a user who may read the keys below `prefix`, and with `root`.
    pub fn enable_auth(&mut self, user: &str, password: &str, prefix: &str) {
        let mut permission = range_body(prefix);
        permission["permType"] = "READ".into();
        for (path, body) in [
            ("user/add", json!({ "name": "root", "password": ROOT_PASSWORD })),
            ("role/add", json!({ "name": "root" })),
            ("user/grant", json!({ "user": "root", "role": "root" })),
            ("user/add", json!({ "name": user, "password": password })),
            ("role/add", json!({ "name": "reader" })),
            ("role/grant", json!({ "name": "reader", "perm": permission })),
            ("user/grant", json!({ "user": user, "role": "reader" })),
            ("enable", json!({})),
        ] {
            self.call(&format!("/v3/auth/{path}"), &body);
        }
        self.has_auth = true;
    }

    /// Changes a password, which revokes the tokens of the user.
    pub fn change_password(&self, user: &str, password: &str) {
        self.call("/v3/auth/user/changepw", &json!({ "name": user, "password": password }));
    }

    /// A call of the gateway, which must succeed; as `root` if there is authentication.
    pub fn call(&self, path: &str, body: &Value) -> Value {
        let answer = self.try_call(path, body);
        let answer = answer.unwrap_or_else(|error| panic!("{}: {path}: {error}", self.name));
        assert_eq!(answer.status, 200, "{}: {path}: {}", self.name, answer.text());
        answer.json()
    }

    fn try_call(&self, path: &str, body: &Value) -> std::io::Result<Response> {
        let mut connection = Connection::open(self.harness_address())?;
        let mut fields = Vec::new();
        if self.has_auth {
            let login = json!({ "name": "root", "password": ROOT_PASSWORD });
            let answer = post(&mut connection, "/v3/auth/authenticate", &[], &login)?.json();
            let token = answer["token"].as_str().map(|token| format!("Authorization: {token}"));
            fields.extend(token);
        }
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        post(&mut connection, path, &fields, body)
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Kills it, if it runs, and starts it again with the same ports. Without its data the revision begins again
    /// at 1, and there is no authentication.
    pub fn restart(&mut self, scene: &Scene, keep_data: bool) {
        self.start_again(scene, keep_data, true);
    }

    /// As [`Etcd::restart`] with its data; only the harness reaches it.
    pub fn restart_hidden(&mut self, scene: &Scene) {
        self.start_again(scene, true, false);
    }

    fn start_again(&mut self, scene: &Scene, keep_data: bool, for_clients: bool) {
        self.process.kill();
        if !keep_data {
            drop(std::fs::remove_dir_all(data_folder(scene, &self.name)));
            self.has_auth = false;
        }
        let (name, options) = (&self.name, &self.options);
        self.process = Self::run(scene, name, self.ip, options, &self.members, for_clients);
        // One member of several is ready when most of the others are.
        if self.members.len() == 1 {
            self.wait_until_ready();
        }
    }
}

/// A call of the gateway on a kept connection.
pub fn post(
    connection: &mut Connection,
    path: &str,
    fields: &[&str],
    body: &Value,
) -> std::io::Result<Response> {
    connection.request("POST", path, fields, body.to_string().as_bytes())
}

/// The body of `/v3/kv/put`.
pub fn put_body(key: &str, value: &str) -> Value {
    json!({ "key": encode(key), "value": encode(value) })
}

/// Everything below a prefix, which ends in an ASCII character.
fn range_body(prefix: &str) -> Value {
    let mut end = prefix.as_bytes().to_vec();
    *end.last_mut().expect("a prefix") += 1;
    json!({ "key": encode(prefix), "range_end": encode(end) })
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

fn decode(value: &Value) -> Vec<u8> {
    STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default()
}

fn revision(answer: &Value) -> i64 {
    let text = answer["header"]["revision"].as_str().expect("a revision");
    text.parse().expect("a number")
}

fn data_folder(scene: &Scene, name: &str) -> PathBuf {
    scene.folder().join(format!("{name}-data"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(30);

    #[test]
    fn a_real_one_keeps_what_it_must_and_forgets_the_rest() {
        let Some(scene) = Scene::new("etcd-real", &[ETCD]) else { return };
        let mut etcd = Etcd::start(&scene, 20);
        etcd.put("/a/1", "one");
        etcd.put_with_lease("/a/2", "two", &etcd.lease(1));
        assert_eq!(etcd.count("/a/"), 2);
        wait::until("the end of the lease", SOON, || (etcd.count("/a/") == 1).then_some(()));
        let kept = etcd.put("/b", "other");
        etcd.compact(kept);
        etcd.enable_auth("reader", "password", "/a/");
        etcd.restart(&scene, true);
        assert_eq!(etcd.count("/a/"), 1);
        etcd.restart(&scene, false);
        assert!(etcd.put("/a/1", "one") < kept, "the revision begins again");
    }
}
