//! Routes whose requests are decided about by an authentication server (`forward`): one inside the test,
//! which answers as the request's cookie says, so that it also misbehaves.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use e2e::clients::curl;
use e2e::http::Connection;
use e2e::rogue::{Peer, Rogue};
use e2e::{App, Authority, Scene, Weir, http, server_tables, wait};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(20);

/// The heads of the questions that an authentication server has received.
type Asked = Arc<Mutex<Vec<String>>>;

/// Starts an authentication server that answers with what the cookie `do` names.
fn authentication_server(scene: &Scene, host: u8) -> (Rogue, Asked) {
    let asked = Asked::default();
    let seen = Arc::clone(&asked);
    let server = Rogue::start(scene.address(host, 8080), move |peer| {
        while let Some(head) = peer.head() {
            let cookie = head.lines().find_map(|line| line.split_once("do=")).map_or("", |of| of.1);
            let cookie = cookie.to_owned();
            seen.lock().unwrap().push(head);
            if cookie == "later" {
                let is_released = |asked: &[String]| asked.iter().any(|one| one.contains("do=now"));
                wait::until("the word to go on", SOON, || {
                    is_released(&seen.lock().unwrap()).then_some(())
                });
            }
            if !answer(peer, &cookie) {
                return;
            }
        }
    });
    (server, asked)
}

/// Answers a question; false: the connection ends.
fn answer(peer: &mut Peer, cookie: &str) -> bool {
    let plain = |status: &str, fields: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len())
    };
    let said = match cookie {
        "ann" | "later" => plain(
            "200 OK",
            "X-User: ann\r\nx-groups: a\r\nX-Groups: b\r\nX-Empty:\r\nX-Other: secret\r\n\
             Set-Cookie: s=1\r\nSet-Cookie: t=2\r\nConnection: x-hop\r\nX-Hop: 1\r\n",
            "",
        ),
        "anonymous" => plain("204 No Content", "", "").replace("Content-Length: 0\r\n", ""),
        "early" => {
            "HTTP/1.1 103 Early Hints\r\n\r\n".to_owned() + &plain("200 OK", "X-User: e\r\n", "ok")
        }
        "chunked" => {
            let fields = "Transfer-Encoding: chunked\r\nX-User: c\r\n";
            format!("HTTP/1.1 202 Accepted\r\n{fields}\r\n2\r\nok\r\n0\r\nX-User: root\r\n\r\n")
        }
        "two-users" => plain("200 OK", "X-User: ann\r\nX-User: bob\r\n", ""),
        "control" => plain("200 OK", "X-User: a\tb\r\n", ""),
        "latin" => {
            peer.say(b"HTTP/1.1 200 OK\r\nX-User: M\xfcller\r\nContent-Length: 0\r\n\r\n");
            return true;
        }
        "long" => plain("200 OK", &format!("X-Groups: {}\r\n", "g".repeat(3000)), ""),
        "forbidden" => plain("403 Forbidden", "Content-Type: text/html\r\n", "<p>not you"),
        "basic" => plain(
            "401 Unauthorized",
            "WWW-Authenticate: Basic realm=\"x\"\r\nWWW-Authenticate: Negotiate\r\nConnection: keep-alive, x-hop\r\n\
             X-Hop: 1\r\nX-Request-Id: theirs\r\nDate: never\r\nAccess-Control-Allow-Origin: *\r\n",
            "who?",
        ),
        "missing" => plain("404 Not Found", "", "no such page"),
        "limited" => {
            plain("429 Too Many Requests", "Retry-After: 7\r\nProxy-Status: theirs\r\n", "slower")
        }
        "huge" => plain("403 Forbidden", "", &"x".repeat(64 * 1024 + 1)),
        "large" => plain("403 Forbidden", "", &"x".repeat(64 * 1024)),
        "endless" => {
            peer.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-User: ann\r\n\r\n");
            for _ in 0..100 {
                peer.say(format!("1000\r\n{}\r\n", "x".repeat(0x1000)));
            }
            peer.hold();
            return false;
        }
        "cut" => {
            peer.say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nX-User: ann\r\n\r\nhalf");
            return false;
        }
        "gone" => return false,
        "error" => plain("500 Internal Server Error", "X-User: ann\r\n", "secret trace"),
        "unchanged" => "HTTP/1.1 304 Not Modified\r\nX-User: ann\r\n\r\n".to_owned(),
        "switch" => "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n"
            .to_owned(),
        "injected" => plain("200 OK", "X-User: ann\rX-Admin: 1\r\n", ""),
        "garbage" => "SSH-2.0-OpenSSH\r\n\r\n".to_owned(),
        "slow" => {
            peer.hold();
            return false;
        }
        _ => plain(
            "302 Found",
            "Location: https://login.example.com/?rd=x\r\nSet-Cookie: state=1; Path=/\r\n\
             Set-Cookie: nonce=2\r\nContent-Type: text/html\r\n",
            "<a href=login>",
        ),
    };
    peer.say(said);
    true
}

