//! A small API server with faults: lists in pages, watches, merge patches of statuses, Services and Leases.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

const GROUP: &str = "gateway.networking.k8s.io";
const WEIR_GROUP: &str = "weir.dev";
/// All kinds of CRDs that Weir watches.
pub(crate) const KINDS: [&str; 11] = [
    "gatewayclasses",
    "gateways",
    "listenersets",
    "httproutes",
    "grpcroutes",
    "tlsroutes",
    "tcproutes",
    "referencegrants",
    "backendtlspolicies",
    "servicepolicies",
    "routepolicies",
];

type Name = (String, String);

#[derive(Clone, Default)]
pub(crate) struct Data {
    pub(crate) version: u64,
    pub(crate) objects: BTreeMap<String, BTreeMap<Name, Value>>,
    /// What watches see: version, plural, type, object.
    log: Vec<(u64, String, &'static str, Value)>,
    /// Watches from an older version receive 410.
    oldest: u64,
}

#[derive(Default)]
pub(crate) struct Faults {
    /// Requests whose path contains the text receive the status.
    pub(crate) statuses: BTreeMap<String, u16>,
    /// So many patches receive 409 first.
    pub(crate) conflicts: usize,
    /// Connections are closed without an answer.
    pub(crate) is_down: bool,
    /// The connection of a request that contains the text is closed without an answer.
    pub(crate) broken: Option<String>,
    /// Requests for these paths wait.
    pub(crate) held: BTreeSet<String>,
    /// Watches of this plural end at once.
    pub(crate) early: Option<String>,
    /// The connections of watches of this plural are closed.
    pub(crate) cut: Option<String>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) data: Data,
    pub(crate) faults: Faults,
    pub(crate) kinds: BTreeSet<String>,
    /// The method and path of each request.
    pub(crate) requests: Vec<String>,
    uid: u64,
}

#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) state: Arc<Mutex<State>>,
    /// Incremented when watches must look again; the second number when they must end.
    changed: Arc<watch::Sender<(u64, u64)>>,
    pub(crate) address: std::net::SocketAddr,
}

pub(crate) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn plural(object: &Value) -> String {
    match text(object, "/kind") {
        "GatewayClass" => "gatewayclasses".to_owned(),
        "Ingress" => "ingresses".to_owned(),
        "IngressClass" => "ingressclasses".to_owned(),
        "BackendTLSPolicy" => "backendtlspolicies".to_owned(),
        "ServicePolicy" => "servicepolicies".to_owned(),
        "RoutePolicy" => "routepolicies".to_owned(),
        kind => format!("{}s", kind.to_lowercase()),
    }
}

fn name(object: &Value) -> Name {
    (text(object, "/metadata/namespace").to_owned(), text(object, "/metadata/name").to_owned())
}

impl State {
    pub(crate) fn put(&mut self, mut object: Value) -> Value {
        let (plural, name) = (plural(&object), name(&object));
        let before = self.data.objects.get(&plural).and_then(|all| all.get(&name)).cloned();
        self.data.version += 1;
        let metadata = &mut object["metadata"];
        metadata["resourceVersion"] = self.data.version.to_string().into();
        let generation =
            before.as_ref().map_or(0, |one| one["metadata"]["generation"].as_i64().unwrap_or(0));
        let is_new_spec = before.as_ref().is_none_or(|one| one["spec"] != object["spec"]);
        let metadata = &mut object["metadata"];
        metadata["generation"] = (generation + i64::from(is_new_spec)).into();
        if let Some(before) = &before {
            metadata["uid"] = before["metadata"]["uid"].clone();
            metadata["creationTimestamp"] = before["metadata"]["creationTimestamp"].clone();
        } else {
            self.uid += 1;
            metadata["uid"] = format!("uid-{}", self.uid).into();
            let second = self.uid % 60;
            metadata["creationTimestamp"] = format!("2026-01-01T00:00:{second:02}Z").into();
        }
        let kind = if before.is_some() { "MODIFIED" } else { "ADDED" };
        self.data.log.push((self.data.version, plural.clone(), kind, object.clone()));
        self.data.objects.entry(plural).or_default().insert(name, object.clone());
        object
    }

