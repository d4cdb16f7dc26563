//! Affinity of routes: sessions in a cookie or a header, which bind a client to a service and a server.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use e2e::http::{self, Connection, Response};
use e2e::rogue::Rogue;
use e2e::{App, Scene, Weir, server_tables, wait};

const SOON: Duration = Duration::from_secs(10);
const HOSTS: [u8; 4] = [11, 12, 13, 14];

/// A split between `v1`, with the first two servers, and `v2`, with the others.
fn config(scene: &Scene, top: &str, (weights, affinity): ([u32; 2], &str)) -> String {
    let [v1, v2] = [[11, 12], [13, 14]].map(|hosts| hosts.map(|host| scene.address(host, 8080)));
    config_of(scene, top, [v1, v2], (weights, affinity))
}

fn config_of(
    scene: &Scene,
    top: &str,
    [v1, v2]: [[SocketAddr; 2]; 2],
    (weights, affinity): ([u32; 2], &str),
) -> String {
    let [of_v1, of_v2] = weights;
    let rest = format!(
        "[[route]]\npath = \"/shop\"\n\
         split = [{{ service = \"v1\", weight = {of_v1} }}, {{ service = \"v2\", weight = {of_v2} }}]\n\
         affinity = {{ {affinity} }}\n\
         [[route]]\npath = \"/other\"\nservice = \"v1\"\naffinity = {{ cookie = \"other\" }}\n\
         [service.v1]\npassive = {{ eject = \"1m\" }}\n{}[service.v2]\n{}",
        server_tables("v1", v1),
        server_tables("v2", v2)
    );
    let state = scene.folder().display();
    scene.config(
        &format!("workers = 2\nstate_directory = \"{state}\"\nreload = {{ watch = false }}\n{top}"),
        &rest,
    )
}

fn apps(scene: &Scene) -> [App; 4] {
    HOSTS.map(|host| App::start(scene, host, &[]))
}

/// A client that keeps its cookie.
struct Client {
    cookie: String,
    server: String,
}

fn served_by(answer: &Response) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.field("x-served-by").expect("the server's name").to_owned()
}

/// The cookie that a response sets, and its attributes.
fn set(answer: &Response) -> Option<(String, String)> {
    let set = answer.field("set-cookie")?;
    let (cookie, attributes) = set.split_once(';').expect("attributes");
    Some((cookie.to_owned(), attributes.trim().to_owned()))
}

fn ask(front: SocketAddr, cookie: &str) -> Response {
    http::get_with(front, "/shop/cart", &[&format!("Cookie: {cookie}")]).unwrap()
}

impl Client {
    fn new(front: SocketAddr) -> Client {
        let answer = http::get(front, "/shop").unwrap();
        let (cookie, _) = set(&answer).expect("a cookie");
        Client { cookie, server: served_by(&answer) }
    }

    /// Whether the server and the cookie stay over some requests.
    fn stays(&self, front: SocketAddr, requests: usize) -> bool {
        (0..requests).all(|_| {
            let answer = ask(front, &self.cookie);
            served_by(&answer) == self.server && answer.field("set-cookie").is_none()
        })
    }

    /// Whether the cookie binds it to no server.
    fn is_unbound(&self, front: SocketAddr) -> bool {
        let servers = (0..12).map(|_| served_by(&ask(front, &self.cookie)));
        servers.collect::<HashSet<_>>().len() > 1
    }

    fn is_of_v1(&self) -> bool {
        ["app11", "app12"].contains(&&*self.server)
    }
}