/// What the echo of a request has under this name, in any spelling.
fn echoed(answer: &http::Response, name: &str) -> Vec<String> {
    let fields = answer.json()["fields"].as_array().cloned().unwrap_or_default();
    let named = fields.iter().filter(|field| {
        field[0].as_str().unwrap().replace(['_', '.'], "-").eq_ignore_ascii_case(name)
    });
    named.map(|field| field[1].as_str().unwrap().to_owned()).collect()
}

const FORWARD: &str = "service = \"auth\"\npath = \"/check?x=1\"\nuser_header = \"X-User\"\n\
    identity_headers = [\"X-Groups\", \"X-Empty\"]";

/// A route that asks `auth` for everything below `/staff`.
fn rest_of(forward: &str, app: &App, auth: &Rogue) -> String {
    format!(
        "[[route]]\npath = \"/staff\"\nauthenticate = \"sso\"\nservice = \"app\"\n\
         [[route]]\npath = \"/public\"\nservice = \"app\"\n\
         [[route]]\npath = \"/few\"\nauthenticate = \"sso\"\nservice = \"app\"\n\
         rate_limit = [{{ requests = 2, per = \"1h\", by = \"client\" }}]\n\
         [[route]]\npath = \"/each\"\nauthenticate = \"sso\"\nservice = \"app\"\n\
         rate_limit = [{{ requests = 1, per = \"1h\", by = \"user\" }}]\n\
         [authentication.sso.forward]\n{}\n\
         [service.app]\n{}[service.auth]\npassive = false\n{}",
        forward,
        server_tables("app", [app.address()]),
        server_tables("auth", [auth.address()]),
    )
}

fn cookie(what: &str) -> String {
    format!("Cookie: do={what}")
}

