//! What can go wrong, each situation made for real, and how all of a table are run: one Weir, in
//! which every situation has a listener, a route, a service and servers of its own, so that all run
//! at once and none sees another.

mod balancer;
mod clients;
mod expected;
mod network;
mod queues;
mod secured;
mod servers;
mod tcp;

use std::any::Any;
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use e2e::http::{Connection, Response};
use e2e::rogue::{Peer, Rogue, full_listen_queue, full_unix_queue};
use e2e::{Admin, Scene, Weir, Zones, wait};
use serde_json::Value;

pub(crate) use expected::Expected;

/// Long enough for anything that happens at once, on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// The request whose end is looked at. Others of a situation ask for another path.
const IT: &str = "/it";

/// A situation.
pub(crate) struct Situation {
    /// Also the name of its listener and its service.
    pub(crate) name: &'static str,
    listener: &'static str,
    route: &'static str,
    service: &'static str,
    servers: Vec<Server>,
    act: Act,
    /// Its listener passes bytes on, not requests.
    tcp: bool,
    pub(crate) expected: Expected,
}

type Behaviour = Arc<dyn Fn(&mut Peer) + Send + Sync>;
type Act = Box<dyn Fn(&Stage<'_>) -> Seen + Send + Sync>;

enum Server {
    /// Something that listens, and further lines of its table.
    Rogue(Behaviour, &'static str),
    /// The same in a zone.
    RogueIn(&'static str, Behaviour),
    /// An address of this host where nothing listens.
    Nobody,
    /// One that listens and whose listen queue is full.
    Full,
    /// A Unix socket whose listen queue is full.
    FullUnix,
    /// An address of a zone.
    InZone(&'static str, u8),
    /// Whatever stands here.
    Named(&'static str),
}

impl Situation {
    pub(crate) fn new(name: &'static str, expected: Expected) -> Situation {
        let act = Box::new(|stage: &Stage<'_>| stage.get());
        let (listener, route, service) = ("", "", "");
        let (servers, tcp) = (Vec::new(), false);
        Situation { name, listener, route, service, servers, act, tcp, expected }
    }

    pub(crate) fn tcp(self) -> Situation {
        Situation { tcp: true, ..self }
    }

    /// Further lines of its listener.
    pub(crate) fn listener(self, listener: &'static str) -> Situation {
        Situation { listener, ..self }
    }

    /// Further lines of its route; in place of the service if they say what is done.
    pub(crate) fn route(self, route: &'static str) -> Situation {
        Situation { route, ..self }
    }

    /// Further lines of its service.
    pub(crate) fn service(self, service: &'static str) -> Situation {
        Situation { service, ..self }
    }

    /// A server that does this with each connection.
    pub(crate) fn server(self, does: impl Fn(&mut Peer) + Send + Sync + 'static) -> Situation {
        self.with(Server::Rogue(Arc::new(does), ""))
    }

    /// One more, which stands in when those before it cannot.
    pub(crate) fn backup(self, does: impl Fn(&mut Peer) + Send + Sync + 'static) -> Situation {
        self.with(Server::Rogue(Arc::new(does), "backup = true\n"))
    }

    pub(crate) fn nobody(self) -> Situation {
        self.with(Server::Nobody)
    }

    pub(crate) fn server_in(
        self,
        zone: &'static str,
        does: impl Fn(&mut Peer) + Send + Sync + 'static,
    ) -> Situation {
        self.with(Server::RogueIn(zone, Arc::new(does)))
    }

    pub(crate) fn full_listen_queue(self) -> Situation {
        self.with(Server::Full)
    }

    pub(crate) fn full_unix_socket(self) -> Situation {
        self.with(Server::FullUnix)
    }

    pub(crate) fn in_zone(self, zone: &'static str, host: u8) -> Situation {
        self.with(Server::InZone(zone, host))
    }

    pub(crate) fn named(self, address: &'static str) -> Situation {
        self.with(Server::Named(address))
    }

    fn with(mut self, server: Server) -> Situation {
        self.servers.push(server);
        self
    }

    /// What is done, and seen of the request for [`IT`]; without this, it is a GET.
    pub(crate) fn act(self, act: impl Fn(&Stage<'_>) -> Seen + Send + Sync + 'static) -> Situation {
        Situation { act: Box::new(act), ..self }
    }

    fn is_answered_by_route(&self) -> bool {
        ["deny", "redirect", "respond"].iter().any(|key| self.route.contains(key))
    }
}

/// What a client saw of the request.
#[derive(Debug)]
pub(crate) enum Seen {
    /// A whole response.
    Whole(Response),
    /// No response, or one that broke off.
    Broken(#[expect(dead_code, reason = "shown when something is wrong")] io::Error),
    /// It did not stay to see.
    Left,
}

impl From<io::Result<Response>> for Seen {
    fn from(result: io::Result<Response>) -> Seen {
        result.map_or_else(Seen::Broken, Seen::Whole)
    }
}

/// What a situation has while it is made.
pub(crate) struct Stage<'a> {
    pub(crate) name: &'static str,
    pub(crate) weir: &'a Weir,
    /// For the counts at the end, which all situations read through one connection: more of them end
    /// together than the admin API takes connections.
    counts: &'a Mutex<Admin>,
    pub(crate) zones: Option<&'a Zones>,
    pub(crate) front: SocketAddr,
}

impl Stage<'_> {
    pub(crate) fn open(&self) -> Connection {
        Connection::open(self.front).expect("a connection to the listener")
    }

    pub(crate) fn get(&self) -> Seen {
        get(&mut self.open())
    }

    pub(crate) fn post(&self, body: &[u8]) -> Seen {
        post(&mut self.open(), IT, body)
    }

    /// Sends `bytes` as they are.
    pub(crate) fn send(&self, bytes: impl AsRef<[u8]>) -> Connection {
        let mut connection = self.open();
        connection.send(bytes.as_ref()).expect("to be able to send");
        connection
    }

    /// The response to these bytes.
    pub(crate) fn ask(&self, bytes: impl AsRef<[u8]>) -> Seen {
        self.send(bytes).response(false).into()
    }

    /// A GET for something else that is not waited for.
    pub(crate) fn send_beside(&self) -> Connection {
        self.send("GET /beside HTTP/1.1\r\nHost: a\r\n\r\n")
    }

    /// The GET that is looked at, not waited for.
    pub(crate) fn send_it(&self) -> Connection {
        self.send(format!("GET {IT} HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\n\r\n"))
    }

    /// From here on, a zone is not heard of any more.
    pub(crate) fn cut(&self, zone: &str) {
        self.zones.expect("a table with zones").cut(zone);
    }

    /// From here on, the closing of connections by servers in a zone is hidden.
    pub(crate) fn hide_ends(&self, zone: &str) {
        self.zones.expect("a table with zones").hide_ends(zone);
    }

    /// Waits until so many of the service's requests are at servers.
    pub(crate) fn wait_for_in_flight(&self, count: u32) {
        let mut admin = self.weir.admin();
        wait::until("requests in flight", SOON, || {
            (admin.in_flight(self.name) >= u64::from(count)).then_some(())
        });
    }

    /// Waits until so many of the service's requests wait.
    pub(crate) fn wait_for_queue(&self, length: u64) {
        let mut admin = self.weir.admin();
        wait::until("requests in the queue", SOON, || {
            (admin.queue_length(self.name) >= length).then_some(())
        });
    }

    /// Waits until the access log has the request's line.
    pub(crate) fn wait_for_line(&self) {
        wait::until("the access line", SOON, || {
            (!lines_of(&self.weir.access(), self.name).is_empty()).then_some(())
        });
    }

    /// The access lines of [`IT`] so far.
    pub(crate) fn lines(&self) -> Vec<Value> {
        lines_of(&self.weir.access(), self.name)
    }
}

pub(crate) fn get(connection: &mut Connection) -> Seen {
    connection.get(IT, &["Accept: application/json"]).into()
}

pub(crate) fn post(connection: &mut Connection, path: &str, body: &[u8]) -> Seen {
    connection.request("POST", path, &["Accept: application/json"], body).into()
}

/// Lines without a path are of requests that could not be read, or of tcp mode.
fn lines_of(access: &[Value], listener: &str) -> Vec<Value> {
    let of_it = |line: &&Value| {
        line["listener"] == listener
            && line["path"].as_str().is_none_or(|path| path.starts_with(IT))
    };
    access.iter().filter(of_it).cloned().collect()
}

/// A table, and what its Weir is started with.
pub(crate) struct Table {
    pub(crate) situations: Vec<Situation>,
    /// Starts what the table needs beside; yields top-level lines of the configuration.
    pub(crate) top: fn(&Scene) -> String,
    /// Zones that it needs.
    pub(crate) zones: &'static [&'static str],
    /// Whether Weir is still there afterwards to be asked for its metrics.
    pub(crate) outlives: bool,
}

impl Table {
    fn of(situations: Vec<Situation>) -> Table {
        Table { situations, top: |_| String::new(), zones: &[], outlives: true }
    }
}

/// What needs nothing but loopback.
pub(crate) fn on_loopback() -> Table {
    let tables = [
        clients::table(),
        servers::table(),
        queues::table(),
        network::table(),
        tcp::table(),
        secured::table(),
    ];
    let situations = tables.into_iter().flatten().collect();
    Table { top: with_users, ..Table::of(situations) }
}

/// Writes the file of an authentication, "staff", for routes that require a password.
fn with_users(scene: &Scene) -> String {
    let users = scene.file("users", USERS);
    format!("authentication.staff.basic.users_file = \"{}\"", users.display())
}

/// Made by `htpasswd -nbBC 10 ann secret`.
const USERS: &str = "ann:$2y$10$K5KcqZU06fUbzQ2Yd47yquid5glBNKkRKpHOR5sZAuMDtdMtus656\n";

pub(crate) use balancer::{out_of_ports, stopping};
pub(crate) use network::{in_zones, unresolved};

/// The causes that a table's situations end with, those of failed attempts included.
pub(crate) fn causes(tables: &[Table]) -> BTreeSet<&'static str> {
    let situations = tables.iter().flat_map(|table| &table.situations);
    situations.flat_map(|situation| situation.expected.causes()).collect()
}

/// Runs all of a table at once; fails with everything that was not as expected.
pub(crate) fn run(scene: &Scene, table: &Table) {
    if table.zones.is_empty() {
        run_in(scene, table, None);
    } else {
        Zones::run(table.zones, |zones| run_in(scene, table, Some(zones)));
    }
}

fn run_in(scene: &Scene, table: &Table, zones: Option<&Zones>) {
    let mut servers = Vec::new();
    let mut config = scene.config(&format!("workers = 2\n{}", (table.top)(scene)), "");
    for (number, situation) in (0..).zip(&table.situations) {
        config += &tables_of(scene, zones, number, situation, &mut servers);
    }
    let weir = Weir::start(scene, &config);
    let mut admin = weir.admin();
    // The API soon closes a connection that asks for nothing.
    admin.api("/api/v1/status");
    let counts = &Mutex::new(admin);
    let (weir, sum) = (&weir, table.situations.len());
    let seen: Vec<(Seen, Vec<String>)> = std::thread::scope(|scope| {
        let threads = (0..).zip(&table.situations).map(|(number, situation)| {
            let front = front(scene, number);
            let stage = Stage { name: situation.name, weir, counts, zones, front };
            std::thread::Builder::new()
                .name(situation.name.to_owned())
                .spawn_scoped(scope, move || make(situation, &stage, table.outlives))
                .expect("a thread")
        });
        let threads: Vec<_> = threads.collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| thread.join();
        let failed = || (Seen::Left, vec!["it could not be made; see above".to_owned()]);
        threads.into_iter().map(|thread| join(thread).unwrap_or_else(|_| failed())).collect()
    });
    let mut failures = String::new();
    for (situation, (seen, wrong)) in table.situations.iter().zip(&seen) {
        let result = if wrong.is_empty() { "ok" } else { "WRONG" };
        println!("{result:5} {:45} {}", situation.name, situation.expected);
        for what in wrong {
            failures += &format!("\n{}: {what}", situation.name);
        }
        if !wrong.is_empty() {
            failures += &format!("\n    the client saw {seen:?}");
            for line in lines_of(&weir.access(), situation.name) {
                failures += &format!("\n    {line}");
            }
        }
    }
    assert!(failures.is_empty(), "of {sum} situations:{failures}");
}

fn front(scene: &Scene, number: u16) -> SocketAddr {
    scene.address(1, 8100 + number)
}

/// A situation's part of the configuration; its servers are started.
fn tables_of(
    scene: &Scene,
    zones: Option<&Zones>,
    number: u16,
    situation: &Situation,
    running: &mut Vec<Box<dyn Any>>,
) -> String {
    let Situation { name, listener, route, service, servers, .. } = situation;
    let front = front(scene, number);
    let mut out = format!("[[listener]]\nname = \"{name}\"\naddress = \"{front}\"\n{listener}\n");
    out += &if situation.tcp {
        "protocol = \"tcp\"\n".to_owned()
    } else {
        format!("[[route]]\nlistener = \"{name}\"\n{route}\n")
    };
    if situation.is_answered_by_route() {
        return out;
    }
    out += &format!("service = \"{name}\"\n[service.{name}]\n{service}\n");
    let in_zones = || zones.expect("a table with zones");
    for (index, server) in (0..).zip(servers) {
        let here = scene.address(11, 9000 + number * 10 + index);
        let address = match server {
            Server::Rogue(behaviour, _) => {
                let behaviour = Arc::clone(behaviour);
                running.push(Box::new(Rogue::start(here, move |peer| behaviour(peer))));
                here.to_string()
            }
            Server::RogueIn(zone, behaviour) => {
                let (zones, behaviour) = (in_zones(), Arc::clone(behaviour));
                let there = zones.address(zone, 11, 8080);
                let start = || Rogue::start(there, move |peer| behaviour(peer));
                running.push(Box::new(zones.inside(zone, start)));
                there.to_string()
            }
            Server::Nobody => here.to_string(),
            Server::Full => {
                running.push(Box::new(full_listen_queue(here).expect("a full listen queue")));
                here.to_string()
            }
            Server::FullUnix => {
                let path = scene.folder().join(format!("{name}.sock"));
                running.push(Box::new(full_unix_queue(&path).expect("a full listen queue")));
                format!("unix:{}", path.display())
            }
            Server::InZone(zone, host) => in_zones().address(zone, *host, 8080).to_string(),
            Server::Named(address) => (*address).to_owned(),
        };
        out += &format!("[[service.{name}.server]]\naddress = \"{address}\"\n");
        if let Server::Rogue(_, more) = server {
            out += more;
        }
    }
    out
}

/// Makes a situation; yields what was seen, and what of it is not as expected.
fn make(situation: &Situation, stage: &Stage<'_>, outlives: bool) -> (Seen, Vec<String>) {
    let expected = &situation.expected;
    let seen = (situation.act)(stage);
    let mut wrong = Vec::new();
    let Some(lines) = wait::within(SOON, || Some(stage.lines()).filter(|lines| !lines.is_empty()))
    else {
        return (seen, vec!["there is no access line".to_owned()]);
    };
    if lines.len() > 1 && !expected.is_one_of_many() {
        wrong.push(format!("{} access lines", lines.len()));
    }
    let line = lines.iter().find(|line| line["cause"] == expected.cause).unwrap_or(&lines[0]);
    expected.compare_line(line, &mut wrong);
    expected.compare_seen(&seen, &mut wrong);
    if outlives {
        let listener = format!("listener=\"{}\"", situation.name);
        let cause = format!("cause=\"{}\"", expected.cause);
        // A whole number, and small.
        let counted = || {
            let mut admin = stage.counts.lock().unwrap_or_else(PoisonError::into_inner);
            admin.metric("weir_listener_requests_total", &[&listener, &cause]) as usize
        };
        // Each request is counted once, and has one line; those beside it may still be ending.
        let logged = || {
            let lines = stage.weir.access();
            let of_it = |line: &&Value| {
                line["listener"] == situation.name && line["cause"] == expected.cause
            };
            lines.iter().filter(of_it).count()
        };
        if wait::within(SOON, || (counted() == logged()).then_some(())).is_none() {
            let (counted, logged) = (counted(), logged());
            wrong.push(format!("the metric counts {counted} with that cause, of {logged} lines"));
        }
    }
    (seen, wrong)
}