/// Also after a reload that takes all weight from a service: GEP-1619 requires it.
#[test]
fn a_weighted_split_keeps_each_client_at_its_server() {
    let Some(scene) = Scene::new("sessions-split", &["python3"]) else {
        return;
    };
    let _apps = apps(&scene);
    let affinity = "cookie = \"s\"";
    let weir = Weir::start(&scene, &config(&scene, "", ([1, 1], affinity)));
    let front = weir.front();
    let (_, attributes) = set(&http::get(front, "/shop").unwrap()).unwrap();
    assert_eq!(attributes, "Path=/shop; HttpOnly; SameSite=Lax");
    let clients: Vec<Client> = (0..12).map(|_| Client::new(front)).collect();
    let servers: HashSet<&str> = clients.iter().map(|client| &*client.server).collect();
    // The chance that all are of one service is 1 in 2048.
    let of_v1 = clients.iter().filter(|client| client.is_of_v1()).count();
    assert!((1..clients.len()).contains(&of_v1), "{servers:?}");
    assert!(clients.iter().all(|client| client.stays(front, 100)));

    scene.file("weir.toml", config(&scene, "", ([0, 1], affinity)));
    assert_eq!(weir.ask("/api/v1/reload").status, 200);
    assert!(clients.iter().all(|client| client.stays(front, 10)), "after a reload");
    assert!((0..20).all(|_| !Client::new(front).is_of_v1()), "new clients");
    // A value of another route does not count, and nor does a value of this route there.
    let other = http::get(front, "/other").unwrap();
    let (other, _) = set(&other).unwrap();
    let value = other.split_once('=').unwrap().1;
    for _ in 0..10 {
        let answer = ask(front, &format!("s={value}"));
        assert!(["app13", "app14"].contains(&&*served_by(&answer)));
        assert!(set(&answer).is_some());
    }
}

#[test]
fn whatever_a_client_makes_up_begins_a_new_session() {
    let Some(scene) = Scene::new("sessions-forged", &["python3"]) else {
        return;
    };
    let apps = apps(&scene);
    let weir = Weir::start(&scene, &config(&scene, "", ([1, 1], "cookie = \"s\"")));
    let front = weir.front();
    let client = Client::new(front);
    let value = client.cookie.strip_prefix("s=").unwrap().to_owned();
    assert_eq!(value.len(), 64);
    let mut flipped = value.clone().into_bytes();
    flipped[40] = if flipped[40] == b'0' { b'1' } else { b'0' };
    let flipped = String::from_utf8(flipped).unwrap();
    let longer = format!("{value}00");
    let quoted = format!("\"{value}\"");
    let (empty, zeros, long) = (String::new(), "0".repeat(64), "f".repeat(4000));
    let forged = [
        &empty,
        &value[..63],
        &value[..16],
        &value[1..],
        &longer,
        &quoted,
        &flipped,
        &zeros,
        &long,
    ];
    for text in forged {
        for cookie in [format!("s={text}"), format!("a=b; s={text};s")] {
            let answer = ask(front, &cookie);
            served_by(&answer);
            let (new, _) = set(&answer).unwrap_or_else(|| panic!("{cookie}: no new session"));
            let new = Client { cookie: new, server: served_by(&answer) };
            assert!(new.stays(front, 3), "{cookie}");
        }
    }
    let bytes = [&b"GET /shop HTTP/1.1\r\nHost: a\r\nCookie: s="[..], &[0xff; 64], b"\r\n\r\n"];
    let mut connection = Connection::open(front).unwrap();
    connection.send(&bytes.concat()).unwrap();
    let answer = connection.response(false).unwrap();
    served_by(&answer);
    assert!(set(&answer).is_some(), "{answer:?}");
    assert!(client.stays(front, 10), "the true one");
    // A browser sends all cookies of the name.
    let both = Client { cookie: format!("s={flipped}; {}", client.cookie), server: client.server };
    assert!(both.stays(front, 10));
    assert!(
        apps.iter().all(|app| weir_state(&weir, app.address()) == "unknown"),
        "no server is blamed"
    );
}

/// What Weir thinks of a server's health.
fn weir_state(weir: &Weir, address: SocketAddr) -> String {
    let services = weir.api("/api/v1/services");
    let services = services["services"].as_array().or(services.as_array()).unwrap().clone();
    let servers = services.iter().flat_map(|one| one["servers"].as_array().unwrap());
    let found = servers.into_iter().find(|one| one["address"] == address.to_string()).unwrap();
    assert_ne!(found["ejected"], true, "{found:#}");
    found["health"].as_str().unwrap().to_owned()
}