    fn delete(&mut self, plural: &str, name: &Name) -> Option<Value> {
        let mut object = self.data.objects.get_mut(plural)?.remove(name)?;
        self.data.version += 1;
        object["metadata"]["resourceVersion"] = self.data.version.to_string().into();
        self.data.log.push((self.data.version, plural.to_owned(), "DELETED", object.clone()));
        Some(object)
    }

    pub(crate) fn get(&self, plural: &str, namespace: &str, name: &str) -> Option<&Value> {
        self.data.objects.get(plural)?.get(&(namespace.to_owned(), name.to_owned()))
    }

    /// Counts requests.
    pub(crate) fn count(&self, part: &str) -> usize {
        self.requests.iter().filter(|request| request.contains(part)).count()
    }
}

impl Cluster {
    /// Starts on a thread of its own, which ends with the test's process.
    pub(crate) fn start() -> Cluster {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let kinds = KINDS.iter().map(|kind| (*kind).to_owned()).collect();
        let state = State { kinds, ..State::default() };
        let (changed, _) = watch::channel((0, 0));
        let cluster =
            Cluster { state: Arc::new(Mutex::new(state)), changed: Arc::new(changed), address };
        let served = cluster.clone();
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            tokio::task::LocalSet::new().block_on(&runtime, async move {
                let listener = TcpListener::from_std(listener).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    let cluster = served.clone();
                    tokio::task::spawn_local(async move { cluster.connection(stream).await });
                }
            });
        });
        cluster
    }

    /// Writes a kubeconfig file.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig_for("", &json!({"token": "secret"}))
    }

    /// Writes a kubeconfig file with these credentials.
    pub(crate) fn kubeconfig_for(&self, name: &str, user: &Value) -> PathBuf {
        let port = self.address.port();
        let name = format!("weir-kubernetes-{}-{port}{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": user}],
            "clusters": [{"name": "c", "cluster": {"server": format!("http://{}", self.address)}}]
        });
        std::fs::write(&path, config.to_string()).unwrap();
        path
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.state.lock().unwrap());
        self.changed.send_modify(|(looked, _)| *looked += 1);
        changed
    }

    pub(crate) fn put(&self, object: Value) {
        self.change(|state| state.put(object));
    }

    pub(crate) fn delete(&self, plural: &str, namespace: &str, name: &str) {
        self.change(|state| state.delete(plural, &(namespace.to_owned(), name.to_owned())));
    }

    pub(crate) fn get(&self, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        self.state.lock().unwrap().get(plural, namespace, name).cloned()
    }

    /// Ends all watches and connections.
    pub(crate) fn cut(&self) {
        self.changed.send_modify(|(_, ended)| *ended += 1);
    }

    /// Forgets all events: watches from older versions receive 410.
    pub(crate) fn compact(&self) {
        self.change(|state| {
            state.data.oldest = state.data.version;
            state.data.log.clear();
        });
    }

    /// Requests with this part in their path receive a status; 0 ends it.
    pub(crate) fn fail(&self, part: &str, status: u16) {
        self.change(|state| match status {
            0 => state.faults.statuses.remove(part),
            status => state.faults.statuses.insert(part.to_owned(), status),
        });
    }

    async fn connection(&self, mut stream: TcpStream) {
        let mut buffer = Vec::new();
        while let Some((method, target, accept, body)) = request(&mut stream, &mut buffer).await {
            self.state.lock().unwrap().requests.push(format!("{method} {target}"));
            self.hold(&target).await;
            let answer = self.answer(&method, &target, &accept, &body);
            let Some(answer) = answer else { return };
            let is_written = match answer {
                Answer::Json(status, body) => {
                    let body = body.to_string();
                    let head = format!(
                        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                        body.len()
                    );
                    stream.write_all(format!("{head}{body}").as_bytes()).await.is_ok()
                }
                Answer::Watch { plural, namespace, version } => {
                    self.watch(&mut stream, &plural, &namespace, version).await;
                    return;
                }
            };
            if !is_written {
                return;
            }
        }
    }

    /// Waits as long as the request is held.
    async fn hold(&self, target: &str) {
        let mut changed = self.changed.subscribe();
        let is_held = || {
            let state = self.state.lock().unwrap();
            state.faults.held.iter().any(|path| target.ends_with(path))
        };
        while is_held() && changed.changed().await.is_ok() {}
    }

    async fn watch(&self, stream: &mut TcpStream, plural: &str, namespace: &str, mut version: u64) {
        let mut changed = self.changed.subscribe();
        let ended = changed.borrow().1;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
        if stream.write_all(head.as_bytes()).await.is_err() {
            return;
        }
        loop {
            let mut lines = String::new();
            {
                let state = self.state.lock().unwrap();
                if state.faults.is_down || state.faults.cut.as_deref() == Some(plural) {
                    return;
                }
                if version < state.data.oldest {
                    let status = json!({"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}});
                    lines = format!("{status}\n");
                } else {
                    for (at, of, kind, object) in &state.data.log {
                        let is_inside = namespace.is_empty()
                            || namespace == text(object, "/metadata/namespace");
                        if *at > version && of == plural && is_inside {
                            lines += &json!({"type": kind, "object": object}).to_string();
                            lines.push('\n');
                        }
                    }
                    version = version.max(state.data.version);
                }
            }
            if !lines.is_empty() {
                let is_error = lines.starts_with("{\"type\":\"ERROR\"");
                let chunk = format!("{:x}\r\n{lines}\r\n", lines.len());
                if stream.write_all(chunk.as_bytes()).await.is_err() || is_error {
                    return;
                }
            }
            if changed.changed().await.is_err() || changed.borrow().1 != ended {
                // In the midst of the answer, without the last chunk.
                return;
            }
        }
    }

    fn answer(&self, method: &str, target: &str, accept: &str, body: &[u8]) -> Option<Answer> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut state = self.state.lock().unwrap();
        let is_broken = state.faults.broken.as_ref().is_some_and(|part| target.contains(part));
        if state.faults.is_down || is_broken {
            return None;
        }
        let fault = state
            .faults
            .statuses
            .iter()
            .find(|(part, _)| format!("{method} {target}").contains(*part));
        if let Some((_, status)) = fault {
            return Some(error(*status, "fault"));
        }
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        match parts[..] {
            ["apis", GROUP] => {
                return Some(Answer::Json(
                    200,
                    json!({"versions": [{"version": "v1"}, {"version": "v1other"}]}),
                ));
            }
            ["apis", WEIR_GROUP] => {
                return Some(Answer::Json(200, json!({"versions": [{"version": "v1alpha1"}]})));
            }
            ["apis", GROUP, "v1"] | ["apis", WEIR_GROUP, "v1alpha1"] => {
                let kinds: Vec<Value> =
                    state.kinds.iter().map(|kind| json!({"name": kind})).collect();
                return Some(Answer::Json(200, json!({"resources": kinds})));
            }
            _ => {}
        }
        // Below the group and version.
        let rest = if parts[0] == "api" { &parts[2..] } else { &parts[3..] };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            rest => ("", rest),
        };
        let plural = rest[0].to_owned();
        if [GROUP, WEIR_GROUP].contains(&parts[1]) && !state.kinds.contains(&plural) {
            return Some(error(404, "the server could not find the requested resource"));
        }
        let body: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        let is_metadata = accept.contains("PartialObjectMetadata");
        let answer = match (method, &rest[1..]) {
            ("GET", []) if query.contains("watch=true") => {
                if state.faults.early.as_ref() == Some(&plural) {
                    return Some(Answer::Json(200, Value::Null));
                }
                let version = parameter(query, "resourceVersion").parse().unwrap_or(0);
                return Some(Answer::Watch { plural, namespace: namespace.to_owned(), version });
            }
            ("GET", []) => list(&state, &plural, namespace, query, is_metadata),
            ("POST", []) => {
                if state.get(&plural, namespace, text(&body, "/metadata/name")).is_some() {
                    return Some(error(409, "it exists"));
                }
                Answer::Json(201, state.put(body))
            }
            (_, [name, rest @ ..]) => {
                let found = state.get(&plural, namespace, name).cloned();
                one(&mut state, method, (&plural, namespace, name), rest, found, body)
            }
            _ => error(405, "no such method"),
        };
        drop(state);
        if method != "GET" {
            self.changed.send_modify(|(looked, _)| *looked += 1);
        }
        Some(answer)
    }
}

