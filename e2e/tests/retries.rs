//! Responses that are retried because of their status, and the pause before each attempt.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use e2e::http::{self, Connection};
use e2e::rogue::Rogue;
use e2e::{Scene, Weir, server_tables, wait};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(10);

/// A request that a server saw.
struct Asked {
    at: Instant,
    /// How many connections to this server came before its connection.
    connection: usize,
    head: String,
    body: Vec<u8>,
}

/// A server that remembers what it is asked, and answers the first requests with 503 and a body that
/// counts them.
struct Server {
    rogue: Rogue,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// How many it answers so.
    unavailable: Arc<Mutex<usize>>,
}

impl Server {
    fn start(address: SocketAddr, unavailable: usize) -> Server {
        let asked = Arc::<Mutex<Vec<Asked>>>::default();
        let unavailable = Arc::new(Mutex::new(unavailable));
        let (seen, answers_so) = (Arc::clone(&asked), Arc::clone(&unavailable));
        let rogue = Rogue::start(address, move |peer| {
            while let Some((head, body)) = peer.message() {
                let (connection, to_head) = (peer.number, head.starts_with("HEAD "));
                let number = {
                    let mut asked = seen.lock().unwrap();
                    asked.push(Asked { at: Instant::now(), connection, head, body });
                    asked.len()
                };
                let status =
                    if number <= *answers_so.lock().unwrap() { "503 Busy" } else { "200 OK" };
                let body = format!("answer {number}");
                let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
                peer.say(if to_head { head } else { head + &body });
            }
        });
        Server { rogue, asked, unavailable }
    }

    fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    fn address(&self) -> SocketAddr {
        self.rogue.address()
    }
}

/// A server that is always unavailable, one that stands in for it, and a Weir with `retries` in front
/// of both.
fn pair(scene: &Scene, service: &str, route: &str) -> (Server, Server, Weir) {
    let first = Server::start(scene.address(11, 8080), usize::MAX);
    let second = Server::start(scene.address(12, 8080), 0);
    let (one, two) = (first.address(), second.address());
    let config = scene.config(
        "workers = 1",
        &format!(
            "[[route]]\nservice = \"app\"\n{route}\n[service.app]\npassive = false\n{service}\n\
             server = [{{ address = \"{one}\" }}, {{ address = \"{two}\", backup = true }}]\n"
        ),
    );
    (first, second, Weir::start(scene, &config))
}

/// A Weir in front of one server.
fn alone(scene: &Scene, unavailable: usize, service: &str, route: &str) -> (Server, Weir) {
    let server = Server::start(scene.address(11, 8080), unavailable);
    let config = scene.config(
        "workers = 1",
        &format!(
            "[[route]]\nservice = \"app\"\n{route}\n[service.app]\npassive = false\n{service}\n{}",
            server_tables("app", [server.address()])
        ),
    );
    (server, Weir::start(scene, &config))
}

fn lines(weir: &Weir, count: usize) -> Vec<Value> {
    wait::until("all lines", SOON, || Some(weir.access()).filter(|lines| lines.len() >= count))
}

#[test]
fn another_server_answers_and_connections_stay() {
    let Some(scene) = Scene::new("retries-elsewhere", &[]) else { return };
    let (first, second, weir) = pair(&scene, "retries = { status = [502, 503] }", "");
    let mut client = Connection::open(weir.front()).expect("a connection");
    for method in ["GET", "HEAD", "PUT", "GET"] {
        let body: &[u8] = if method == "PUT" { b"all of it" } else { b"" };
        let answer = client.request(method, "/", &[], body).expect("an answer");
        assert_eq!(answer.status, 200, "{method}: {}", answer.head);
    }
    for server in [&first, &second] {
        let asked = server.asked.lock().unwrap();
        assert_eq!(asked.len(), 4);
        // The response to HEAD has no body, although it has a length.
        assert!(asked.iter().all(|one| one.connection == 0), "a connection was not kept");
        let put = asked.iter().find(|one| one.head.starts_with("PUT ")).expect("a PUT");
        assert_eq!(put.body, b"all of it");
    }
    for line in lines(&weir, 4) {
        let failed = json!([{
            "server": first.address().to_string(), "cause": "http_response_status", "status": 503
        }]);
        assert_eq!(line["failed_attempts"], failed);
        assert_eq!((&line["cause"], &line["status"]), (&json!("completed"), &json!(200)));
        assert_eq!(line["server"], second.address().to_string());
    }
    assert_eq!(weir.metric("weir_retries_total", &["service=\"app\""]) as u64, 4);
}