#[test]
fn the_server_decides_and_says_who_it_is() {
    let Some(scene) = Scene::new("forward-auth", &["python3", "curl"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let (auth, asked) = authentication_server(&scene, 12);
    let pair = Authority::new(&scene, "ca").issue("a", &["a.example.com"]);
    let listener = format!(
        "[[listener]]\nname = \"secure\"\naddress = \"{}\"\ntls = {{ certificates = [{}] }}\n",
        scene.address(2, 8443),
        pair.table()
    );
    let forward = format!("{FORWARD}\nhost = \"auth.example.com\"");
    let rest = listener + &rest_of(&forward, &app, &auth);
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest));
    let ask = |path: &str, fields: &[&str]| http::get_with(weir.front(), path, fields).unwrap();
    let ann = cookie("ann");

    // Allowed, with the identity, which no one can forge.
    let forged = ["x-user: root", "X_User: root", "X.User: root", "X-Empty: x", "X-GROUPS: wheel"];
    let fields = [&[&*ann, "X-Forwarded-Uri: /public", "X-Original-URL: /public"], &forged[..]];
    let seen = ask("/staff/a%20b?c=d", &fields.concat());
    assert_eq!(
        (seen.status, echoed(&seen, "X-User")),
        (200, vec!["ann".to_owned()]),
        "{}",
        seen.head
    );
    assert_eq!(echoed(&seen, "X-Groups"), ["a, b"]);
    assert!(echoed(&seen, "X-Empty").is_empty() && echoed(&seen, "X-Other").is_empty());
    let cookies = seen.fields.iter().filter(|(name, _)| name == "set-cookie");
    assert_eq!(cookies.map(|(_, value)| &**value).collect::<Vec<_>>(), ["s=1", "t=2"]);
    let head = asked.lock().unwrap().last().unwrap().clone();
    assert!(head.starts_with("GET /check?x=1 HTTP/1.1\r\nHost: auth.example.com\r\n"), "{head}");
    let host = weir.front().to_string();
    for (name, value) in [
        ("x-forwarded-method", "GET"),
        ("x-forwarded-uri", "/staff/a%20b?c=d"),
        ("x-forwarded-host", &host),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-for", "127.0.0.1"),
        ("cookie", "do=ann"),
    ] {
        let all = head.lines().filter_map(|line| line.split_once(": "));
        let named = all.filter(|(one, _)| one.eq_ignore_ascii_case(name));
        let named: Vec<_> = named.map(|(_, value)| value).collect();
        assert_eq!(named, [value], "{name}: {head}");
    }
    let forbidden = ["root", "wheel", "/public", "original"];
    assert!(!forbidden.iter().any(|word| head.to_lowercase().contains(word)), "{head}");
    let seen = ask("/public", &forged);
    assert!(["X-User", "X-Groups", "X-Empty"].iter().all(|name| echoed(&seen, name).is_empty()));
    for (what, user) in
        [("anonymous", None), ("early", Some("e")), ("chunked", Some("c")), ("ann", Some("ann"))]
    {
        let seen = ask("/staff", &[&cookie(what)]);
        assert_eq!(seen.status, 200, "{what}");
        assert_eq!(echoed(&seen, "X-User").first().map(String::as_str), user, "{what}");
    }

    // A body stays with the request, and a trailer is no identity.
    let mut connection = Connection::open(weir.front()).unwrap();
    let body = vec![b'x'; 300_000];
    for _ in 0..2 {
        let seen = connection.request("POST", "/staff", &[&ann], &body).unwrap();
        assert_eq!((seen.status, &seen.json()["body_bytes"]), (200, &json!(300_000)));
    }
    let trailers = "X-User: root\r\nX-Sum: 3\r\n";
    let head =
        format!("POST /staff HTTP/1.1\r\nHost: a\r\n{ann}\r\nTransfer-Encoding: chunked\r\n\r\n");
    connection.send(format!("{head}3\r\nabc\r\n0\r\n{trailers}\r\n").as_bytes()).unwrap();
    let seen = connection.response(false).unwrap().json()["trailers"].to_string();
    assert!(seen.contains("X-Sum") && !seen.contains("root"), "{seen}");
    let head = asked.lock().unwrap().last().unwrap().to_lowercase();
    assert!(
        !head.contains("transfer-encoding") && head.contains("x-forwarded-method: post"),
        "{head}"
    );

    // Denied with the server's own answer: no 100 (Continue) before it, and the connection goes on.
    let expect = "Expect: 100-continue";
    for (method, body) in [("GET", &b""[..]), ("HEAD", b""), ("POST", b"abc")] {
        let seen = connection.request(method, "/staff", &[], body).unwrap();
        assert_eq!((seen.status, seen.text().is_empty()), (302, method == "HEAD"));
        assert_eq!(seen.field("content-length"), Some("14"));
        assert_eq!(seen.field("location"), Some("https://login.example.com/?rd=x"));
        assert_eq!(
            seen.head.matches("Set-Cookie").count() + seen.head.matches("set-cookie").count(),
            2
        );
        assert_eq!(seen.field("content-type"), Some("text/html"));
        assert_eq!(seen.field("cache-control"), Some("no-store"));
    }
    let head = format!("POST /staff HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n{expect}\r\n\r\n");
    let mut waiting = Connection::open(weir.front()).unwrap();
    waiting.send(head.as_bytes()).unwrap();
    assert_eq!(waiting.response(false).unwrap().status, 302);
    let seen = connection.get("/staff", &[&cookie("basic")]).unwrap();
    assert_eq!((seen.status, &*seen.text()), (401, "who?"));
    assert_eq!(seen.head.to_lowercase().matches("www-authenticate").count(), 2, "{}", seen.head);
    assert!(seen.field("x-hop").is_none() && seen.field("date") != Some("never"), "{}", seen.head);
    assert_eq!(seen.head.to_lowercase().matches("x-request-id").count(), 1);
    let seen = connection.get("/staff", &[&cookie("forbidden")]).unwrap();
    assert_eq!((seen.status, &*seen.text()), (403, "<p>not you"));
    let seen = connection.get("/staff", &[&cookie("limited")]).unwrap();
    assert_eq!((seen.status, seen.field("retry-after")), (429, Some("7")));
    assert!(!seen.head.contains("theirs") && seen.field("cache-control") == Some("no-store"));
    let seen = connection.get("/staff", &[&cookie("large")]).unwrap();
    assert_eq!((seen.status, seen.body.len()), (403, 64 * 1024));

    // Over HTTP/2, where a body may still be on its way.
    let url = format!("https://{}/staff", scene.address(2, 8443));
    let write =
        ["-k", "-s", "-o", "/dev/null", "-w", "%{http_version} %{http_code} %{redirect_url}"];
    let status = |words: &[&str]| curl(&scene, &[&write, words, &[&*url]].concat()).stdout;
    assert_eq!(status(&["-b", "do=ann"]), "2 200 ");
    assert_eq!(status(&[]), "2 302 https://login.example.com/?rd=x");
    assert_eq!(status(&["-I"]), "2 302 https://login.example.com/?rd=x");
    let body = scene.file("upload", "x".repeat(60_000)).display().to_string();
    assert_eq!(status(&["-T", &body]), "2 302 https://login.example.com/?rd=x");
    assert_eq!(status(&["-T", &body, "-b", "do=ann"]), "2 200 ");
    assert!(asked.lock().unwrap().last().unwrap().contains("X-Forwarded-Proto: https\r\n"));

    // An upgrade, whose 101 has the cookies, too.
    let upgrade = format!(
        "GET /staff HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Key: x\r\n{ann}\r\n\r\n"
    );
    let mut tunnel = Connection::open(weir.front()).unwrap();
    tunnel.send(upgrade.as_bytes()).unwrap();
    let seen = tunnel.response(false).unwrap();
    assert_eq!((seen.status, seen.field("set-cookie")), (101, Some("s=1")), "{}", seen.head);
    let head = asked.lock().unwrap().last().unwrap().to_lowercase();
    assert!(!head.contains("upgrade") && !head.contains("websocket"), "{head}");
    drop(tunnel);

    // Limits by client come before the question, those by user after it.
    let before = asked.lock().unwrap().len();
    assert_eq!([302, 302, 429], [(); 3].map(|()| ask("/few", &[]).status));
    assert_eq!(asked.lock().unwrap().len(), before + 2);
    assert_eq!([200, 429], [(); 2].map(|()| ask("/each", &[&ann]).status));
    assert_eq!(ask("/each", &[&cookie("early")]).status, 200);

    let lines = wait::until("the access lines", SOON, || {
        Some(weir.access())
            .filter(|lines| lines.iter().any(|line| line["user"] == "e" && line["path"] == "/each"))
    });
    let line = &lines[0];
    assert_eq!(
        (&line["user"], &line["service"], &line["attempts"]),
        (&json!("ann"), &json!("app"), &json!(1))
    );
    assert!(line["auth_ms"].as_f64().unwrap() > 0.0, "{line}");
    let denied: Vec<_> = lines.iter().filter(|line| line["status"] == 302).collect();
    for line in &denied {
        assert_eq!(
            (&line["cause"], &line["detail"]),
            (&json!("unauthenticated"), &json!("redirected_by_server"))
        );
        assert_eq!((&line["service"], &line["attempts"]), (&Value::Null, &json!(0)), "{line}");
    }
    assert!(!denied.is_empty());
    // The questions are counted for the service that was asked, and for no other.
    let count = |service: &str, code: &str| {
        let labels = [format!("service=\"{service}\""), format!("status=\"{code}\"")];
        weir.metric("weir_requests_total", &labels.each_ref().map(String::as_str))
    };
    assert!(count("auth", "3xx") >= denied.len() as f64);
    assert!(count("app", "3xx") < 0.5);
}