enum Answer {
    Json(u16, Value),
    Watch { plural: String, namespace: String, version: u64 },
}

fn error(status: u16, message: &str) -> Answer {
    Answer::Json(status, json!({"kind": "Status", "code": status, "message": message}))
}

fn parameter<'a>(query: &'a str, name: &str) -> &'a str {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value)
}

fn list(state: &State, plural: &str, namespace: &str, query: &str, is_metadata: bool) -> Answer {
    let all = state.data.objects.get(plural).into_iter().flatten();
    let inside = all.filter(|((of, _), _)| namespace.is_empty() || of == namespace);
    let limit: usize = parameter(query, "limit").parse().unwrap_or(500);
    let start: usize = parameter(query, "continue").parse().unwrap_or(0);
    let mut items: Vec<Value> = inside.map(|(_, object)| object.clone()).collect();
    let next =
        if items.len() > start + limit { (start + limit).to_string() } else { String::new() };
    items = items.into_iter().skip(start).take(limit).collect();
    if is_metadata {
        items = items.into_iter().map(|one| json!({"metadata": one["metadata"]})).collect();
    }
    let version = state.data.version.to_string();
    Answer::Json(
        200,
        json!({"metadata": {"resourceVersion": version, "continue": next}, "items": items}),
    )
}

fn one(
    state: &mut State,
    method: &str,
    (plural, namespace, name): (&str, &str, &str),
    rest: &[&str],
    found: Option<Value>,
    body: Value,
) -> Answer {
    let Some(mut object) = found else {
        return match (method, rest) {
            // Server-side apply.
            ("PATCH", []) => Answer::Json(201, state.put(body)),
            _ => error(404, "it does not exist"),
        };
    };
    let is_other = |wanted: &str, present: &str| {
        let wanted = text(&body, wanted);
        !wanted.is_empty() && wanted != text(&object, present)
    };
    let is_stale = is_other("/metadata/resourceVersion", "/metadata/resourceVersion")
        || is_other("/preconditions/resourceVersion", "/metadata/resourceVersion")
        || is_other("/preconditions/uid", "/metadata/uid");
    let is_refused = method == "PATCH" && state.faults.conflicts > 0;
    if is_refused {
        state.faults.conflicts -= 1;
    }
    if is_stale || is_refused {
        return error(409, "the object has been modified");
    }
    match (method, rest) {
        ("GET", []) => Answer::Json(200, object),
        ("PATCH", ["status"]) => {
            object["status"] = body["status"].clone();
            Answer::Json(200, state.put(object))
        }
        ("PUT", []) => Answer::Json(200, state.put(body)),
        ("PATCH", []) => {
            let mut body = body;
            body["status"] = object["status"].clone();
            Answer::Json(200, state.put(body))
        }
        ("DELETE", []) => {
            let name = (namespace.to_owned(), name.to_owned());
            Answer::Json(200, state.delete(plural, &name).unwrap_or_default())
        }
        _ => error(405, "no such method"),
    }
}

/// Reads a request: method, target, `Accept`, body.
async fn request(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
) -> Option<(String, String, String, Vec<u8>)> {
    loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
            let field = |name: &str| {
                let lines = head.lines().filter_map(|line| line.split_once(':'));
                let mut found = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
                found.next().map_or(String::new(), |(_, value)| value.trim().to_owned())
            };
            let length: usize = field("content-length").parse().unwrap_or(0);
            if buffer.len() >= end + 4 + length {
                let body = buffer[end + 4..end + 4 + length].to_vec();
                buffer.drain(..end + 4 + length);
                let mut words = head.split(' ');
                let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
                return Some((method, target, field("accept"), body));
            }
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}