#[test]
fn what_is_not_idempotent_gets_the_response() {
    let Some(scene) = Scene::new("retries-post", &[]) else { return };
    let (_first, second, weir) = pair(&scene, "retries = { status = \"5xx\" }", "");
    let mut client = Connection::open(weir.front()).expect("a connection");
    let answer = client.request("POST", "/", &[], b"once").expect("an answer");
    assert_eq!((answer.status, &*answer.text()), (503, "answer 1"));
    assert_eq!(second.count(), 0);
    let line = lines(&weir, 1).remove(0);
    assert_eq!(line["not_retried"], "not idempotent");
    assert_eq!((&line["cause"], &line["failed_attempts"]), (&json!("completed"), &json!([])));
}

#[test]
fn the_last_response_goes_to_the_client() {
    let Some(scene) = Scene::new("retries-last", &[]) else { return };
    let (server, weir) =
        alone(&scene, usize::MAX, "retries = { max = 2, status = [500, \"502-504\"] }", "");
    let answer = http::get(weir.front(), "/").expect("an answer");
    assert_eq!((answer.status, &*answer.text()), (503, "answer 3"));
    assert_eq!(server.count(), 3);
    let line = lines(&weir, 1).remove(0);
    assert_eq!(line["not_retried"], "no attempts left");
    assert_eq!(line["failed_attempts"].as_array().map(Vec::len), Some(2));
    assert_eq!(line["cause"], "completed");
}

#[test]
fn a_route_replaces_what_it_names() {
    let Some(scene) = Scene::new("retries-route", &[]) else { return };
    let service = "retries = { max = 2, status = [503] }";
    let routes = "retries = { status = [] }\n\
                  [[route]]\npath = \"/often\"\nservice = \"app\"\nretries = { max = 4 }\n\
                  [[route]]\npath = \"/never\"\nservice = \"app\"\nretries = { max = 0 }";
    let (server, weir) = alone(&scene, usize::MAX, service, routes);
    for (path, attempts) in [("/", 1), ("/often", 5), ("/never", 1)] {
        let before = server.count();
        assert_eq!(http::get(weir.front(), path).expect("an answer").status, 503);
        assert_eq!(server.count() - before, attempts, "{path}");
    }
}

#[test]
fn a_pause_precedes_every_further_attempt() {
    let Some(scene) = Scene::new("retries-pause", &[]) else { return };
    let service = "retries = { max = 2, status = [503], backoff = \"300ms\" }";
    let (server, weir) = alone(&scene, 2, service, "");
    assert_eq!(http::get(weir.front(), "/").expect("an answer").status, 200);
    let asked = server.asked.lock().unwrap();
    let pauses: Vec<_> = asked.windows(2).map(|two| two[1].at - two[0].at).collect();
    assert_eq!(pauses.len(), 2);
    assert!(pauses[0] >= Duration::from_millis(300), "{pauses:?}");
    assert!(pauses[1] >= Duration::from_millis(600), "{pauses:?}");
}