#[test]
fn sessions_end_by_their_times() {
    let Some(scene) = Scene::new("sessions-times", &["python3"]) else {
        return;
    };
    let _apps = apps(&scene);
    let affinity = "cookie = \"s\", lifetime_max = \"3s\", permanent = true";
    let weir = Weir::start(&scene, &config(&scene, "", ([1, 1], affinity)));
    let front = weir.front();
    let answer = http::get(front, "/shop").unwrap();
    let (cookie, attributes) = set(&answer).unwrap();
    assert_eq!(attributes, "Path=/shop; HttpOnly; SameSite=Lax; Max-Age=3");
    let client = Client { cookie, server: served_by(&answer) };
    // A client cannot make it last longer: it has no other value than this one.
    wait::until("the session to end", SOON, || {
        set(&ask(front, &client.cookie)).is_some().then_some(())
    });
    assert!(client.is_unbound(front));

    // Each use makes it last for another ten seconds, up to the lifetime.
    let affinity = "cookie = \"s\", lifetime_max = \"1h\", idle_max = \"10s\"";
    scene.file("weir.toml", config(&scene, "", ([1, 1], affinity)));
    assert_eq!(weir.ask("/api/v1/reload").status, 200);
    let first = Client::new(front);
    let (mut latest, mut renewed) = (first.cookie.clone(), 0);
    wait::until("the first value to end while the session goes on", 2 * SOON, || {
        let is_over = first.is_unbound(front);
        let answer = ask(front, &latest);
        assert_eq!(served_by(&answer), first.server, "after {renewed} renewals");
        if let Some((cookie, attributes)) = set(&answer) {
            assert_eq!(attributes, "Path=/shop; HttpOnly; SameSite=Lax");
            (latest, renewed) = (cookie, renewed + 1);
        }
        is_over.then_some(())
    });
    assert!(renewed > 0);
    // The same value again and again: the client does not take the new ones.
    let latest = Client { cookie: latest, server: first.server };
    wait::until("the session to end", 2 * SOON, || latest.is_unbound(front).then_some(()));
}

#[test]
fn balancers_with_one_key_agree_also_after_a_reload_and_an_upgrade() {
    let (Some(scene), Some(second)) =
        (Scene::new("sessions-fleet", &["python3"]), Scene::new("sessions-fleet-2", &["python3"]))
    else {
        return;
    };
    let _apps = apps(&scene);
    let key = scene.file("shared.key", "00112233445566778899aabbccddeeff\n");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let top = format!("affinity_key_file = \"{}\"", key.display());
    let servers = [[11, 12], [13, 14]].map(|hosts| hosts.map(|host| scene.address(host, 8080)));
    let text = |of: &Scene, top: &str, weights| {
        config_of(of, top, servers, (weights, "cookie = \"s\", lifetime_max = \"1h\""))
    };
    let mut one = Weir::start(&scene, &text(&scene, &top, [1, 1]));
    let two = Weir::start(&second, &text(&second, &top, [1, 9]));
    let clients: Vec<Client> = (0..6).map(|_| Client::new(one.front())).collect();
    let all_stay = |front| clients.iter().all(|client| client.stays(front, 5));
    assert!(all_stay(one.front()) && all_stay(two.front()));
    scene.file("weir.toml", text(&scene, &format!("{top}\nconnections_max = 500"), [9, 1]));
    assert_eq!(one.ask("/api/v1/reload").status, 200);
    assert!(all_stay(one.front()), "after a reload");
    let (_, successor) = one.upgrade(SOON);
    assert!(all_stay(one.front()), "after an upgrade");
    successor.signal(rustix::process::Signal::TERM);
    wait::until("the new process to end", SOON, || (!successor.is_running()).then_some(()));

    // One without the key has its own.
    scene.file("weir.toml", text(&scene, "", [1, 1]));
    let alone = Weir::start(&scene, &text(&scene, "", [1, 1]));
    assert!(clients.iter().all(|client| set(&ask(alone.front(), &client.cookie)).is_some()));
    assert!(scene.folder().join("affinity.key").exists());
}

