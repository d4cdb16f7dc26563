//! What Weir and a service manager (systemd) tell each other: notifications, the watchdog, sockets that are passed.

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use e2e::{NewProcess, Process, Scene, Weir, binary, find, http, wait};

const WITHIN: Duration = Duration::from_secs(20);

fn config(scene: &Scene) -> String {
    format!(
        "connections_max = 1000\n{}",
        scene.config("", "[[route]]\nrespond = { status = 200 }\n")
    )
}

/// A service manager that records the messages that it receives.
struct Manager {
    socket: UnixDatagram,
    heard: Vec<String>,
}

impl Manager {
    fn bind(scene: &Scene) -> (Manager, String) {
        let path = scene.folder().join("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
        (Manager { socket, heard: Vec::new() }, format!("NOTIFY_SOCKET={}", path.display()))
    }

    /// Waits until a message begins with `wanted`, and returns it.
    fn hear(&mut self, wanted: &str) -> String {
        let deadline = Instant::now() + WITHIN;
        let mut buffer = [0; 512];
        while Instant::now() < deadline {
            let Ok(length) = self.socket.recv(&mut buffer) else { continue };
            let message = String::from_utf8_lossy(&buffer[..length]).into_owned();
            self.heard.push(message.clone());
            if message.starts_with(wanted) {
                return message;
            }
        }
        panic!("no {wanted} among {:?}", self.heard);
    }
}

#[test]
fn a_manager_hears_of_every_step() {
    let Some(scene) = Scene::new("manager-steps", &["env"]) else {
        return;
    };
    let (mut manager, socket) = Manager::bind(&scene);
    // Every 200 ms.
    let by = ["env", &*socket, "WATCHDOG_USEC=400000"];
    let mut weir = Weir::start_by(&scene, &config(&scene), &by);
    manager.hear("READY=1");
    manager.hear("WATCHDOG=1");
    weir.hang_up();
    assert!(manager.hear("RELOADING=1").contains("\nMONOTONIC_USEC="), "{:?}", manager.heard);
    manager.hear("READY=1");

    let (_, new) = weir.upgrade(WITHIN);
    let main = manager.hear("MAINPID=");
    assert_eq!(main, format!("MAINPID={}", new.pid()));
    // The old process has ended: this is the new one.
    manager.hear("WATCHDOG=1");
    new.signal(rustix::process::Signal::TERM);
    manager.hear("STOPPING=1");
}

#[test]
fn a_watchdog_for_another_process_is_not_ours() {
    let Some(scene) = Scene::new("manager-watchdog", &["env"]) else {
        return;
    };
    let (mut manager, socket) = Manager::bind(&scene);
    let by = ["env", &*socket, "WATCHDOG_USEC=100000", "WATCHDOG_PID=1"];
    let mut weir = Weir::start_by(&scene, &config(&scene), &by);
    manager.hear("READY=1");
    wait::measure_for(Duration::from_secs(1));
    weir.begin_to_stop();
    manager.hear("STOPPING=1");
    assert!(!manager.heard.iter().any(|message| message == "WATCHDOG=1"), "{:?}", manager.heard);
    weir.wait(WITHIN);
}

#[test]
fn sockets_of_a_manager_are_used_and_survive_an_upgrade() {
    let Some(scene) = Scene::new("manager-sockets", &["systemd-socket-activate"]) else {
        return;
    };
    let file = scene.file("weir.toml", config(&scene));
    let program = find("systemd-socket-activate").expect("it is there");
    let front = scene.front().to_string();
    let words = ["-l", &*front, "--fdname=public"].map(ToOwned::to_owned);
    let serve = [binary().to_string_lossy().into_owned(), "serve".to_owned()];
    let words = words.into_iter().chain(serve).chain([file.to_string_lossy().into_owned()]);
    let mut process = Process::start(&scene, "activated", &program, words);
    // The first connection starts Weir, which is the same process then.
    let answered = wait::until("an answer", WITHIN, || http::get(scene.front(), "/").ok());
    assert_eq!(answered.status, 200);
    let mut admin = http::Connection::open(scene.admin()).expect("a connection");
    let answered = admin.request("POST", "/api/v1/upgrade", &[], b"").expect("an answer");
    assert_eq!(answered.status, 200, "{}", answered.text());
    let new = NewProcess::of(&answered.json());
    process.wait(WITHIN);
    assert_eq!(http::get(scene.front(), "/").expect("an answer of the new process").status, 200);
    assert!(new.is_running());
}

#[test]
fn a_socket_that_no_listener_has_is_refused() {
    let Some(scene) = Scene::new("manager-strange", &["systemd-socket-activate"]) else {
        return;
    };
    let file = scene.file("weir.toml", config(&scene));
    let other = scene.address(9, 18_080);
    let program = find("systemd-socket-activate").expect("it is there");
    let serve = [binary().to_string_lossy().into_owned(), "serve".to_owned()];
    let words = ["-l".to_owned(), other.to_string(), "--fdname=public".to_owned()];
    let words = words.into_iter().chain(serve).chain([file.to_string_lossy().into_owned()]);
    let mut process = Process::start(&scene, "activated", &program, words);
    let connected =
        wait::until("a connection", WITHIN, || std::net::TcpStream::connect(other).ok());
    let finished = process.wait(WITHIN);
    drop(connected);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let said = format!("passed the socket \"public\" on {other}, but no listener has this address");
    assert!(finished.stderr.contains(&said), "{finished:?}");
}
