//! The servers behind Weir: a Python application that counts what it sees, nginx, and HAProxy.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::{Process, Scene, find, http, wait};

const STARTED_WITHIN: Duration = Duration::from_secs(10);

/// A file of this package.
pub(crate) fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

pub(crate) fn wait_until_listening(process: &mut Process, address: SocketAddr) {
    wait::until(&format!("a server at {address}"), STARTED_WITHIN, || {
        assert!(process.is_running(), "the server ended at once:\n{}", process.stderr());
        std::net::TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok()
    });
}

/// `servers/app.py`: a threaded server with keep-alive that counts its own concurrent requests.
/// Its file says what a request can ask of it.
pub struct App {
    process: Process,
    address: SocketAddr,
    name: String,
    words: Vec<String>,
}

impl App {
    /// Starts one at the scene's address `host`, port 8080, with the given options of app.py.
    pub fn start(scene: &Scene, host: u8, words: &[&str]) -> App {
        Self::start_at(scene, &format!("app{host}"), scene.address(host, 8080), words)
    }

    /// Starts one at any address.
    pub fn start_at(scene: &Scene, name: &str, address: SocketAddr, words: &[&str]) -> App {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let mut process = Self::spawn(scene, name, address, &words);
        wait_until_listening(&mut process, address);
        App { process, address, name: name.to_owned(), words }
    }

    fn spawn(scene: &Scene, name: &str, address: SocketAddr, words: &[String]) -> Process {
        let mut all = vec![file("servers/app.py").to_string_lossy().into_owned()];
        all.extend(["--name", name, "--address", &address.to_string()].map(str::to_owned));
        all.extend_from_slice(words);
        Process::start(scene, name, &find("python3").expect("python3"), all)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The name that it puts into `X-Served-By`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// SIGKILLs it.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again, with the same name, address and options.
    pub fn restart(&mut self, scene: &Scene) {
        self.process.kill();
        self.process = Self::spawn(scene, &self.name, self.address, &self.words);
        wait_until_listening(&mut self.process, self.address);
    }

    /// Starts it again with other options.
    pub fn restart_with(&mut self, scene: &Scene, words: &[&str]) {
        self.words = words.iter().map(|&word| word.to_owned()).collect();
        self.restart(scene);
    }

    /// What it counted since it started or since [`App::reset`].
    pub fn stats(&self) -> Value {
        http::get(self.address, "/-/stats").expect("the server's own numbers").json()
    }

    /// One of its numbers.
    pub fn stat(&self, name: &str) -> u64 {
        self.stats()[name].as_u64().unwrap_or_else(|| panic!("no number {name}"))
    }

    /// Resets the counts.
    pub fn reset(&self) {
        http::get(self.address, "/-/reset").expect("a reset");
    }

    /// Changes what it does: `work_ms=500`, `status=503` (for all but checks), `health=503` (for
    /// `/status`).
    pub fn set(&self, change: &str) {
        http::get(self.address, &format!("/-/set?{change}")).expect("a change");
    }
}

/// nginx, one process, serving what its configuration says.
pub struct Nginx {
    /// Its process.
    pub process: Process,
    address: SocketAddr,
}

impl Nginx {
    /// Starts one at the scene's address `host`, port 8080: `/` answers `hello`, `/status`
    /// answers 200, `/files/` serves the scene's folder. `extra` goes into the server block. Its
    /// send buffers are bounded: hundreds of large responses that are not read would use up the
    /// memory that all of the machine's connections have together.
    pub fn start(scene: &Scene, host: u8, extra: &str) -> Nginx {
        let address = scene.address(host, 8080);
        let folder = scene.folder().display();
        let name = format!("nginx{host}");
        let config = scene.file(
            &format!("{name}.conf"),
            format!(
                "daemon off; master_process off; pid {folder}/{name}.pid; error_log stderr warn;
                 events {{ worker_connections 4096; }}
                 http {{
                   access_log off; keepalive_requests 1000000; client_max_body_size 0;
                   client_body_temp_path {folder}/{name}-body; proxy_temp_path {folder}/{name}-p;
                   fastcgi_temp_path {folder}/{name}-f; uwsgi_temp_path {folder}/{name}-u;
                   scgi_temp_path {folder}/{name}-s; default_type text/plain;
                   server {{
                     listen {address} backlog=4096 sndbuf=256k; add_header X-Served-By {name} always;
                     location = /status {{ return 200 'ok'; }}
                     location /files/ {{ alias {folder}/; }}
                     location = / {{ return 200 'hello'; }}
                     {extra}
                   }}
                 }}"
            ),
        );
        let words = ["-p".into(), scene.folder().into(), "-c".into(), config];
        let mut process = Process::start(scene, &name, &find("nginx").expect("nginx"), words);
        wait_until_listening(&mut process, address);
        Nginx { process, address }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// HAProxy with a configuration of the test's own.
pub struct Haproxy {
    /// Its process.
    pub process: Process,
}

impl Haproxy {
    /// Starts one with `config`, which must bind `address`.
    pub fn start(scene: &Scene, config: &str, address: SocketAddr) -> Haproxy {
        let file = scene.file("haproxy.cfg", config);
        let words = ["-db".as_ref(), "-f".as_ref(), file.as_os_str()];
        let haproxy = find("haproxy").expect("haproxy");
        let mut process = Process::start(scene, "haproxy", &haproxy, words);
        wait_until_listening(&mut process, address);
        Haproxy { process }
    }
}

/// Starts `SCRIPT --address ADDRESS WORDS` by the Python that has what speaks HTTP/2, gRPC and
/// WebSocket ([`crate::PYTHON_PEERS`]), and waits until it listens.
pub fn python_server(
    scene: &Scene,
    script: &str,
    name: &str,
    address: SocketAddr,
    words: &[&str],
) -> Process {
    let (script, at) = (file(script).to_string_lossy().into_owned(), address.to_string());
    let words = [&[&*script, "--address", &at][..], words].concat();
    let python = find(crate::PYTHON_PEERS).expect("the peers' python");
    let mut process = Process::start(scene, name, &python, words);
    wait_until_listening(&mut process, address);
    process
}
