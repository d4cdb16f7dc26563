//! The stage of the faults: three zones with servers, a balancer, and clients.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use e2e::clients::Load;
use e2e::{App, Authority, Scene, Weir, Zones, wait};

pub(crate) const ZONES: [&str; 3] = ["a", "b", "c"];
/// The first server of each zone.
const HOST: u8 = 11;
const PORT: u16 = 8080;
/// Clients that send about 100 requests a second together: each waits for its response, and then for this
/// time.
const THREADS: u32 = 24;
const PAUSE_MS: &str = "220";

/// What stands on the stage before a fault is made.
pub(crate) struct Plan {
    /// Servers in each zone.
    pub(crate) per_zone: u8,
    /// Options of the servers.
    pub(crate) server: &'static [&'static str],
    /// Lines of the service's table.
    pub(crate) service: &'static str,
    /// Further options of the clients (clients/load.py).
    pub(crate) clients: &'static [&'static str],
    /// The second zone's server closes each connection after a response, and its accepting can be slowed down.
    pub(crate) rogue: bool,
    /// A second listener, with a certificate.
    pub(crate) tls: bool,
    /// Traffic before the fault.
    pub(crate) warm_up_s: usize,
}

impl Plan {
    pub(crate) const THREE: Plan = Plan {
        per_zone: 1,
        server: &["--work-ms", "20"],
        service: "",
        clients: &[],
        rogue: false,
        tls: false,
        warm_up_s: 15,
    };
}

pub(crate) struct Stage<'a> {
    pub(crate) scene: &'a Scene,
    pub(crate) zones: &'a Zones,
    /// By zone.
    pub(crate) apps: Vec<App>,
    pub(crate) slow_accept: Option<SlowAccept>,
    pub(crate) weir: Weir,
    pub(crate) authority: Authority,
    pub(crate) loads: Vec<Load>,
}

/// Name and address of a certificate of the stage.
pub(crate) const NAME: &str = "shop.example";

impl<'a> Stage<'a> {
    pub(crate) fn start(scene: &'a Scene, zones: &'a Zones, plan: &Plan) -> Stage<'a> {
        let mut apps = Vec::new();
        let mut tables = String::new();
        let mut slow_accept = None;
        for zone in ZONES {
            for host in (HOST..).take(plan.per_zone.into()) {
                let address = zones.address(zone, host, PORT);
                tables += &format!(
                    "[[service.app.server]]\naddress = \"{address}\"\nzone = \"{zone}\"\n"
                );
                zones.inside(zone, || {
                    if plan.rogue && zone == ZONES[1] {
                        slow_accept = Some(SlowAccept::start(address));
                    } else {
                        let name = format!("{zone}{host}");
                        apps.push(App::start_at(scene, &name, address, plan.server));
                    }
                });
            }
        }
        let authority = Authority::new(scene, "authority");
        let secure = if plan.tls {
            let pair = authority.issue_ending("shop", &[NAME], Duration::from_hours(24 * 60));
            let at = scene.address(1, 8443);
            let table = pair.table();
            format!(
                "[[listener]]\nname = \"secure\"\naddress = \"{at}\"\ntls = {{ certificates = [{table}] }}\n"
            )
        } else {
            String::new()
        };
        let service = plan.service;
        let rest = format!(
            "{secure}[[route]]\nservice = \"app\"\n[service.app]\n\
             check = {{ path = \"/status\", interval = \"1s\" }}\n{service}\n{tables}"
        );
        let weir = Weir::start(scene, &scene.config("workers = 1", &rest));
        let words = [&["--pause-ms", PAUSE_MS][..], plan.clients].concat();
        let loads = vec![Load::start_with(scene, weir.front(), "/", THREADS, &words)];
        Stage { scene, zones, apps, slow_accept, weir, authority, loads }
    }

    /// Waits until the history has that much traffic.
    pub(crate) fn warm_up(&self, plan: &Plan) {
        let bound = Duration::from_secs(plan.warm_up_s as u64 + 30);
        wait::until("seconds of traffic", bound, || {
            let history = self.weir.api("/api/v1/history?kind=service&columns=requests");
            (history["ended_unix_ms"].as_array()?.len() >= plan.warm_up_s).then_some(())
        });
    }

    /// Where the server is that has the fault: the second zone's first.
    pub(crate) fn faulty_address(&self) -> SocketAddr {
        self.zones.address(ZONES[1], HOST, PORT)
    }

    /// That server, if it is no rogue.
    pub(crate) fn faulty(&mut self) -> &mut App {
        let address = self.faulty_address();
        self.apps.iter_mut().find(|app| app.address() == address).expect("an app with the fault")
    }

    /// Ends the clients; what they saw depends on the fault.
    pub(crate) fn end(self) {
        for load in self.loads {
            drop(load.finish());
        }
    }
}

/// A server with a short listen queue, which pauses between two connections that it accepts.
pub(crate) struct SlowAccept {
    pause_ms: Arc<AtomicU64>,
}

impl SlowAccept {
    const BACKLOG: i32 = 4;

    fn start(address: SocketAddr) -> SlowAccept {
        let listener = TcpListener::bind(address).expect("a free address");
        rustix::net::listen(&listener, Self::BACKLOG).expect("a shorter backlog");
        let pause_ms = Arc::new(AtomicU64::new(0));
        let pause = Arc::clone(&pause_ms);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || drop(respond(stream)));
                std::thread::sleep(Duration::from_millis(pause.load(Ordering::Relaxed)));
            }
        });
        SlowAccept { pause_ms }
    }

    pub(crate) fn pause(&self, between: Duration) {
        self.pause_ms.store(between.as_millis() as u64, Ordering::Relaxed);
    }
}

/// Responds to one request and closes.
fn respond(mut stream: TcpStream) -> std::io::Result<()> {
    let mut head = [0; 4_096];
    let read = stream.read(&mut head)?;
    if read > 0 {
        std::thread::sleep(Duration::from_millis(20));
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")?;
    }
    Ok(())
}