fn change(scene: &Scene, (service, app): (&str, &App), what: &str, body: &str) {
    let path = format!("/api/v1/services/{service}/servers/{}/{what}", app.address());
    let mut admin = Connection::open(scene.admin()).unwrap();
    let fields = ["Content-Type: application/json"];
    let answer = admin.request("POST", &path, &fields, body.as_bytes()).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// A server without weight keeps its sessions and gets no new ones; sessions leave one that is drained or down,
/// stay in its service, and do not come back.
#[test]
fn sessions_leave_a_server_that_is_drained_or_down() {
    let Some(scene) = Scene::new("sessions-leave", &["python3"]) else {
        return;
    };
    let mut apps = apps(&scene);
    let weir = Weir::start(&scene, &config(&scene, "", ([1, 0], "cookie = \"s\"")));
    let front = weir.front();
    let client = Client::new(front);
    let at = usize::from(client.server == "app12");
    change(&scene, ("v1", &apps[at]), "weight", r#"{"weight": 0}"#);
    assert!(client.stays(front, 20));
    assert!((0..20).all(|_| Client::new(front).server != client.server));
    change(&scene, ("v1", &apps[at]), "weight", r#"{"weight": 1}"#);

    let moved = |from: &Client| {
        let answer = ask(front, &from.cookie);
        let (cookie, _) = set(&answer).expect("a new session");
        let moved = Client { cookie, server: served_by(&answer) };
        assert_ne!(moved.server, from.server);
        assert!(moved.is_of_v1() && moved.stays(front, 20));
        moved
    };
    change(&scene, ("v1", &apps[at]), "state", r#"{"state": "drain"}"#);
    let client = moved(&client);
    change(&scene, ("v1", &apps[at]), "state", r#"{"state": "ready"}"#);
    assert!(client.stays(front, 20), "stays where it went");

    let at = usize::from(client.server == "app12");
    apps[at].kill();
    let client = moved(&client);
    apps[at].restart(&scene);
    assert!(client.stays(front, 20), "stays where it went");
    // Both servers are gone: other services have no weight, so the client waits for these.
    apps.iter_mut().for_each(App::kill);
    assert!(ask(front, &client.cookie).status >= 500);
}

#[test]
fn a_header_carries_sessions() {
    let Some(scene) = Scene::new("sessions-header", &[]) else {
        return;
    };
    // Servers that are balancers, too, and have sessions of their own.
    let servers = HOSTS.map(|host| {
        Rogue::start(scene.address(host, 8080), move |peer| {
            while peer.message().is_some() {
                peer.say(format!(
                    "HTTP/1.1 200 OK\r\nX-Served-By: app{host}\r\nshop_session: theirs\r\n\
                     Content-Length: 0\r\n\r\n"
                ));
            }
        })
    });
    let affinity = "header = \"Shop-Session\", lifetime_max = \"1h\"";
    let weir = Weir::start(&scene, &config(&scene, "", ([1, 1], affinity)));
    let front = weir.front();
    for _ in 0..6 {
        let answer = http::get(front, "/shop").unwrap();
        let session = answer.field("shop-session").expect("a session").to_owned();
        let theirs = |answer: &Response| answer.fields.iter().any(|(_, value)| value == "theirs");
        assert!(answer.field("set-cookie").is_none() && !theirs(&answer), "{answer:?}");
        for _ in 0..20 {
            let fields = [&*format!("SHOP-Session: {session}")];
            let again = http::get_with(front, "/shop", &fields).unwrap();
            assert_eq!(served_by(&again), served_by(&answer));
            assert!(again.field("shop-session").is_none() && !theirs(&again), "{again:?}");
        }
    }
    drop(servers);
}