#[test]
fn whatever_is_no_verdict_denies() {
    let Some(scene) = Scene::new("forward-auth-fails", &["python3"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let (auth, asked) = authentication_server(&scene, 12);
    let forward = format!("{FORWARD}\ntimeout = \"1s\"");
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest_of(&forward, &app, &auth)));
    let cases = [
        ("two-users", 403, "http_request_denied", "several_users"),
        ("latin", 403, "http_request_denied", "value_not_utf8"),
        ("long", 403, "http_request_denied", "value_too_long"),
        ("control", 403, "http_request_denied", "value_control_character"),
        ("injected", 503, "authentication_unavailable", "http_protocol_error"),
        ("huge", 503, "authentication_unavailable", "response_too_large"),
        ("endless", 503, "authentication_unavailable", "response_too_large"),
        ("cut", 503, "authentication_unavailable", "connection_terminated"),
        ("gone", 503, "authentication_unavailable", "connection_terminated"),
        ("error", 503, "authentication_unavailable", "server_error"),
        ("unchanged", 503, "authentication_unavailable", "unexpected_status"),
        ("missing", 503, "authentication_unavailable", "unexpected_status"),
        ("switch", 503, "authentication_unavailable", "http_protocol_error"),
        ("garbage", 503, "authentication_unavailable", "http_protocol_error"),
        ("slow", 504, "authentication_timeout", "total_timeout"),
    ];
    for (what, status, cause, _) in cases {
        let seen = http::get_with(weir.front(), "/staff", &[&cookie(what)]).unwrap();
        assert_eq!(seen.status, status, "{what}: {}", seen.head);
        assert!(seen.text().contains(cause) && !seen.text().contains("secret"), "{}", seen.text());
        assert!(seen.field("set-cookie").is_none());
    }
    let lines = wait::until("the access lines", SOON, || {
        Some(weir.access()).filter(|lines| lines.len() >= cases.len())
    });
    for ((what, _, cause, detail), line) in cases.iter().zip(&lines) {
        assert_eq!(
            (&line["cause"], &line["detail"]),
            (&json!(cause), &json!(detail)),
            "{what}: {line}"
        );
        assert_eq!(
            (&line["service"], &line["user"]),
            (&Value::Null, &Value::Null),
            "{what}: {line}"
        );
    }
    assert_eq!(app.stat("requests"), 0, "nothing has passed");
    // What the authentication server does counts against it, and what its client does does not.
    let failures = |service: &str| {
        weir.metric("weir_server_failures_total", &[&format!("service=\"{service}\"")])
    };
    let of_server = ["injected", "cut", "gone", "switch", "garbage", "slow"].len() as f64;
    assert!(failures("auth") >= of_server, "{}", failures("auth"));
    assert!(failures("app") < 0.5);
    let blamed = failures("auth");

    // A client that leaves ends its question.
    let before = asked.lock().unwrap().len();
    let mut client = Connection::open(weir.front()).unwrap();
    client.send(b"GET /staff HTTP/1.1\r\nHost: a\r\nCookie: do=slow\r\n\r\n").unwrap();
    wait::until("the question", SOON, || (asked.lock().unwrap().len() > before).then_some(()));
    drop(client);
    let left = |line: &Value| line["cause"] == "client_closed" || line["cause"] == "client_reset";
    wait::until("its access line", SOON, || weir.access().iter().any(left).then_some(()));
    assert!((failures("auth") - blamed).abs() < 0.5, "{} after {blamed}", failures("auth"));

    // A dead server denies, too.
    drop(auth);
    let seen = wait::until("the dead server", SOON, || {
        let seen = http::get_with(weir.front(), "/staff", &[&cookie("ann")]).unwrap();
        (seen.status != 200).then_some(seen)
    });
    assert_eq!(seen.status, 503);
}