#[test]
fn a_request_holds_no_slot_during_its_pause() {
    let Some(scene) = Scene::new("retries-slot", &[]) else { return };
    let service = "in_flight_max = 1\nretries = { max = 2, status = [503], backoff = \"1m\" }";
    let (server, weir) = alone(&scene, 1, service, "");
    let mut client = Connection::open(weir.front()).expect("a connection");
    client.send(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    wait::until("the first attempt", SOON, || (server.count() == 1).then_some(()));
    let answer = http::get(weir.front(), "/other").expect("an answer");
    assert_eq!((answer.status, &*answer.text()), (200, "answer 2"));
}

#[test]
fn a_stop_during_the_pause_is_answered() {
    let Some(scene) = Scene::new("retries-stop", &[]) else { return };
    let server = Server::start(scene.address(11, 8080), usize::MAX);
    let service = "passive = false\nretries = { status = [503], backoff = \"1m\" }";
    let config = format!("drain_max = \"1s\"\n{}", scene.one_service(service, &[server.address()]));
    let mut weir = Weir::start(&scene, &config);
    let mut client = Connection::open(weir.front()).expect("a connection");
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    wait::until("the first attempt", SOON, || (server.count() == 1).then_some(()));
    weir.begin_to_stop();
    let answer = client.response(false).expect("an answer");
    assert_eq!(answer.status, 503, "{}", answer.head);
    assert_eq!(answer.field("proxy-status"), Some("weir; error=shutting_down"), "{}", answer.head);
    weir.wait(SOON);
    let line = lines(&weir, 1).remove(0);
    assert_eq!((&line["cause"], &line["status"]), (&json!("shutting_down"), &json!(503)));
}

#[test]
fn maintenance_that_begins_during_the_pause_counts() {
    let Some(scene) = Scene::new("retries-maintenance", &[]) else { return };
    let service = "retries = { status = [503], backoff = \"2s\" }";
    let (server, weir) = alone(&scene, 1, service, "");
    let mut client = Connection::open(weir.front()).expect("a connection");
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    wait::until("the first attempt", SOON, || (server.count() == 1).then_some(()));
    let admin = scene.admin().to_string();
    let switched = e2e::run(&scene, &["maintenance", "app", "--admin", &admin]);
    assert_eq!(switched.code, Some(0), "{}", switched.stderr);
    assert_eq!(client.response(false).expect("an answer").status, 503);
    assert_eq!(server.count(), 1);
    let cause = lines(&weir, 1).remove(0)["cause"].clone();
    assert_eq!(cause, "maintenance");
}

#[test]
fn connections_stay_whatever_frames_the_response() {
    let Some(scene) = Scene::new("retries-framing", &[]) else { return };
    let answers = [
        "Transfer-Encoding: chunked\r\n\r\n4\r\nbusy\r\n0\r\n\r\n",
        "Content-Length: 4\r\n\r\nbusy",
    ];
    let connections = Arc::<Mutex<Vec<usize>>>::default();
    let seen = Arc::clone(&connections);
    let first = Rogue::start(scene.address(11, 8080), move |peer| {
        for answer in answers {
            if peer.request().is_none() {
                return;
            }
            seen.lock().unwrap().push(peer.number);
            let (start, end) = answer.split_at(answer.len() - 6);
            peer.say(format!("HTTP/1.1 503 Busy\r\n{start}"));
            // A segment of its own.
            wait::measure_for(Duration::from_millis(20));
            peer.say(end);
        }
    });
    let second = Server::start(scene.address(12, 8080), 0);
    let (one, two) = (first.address(), second.address());
    let config = scene.config(
        "workers = 1",
        &format!(
            "[[route]]\nservice = \"app\"\n[service.app]\npassive = false\nin_flight_max = 1\n\
             queue = {{ length_max = 0 }}\nretries = {{ status = [503] }}\n\
             server = [{{ address = \"{one}\" }}, {{ address = \"{two}\", backup = true }}]\n"
        ),
    );
    let weir = Weir::start(&scene, &config);
    for _ in answers {
        assert_eq!(http::get(weir.front(), "/").expect("an answer").status, 200);
    }
    assert_eq!(*connections.lock().unwrap(), [0, 0]);
}

#[test]
fn a_session_stays_at_its_server() {
    let Some(scene) = Scene::new("retries-session", &[]) else { return };
    let servers = [11, 12].map(|host| Server::start(scene.address(host, 8080), 0));
    let service =
        "passive = false\naffinity = { cookie = \"S\" }\nretries = { max = 3, status = [503] }";
    let config = scene.one_service(service, &servers.each_ref().map(Server::address));
    let weir = Weir::start(&scene, &config);
    let cookie = http::get(weir.front(), "/").expect("an answer");
    let cookie =
        cookie.field("set-cookie").expect("a cookie").split(';').next().unwrap().to_owned();
    let at = servers.iter().position(|server| server.count() == 1).expect("its server");
    // From now on it has nothing but errors.
    *servers[at].unavailable.lock().unwrap() = usize::MAX;
    let answer = http::get_with(weir.front(), "/", &[&format!("Cookie: {cookie}")]);
    let answer = answer.expect("an answer");
    assert_eq!((answer.status, answer.field("set-cookie")), (503, None));
    assert_eq!((servers[at].count(), servers[1 - at].count()), (5, 0));
}

#[test]
fn a_pause_beyond_the_total_time_is_not_begun() {
    let Some(scene) = Scene::new("retries-total", &[]) else { return };
    let route = "timeouts = { total = \"5s\" }\n\
                 retries = { max = 5, status = [503], backoff = \"2s\" }";
    let (server, weir) = alone(&scene, usize::MAX, "", route);
    let answer = http::get(weir.front(), "/").expect("an answer");
    // 2 s pass before the second attempt, 4 s more would before the third.
    assert_eq!((answer.status, &*answer.text()), (503, "answer 2"));
    assert_eq!(server.count(), 2);
    assert_eq!(lines(&weir, 1).remove(0)["not_retried"], "no time left");
}

#[test]
fn a_client_that_leaves_during_the_pause_ends_its_request() {
    let Some(scene) = Scene::new("retries-left", &[]) else { return };
    let service = "retries = { max = 1, status = [503], backoff = \"1m\" }";
    let (server, weir) = alone(&scene, usize::MAX, service, "");
    let mut client = Connection::open(weir.front()).expect("a connection");
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    wait::until("the first attempt", SOON, || (server.count() == 1).then_some(()));
    drop(client);
    let line = lines(&weir, 1).remove(0);
    assert_eq!((&line["cause"], &line["fault"]), (&json!("client_closed"), &json!("client")));
    assert_eq!(server.count(), 1);
}

#[test]
fn a_response_before_the_end_of_the_body_is_retried_with_all_of_it() {
    let Some(scene) = Scene::new("retries-early", &[]) else { return };
    // Answers at once, whatever is to come.
    let early = Rogue::start(scene.address(11, 8080), |peer| {
        peer.head();
        peer.say("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
        peer.hold();
    });
    let second = Server::start(scene.address(12, 8080), 0);
    let (one, two) = (early.address(), second.address());
    let config = scene.config(
        "workers = 1",
        &format!(
            "[[route]]\nservice = \"app\"\n[service.app]\npassive = false\n\
             retries = {{ status = [503] }}\n\
             server = [{{ address = \"{one}\" }}, {{ address = \"{two}\", backup = true }}]\n"
        ),
    );
    let weir = Weir::start(&scene, &config);
    let mut client = Connection::open(weir.front()).expect("a connection");
    client
        .send(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n\r\nfirst half")
        .expect("sent");
    let gone_to_second = || {
        let listed = weir.api("/api/v1/requests");
        listed.to_string().contains(&two.to_string()).then_some(())
    };
    wait::until("the second attempt", SOON, gone_to_second);
    client.send(b"second one").expect("sent");
    let answer = client.response(false).expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.head);
    assert_eq!(second.asked.lock().unwrap()[0].body, b"first halfsecond one");
}

#[test]
fn a_response_after_an_informational_one_goes_to_the_client() {
    let Some(scene) = Scene::new("retries-hints", &[]) else { return };
    let hints = Rogue::start(scene.address(11, 8080), |peer| {
        while peer.request().is_some() {
            peer.say("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
            peer.say("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
        }
    });
    let config = scene
        .one_service("passive = false\nretries = { max = 3, status = [503] }", &[hints.address()]);
    let weir = Weir::start(&scene, &config);
    let mut client = Connection::open(weir.front()).expect("a connection");
    client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    assert_eq!(client.response(false).expect("hints").status, 103);
    assert_eq!(client.response(false).expect("an answer").status, 503);
    assert_eq!(lines(&weir, 1).remove(0)["not_retried"], "no use");
}

#[test]
fn servers_of_http2_lose_a_stream_and_no_connection() {
    let Some(scene) = Scene::new("retries-http2", &[]) else { return };
    let back = scene.address(1, 8090);
    // Its servers are another listener of the same Weir, which speaks HTTP/2.
    let config = scene.config(
        "workers = 1",
        &format!(
            "[[listener]]\nname = \"back\"\naddress = \"{back}\"\n\
             [[route]]\nlistener = \"public\"\nservice = \"app\"\n\
             [[route]]\nlistener = \"back\"\nrespond = {{ status = 503, body = \"busy\" }}\n\
             [service.app]\nhttp = \"2\"\npassive = false\n\
             retries = {{ max = 1, status = [503] }}\n{}",
            server_tables("app", [back])
        ),
    );
    let weir = Weir::start(&scene, &config);
    let mut client = Connection::open(weir.front()).expect("a connection");
    for _ in 0..5 {
        let answer = client.get("/", &[]).expect("an answer");
        assert_eq!((answer.status, &*answer.text()), (503, "busy"));
    }
    let all = lines(&weir, 15);
    let (backs, fronts): (Vec<_>, Vec<_>) = all.iter().partition(|line| line["listener"] == "back");
    assert_eq!((backs.len(), fronts.len()), (10, 5));
    for line in fronts {
        assert_eq!(line["failed_attempts"].as_array().map(Vec::len), Some(1), "{line}");
    }
    let peers: std::collections::BTreeSet<_> =
        backs.iter().map(|line| line["client"].to_string()).collect();
    assert_eq!(peers.len(), 1, "one connection for all: {peers:?}");
}

#[test]
fn retries_are_bounded_by_the_budget() {
    const REQUESTS: usize = 200;
    let Some(scene) = Scene::new("retries-budget", &[]) else { return };
    let (server, weir) = alone(&scene, usize::MAX, "retries = { max = 10, status = [503] }", "");
    let begun = Instant::now();
    let mut client = Connection::open(weir.front()).expect("a connection");
    for _ in 0..REQUESTS {
        assert_eq!(client.get("/", &[]).expect("an answer").status, 503);
    }
    // One in five requests, and three a second of the last ten seconds.
    let allowed = REQUESTS / 5 + 30 + 3 * begun.elapsed().as_secs() as usize;
    let retried = server.count() - REQUESTS;
    assert!((1..=allowed).contains(&retried), "{retried} retries, {allowed} allowed");
    let spent = lines(&weir, REQUESTS);
    assert!(spent.iter().any(|line| line["not_retried"] == "budget spent"));
}