#[test]
fn the_service_is_used_like_any_other() {
    let Some(scene) = Scene::new("forward-auth-service", &["python3", "curl"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let (auth, asked) = authentication_server(&scene, 12);
    let broken = Rogue::start(scene.address(13, 8080), |peer| {
        if peer.head().is_some() {
            peer.say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nX-User: root\r\n\r\nhalf");
        }
    });
    // A second authentication server, over HTTP/2: a listener of this Weir.
    let inner = scene.address(3, 8080);
    let http2 = |path: &str, rest: &str| {
        format!(
            "[[route]]\nlistener = \"inner\"\npath_exact = \"{path}\"\nrespond = {{ {rest} }}\n"
        )
    };
    let rest = |path: &str| {
        let more = format!(
            "[[listener]]\nname = \"inner\"\naddress = \"{inner}\"\n{}{}\
             [[route]]\npath = \"/two\"\nauthenticate = \"two\"\nservice = \"app\"\n\
             [authentication.two.forward]\nservice = \"two\"\npath = \"{path}\"\nuser_header = \"X-Forwarded-User\"\n\
             [service.two]\nhttp = \"2\"\n{}\
             [[route]]\npath = \"/pair\"\nauthenticate = \"pair\"\nservice = \"app\"\n\
             [authentication.pair.forward]\nservice = \"pair\"\npath = \"/\"\nuser_header = \"X-User\"\n\
             [service.pair]\nbalance = \"round-robin\"\n{}",
            http2("/ok", "status = 200, headers = { X-Forwarded-User = \"eve\" }"),
            http2("/no", "status = 401, body = \"no\""),
            server_tables("two", [inner]),
            server_tables("pair", [broken.address(), auth.address()]),
        );
        let limited = "[service.auth]\nqueue = { wait_max = \"1m\" }\nin_flight_max = 1\n";
        let patient = format!("{FORWARD}\ntimeout = \"1m\"");
        rest_of(&patient, &app, &auth).replace("[service.auth]\npassive = false\n", limited) + &more
    };
    let config = |path: &str| scene.config("workers = 1", &rest(path));
    let weir = Weir::start(&scene, &config("/ok"));
    let ask = |path: &str, fields: &[&str]| http::get_with(weir.front(), path, fields).unwrap();
    for _ in 0..3 {
        let seen = ask("/two", &["X-Forwarded-User: root", "X.Forwarded_User: root"]);
        assert_eq!((seen.status, echoed(&seen, "X-Forwarded-User")), (200, vec!["eve".to_owned()]));
    }
    // If one server of the service fails within its response, another is asked, and that one is blamed.
    for _ in 0..4 {
        let seen = ask("/pair", &[&cookie("ann")]);
        assert_eq!((seen.status, echoed(&seen, "X-User")), (200, vec!["ann".to_owned()]));
    }
    let failures = |server: &SocketAddr| {
        let labels = ["service=\"pair\"".to_owned(), format!("address=\"{server}\"")];
        weir.metric("weir_server_failures_total", &labels.each_ref().map(String::as_str))
    };
    assert!(failures(&broken.address()) > 0.5 && failures(&auth.address()) < 0.5);

    // A reload changes what is asked.
    let from = weir.log().len();
    scene.file("weir.toml", config("/no"));
    weir.hang_up();
    weir.wait_for_log_from(from, &["reloaded"], SOON);
    let seen = ask("/two", &[]);
    assert_eq!((seen.status, &*seen.text()), (401, "no"));
    // A call is refused as one.
    let url = format!("http://{}/two", weir.front());
    let words = [
        "--http2-prior-knowledge",
        "-s",
        "-i",
        "-H",
        "Content-Type: application/grpc",
        "-d",
        "x",
        &url,
    ];
    let seen = curl(&scene, &words).stdout;
    assert!(seen.contains("grpc-status: 16") && seen.starts_with("HTTP/2 200"), "{seen}");

    // One question at a time: the next waits in the queue of that service.
    let send = |what: &str| {
        let mut client = Connection::open(weir.front()).unwrap();
        let fields = cookie(what);
        client
            .send(format!("GET /staff HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n").as_bytes())
            .unwrap();
        client
    };
    let count = || asked.lock().unwrap().len();
    let before = count();
    let mut first = send("later");
    wait::until("the first question", SOON, || (count() > before).then_some(()));
    let mut second = send("early");
    wait::until("the queue", SOON, || (weir.queue_length("auth") == 1).then_some(()));
    assert_eq!((weir.queue_length("app"), count()), (0, before + 1));
    http::get_with(auth.address(), "/", &[&cookie("now")]).unwrap();
    assert_eq!(echoed(&first.response(false).unwrap(), "X-User"), ["ann"]);
    assert_eq!(echoed(&second.response(false).unwrap(), "X-User"), ["e"]);
}
