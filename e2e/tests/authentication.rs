//! Routes that require a password or a token, with files made by other programs, and what attackers try.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use e2e::clients::{client, curl};
use e2e::http::Connection;
use e2e::{App, Authority, Issuer, Scene, Weir, http, key_set, server_tables, wait};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(20);

/// The line of a user in an htpasswd file, by bcrypt at this cost.
fn user(name: &str, password: &str, cost: u32) -> String {
    let cost = cost.to_string();
    let made = Command::new("htpasswd").args(["-nbBC", &cost, name, password]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    String::from_utf8(made.stdout).unwrap().trim().to_owned() + "\n"
}

fn basic(user: &str, password: &str) -> String {
    format!("Authorization: Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// What the echo of a request has under this name.
fn echoed(answer: &http::Response, name: &str) -> Vec<String> {
    let fields = answer.json()["fields"].as_array().unwrap().clone();
    let named = fields.iter().filter(|field| {
        field[0].as_str().unwrap().replace(['_', '.'], "-").eq_ignore_ascii_case(name)
    });
    named.map(|field| field[1].as_str().unwrap().to_owned()).collect()
}

#[test]
fn passwords_are_verified_and_the_user_is_passed_on() {
    let Some(scene) =
        Scene::new("authentication-basic", &["python3", "htpasswd", "curl", "nghttp"])
    else {
        return;
    };
    let (app, other) = (App::start(&scene, 11, &[]), App::start(&scene, 12, &[]));
    let users = user("ann", "correct: horse", 5) + &user("bob", "b", 5);
    let file = scene.file("users", &users);
    let pair = Authority::new(&scene, "ca").issue("a", &["a.example.com"]);
    let rest = format!(
        "[[listener]]\nname = \"secure\"\naddress = \"{}\"\ntls = {{ certificates = [{}] }}\n\
         [[route]]\npath = \"/public\"\nservice = \"app\"\n\
         [[route]]\npath = \"/staff\"\nauthenticate = \"staff\"\nservice = \"app\"\n\
         [[route]]\npath = \"/kept\"\nauthenticate = \"kept\"\nservice = \"app\"\n\
         [[route]]\npath = \"/few\"\nauthenticate = \"staff\"\nrate_limit = {{ requests = 1, per = \"1h\" }}\nservice = \"app\"\n\
         [[route]]\npath = \"/hashed\"\nauthenticate = \"staff\"\nservice = \"hashed\"\n\
         [authentication.staff]\nrealm = \"the \\\"staff\\\"\"\n\
         basic = {{ users_file = \"{file}\", user_header = \"X-User\" }}\n\
         [authentication.kept]\nforward_credentials = false\nbasic = {{ users_file = \"{file}\" }}\n\
         [reload]\nwatch = true\n[service.app]\n{}\
         [service.hashed]\nbalance = \"hash\"\nhash = {{ on = \"header:X-User\" }}\n{}",
        scene.address(2, 8443),
        pair.table(),
        server_tables("app", [app.address()]),
        server_tables("hashed", [app.address(), other.address()]),
        file = file.display(),
    );
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest));
    let ask = |path: &str, fields: &[&str]| http::get_with(weir.front(), path, fields).unwrap();

    let ann = basic("ann", "correct: horse");
    let challenge = "Basic realm=\"the \\\"staff\\\"\", charset=\"UTF-8\"";
    let refusals = [
        (String::new(), "no_credentials"),
        (basic("ann", "wrong"), "wrong_password"),
        (basic("nobody", "wrong"), "unknown_user"),
        (basic("ann", &"x".repeat(100)), "password_too_long"),
        ("Authorization: Basic ====".to_owned(), "malformed"),
        ("Authorization: Bearer abc".to_owned(), "other_scheme"),
        (format!("{ann}\r\n{ann}"), "several_credentials"),
    ];
    let mut bodies = Vec::new();
    for (field, _) in &refusals {
        let fields: Vec<&str> = [&**field].into_iter().filter(|field| !field.is_empty()).collect();
        let seen = ask("/staff", &fields);
        assert_eq!(seen.status, 401, "{field}");
        assert_eq!(seen.field("www-authenticate"), Some(challenge), "{field}");
        let id = seen.field("x-request-id").unwrap().to_owned();
        bodies.push(seen.text().replace(&id, "ID"));
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "a refusal tells nothing about users: {bodies:?}");

    // No client can write the field, on any route, in any spelling.
    let forged = ["x-user: root", "X_User: root", "X.User: root"];
    let seen = ask("/staff", &[&*ann, forged[0], forged[1], forged[2]]);
    assert_eq!((seen.status, echoed(&seen, "X-User")), (200, vec!["ann".to_owned()]));
    assert_eq!(echoed(&seen, "Authorization").len(), 1);
    let seen = ask("/public", &forged);
    assert_eq!((seen.status, echoed(&seen, "X-User")), (200, vec![]));
    // Nor as a trailer, which some servers merge into the fields.
    let trailers = "X-User: root\r\nx_user: root\r\nX-Sum: 3\r\n";
    let mut connection = Connection::open(weir.front()).unwrap();
    let head = "POST /public HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    connection.send(format!("{head}3\r\nabc\r\n0\r\n{trailers}\r\n").as_bytes()).unwrap();
    let seen = connection.response(false).unwrap().json()["trailers"].to_string();
    assert!(seen.contains("X-Sum") && !seen.contains("root"), "{seen}");
    let body = text(&scene.file("body", "abc"));
    let url = format!("https://{}/public", scene.address(2, 8443));
    let words = ["--no-content-length", "--trailer", "x-user: root", "--trailer", "x-sum: 3"];
    let seen = client(&scene, "nghttp", &[&words[..], &["-d", &body, &url]].concat(), 20).stdout;
    assert!(seen.contains("x-sum") && !seen.contains("root"), "{seen}");
    // Who sends a request decides its server, whatever the client says.
    let servers = (0..16).map(|n| {
        let seen = ask("/hashed", &[&*ann, &format!("X-User: {n}")]);
        seen.json()["server"].as_str().unwrap().to_owned()
    });
    assert_eq!(servers.collect::<HashSet<_>>().len(), 1);
    let seen = ask("/kept", &[&ann]);
    assert_eq!((seen.status, echoed(&seen, "Authorization")), (200, vec![]));
    // The limit comes first.
    assert_eq!([401, 429], [(); 2].map(|()| ask("/few", &[&basic("ann", "no")]).status));

    // Over HTTP/2.
    let url = format!("https://{}/staff", scene.address(2, 8443));
    let status = |credentials: &str| {
        let words =
            ["-k", "-u", credentials, "-o", "/dev/null", "-w", "%{http_version} %{http_code}"];
        curl(&scene, &[&words[..], &[&*url]].concat()).stdout
    };
    assert_eq!(status("ann:correct: horse"), "2 200");
    assert_eq!(status("ann:wrong"), "2 401");
    // A client that still sends its body gets the challenge, too, and may try again.
    let body = text(&scene.file("upload", "x".repeat(60_000)));
    let words = ["-k", "-T", &body, "-o", "/dev/null", "-w", "%{http_version} %{http_code}", &url];
    assert_eq!(curl(&scene, &words).stdout, "2 401");
    let words = [&["--anyauth", "-u", "ann:correct: horse"][..], &words].concat();
    assert_eq!(curl(&scene, &words).stdout, "2 200");

    let lines = wait::until("the access lines", SOON, || {
        Some(weir.access()).filter(|lines| lines.len() >= refusals.len() + 28)
    });
    for ((field, detail), line) in refusals.iter().zip(&lines) {
        let (cause, fault) = (&line["cause"], &line["fault"]);
        assert_eq!((cause, fault), (&json!("unauthenticated"), &json!("client")), "{line}");
        assert_eq!((&line["user"], &line["service"]), (&Value::Null, &Value::Null));
        assert!(line["detail"].as_str().unwrap().contains(detail), "{field}: {line}");
    }
    let log = lines.iter().map(Value::to_string).collect::<String>() + &weir.log();
    for secret in ["horse", &STANDARD.encode("ann:correct: horse")] {
        assert!(!log.contains(secret), "{log}");
    }
    assert_eq!(lines[refusals.len()]["user"], "ann");

    // A changed password ends the old one at once, though it was just verified.
    let from = weir.log().len();
    scene.file("users", user("ann", "new", 5) + &user("bob", "b", 5));
    weir.wait_for_log_from(from, &["reloaded"], SOON);
    assert_eq!(ask("/staff", &[&ann]).status, 401);
    assert_eq!(ask("/staff", &[&basic("ann", "new")]).status, 200);
}

#[test]
fn guesses_of_passwords_hold_up_no_other_requests() {
    let Some(scene) = Scene::new("authentication-flood", &["python3", "htpasswd"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let file = scene.file("users", user("ann", "a", 12));
    let rest = format!(
        "[[route]]\nservice = \"app\"\n\
         [[route]]\npath = \"/staff\"\nauthenticate = \"staff\"\nservice = \"app\"\n\
         [authentication.staff]\nbasic = {{ users_file = \"{}\" }}\n[service.app]\n{}",
        file.display(),
        server_tables("app", [app.address()]),
    );
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest));
    let ask = |n: usize| {
        let field = basic("ann", &format!("guess {n}"));
        format!("GET /staff HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n")
    };
    let mut guesses: Vec<Connection> = (0..100)
        .map(|n| {
            let mut connection = Connection::open(weir.front()).unwrap();
            connection.send(ask(n).as_bytes()).unwrap();
            connection
        })
        .collect();
    for _ in 0..50 {
        assert_eq!(http::get(weir.front(), "/").unwrap().status, 200);
    }
    // Those that are still being verified when their clients leave are forgotten.
    let answers: Vec<_> = guesses.iter_mut().skip(90).map(|c| c.response(false).unwrap()).collect();
    // One that is verified meanwhile leaves its place to one of the last guesses.
    let (refused, verified): (Vec<_>, Vec<_>) = answers.iter().partition(|a| a.status == 503);
    assert!(!refused.is_empty() && verified.iter().all(|answer| answer.status == 401));
    for answer in refused {
        assert_eq!(answer.field("retry-after"), Some("1"));
        let cause = answer.field("proxy-status").unwrap_or_default();
        assert!(cause.contains("authentication_overloaded"), "{cause}");
    }
    assert_eq!(guesses[0].response(false).unwrap().status, 401);
    drop(guesses);
    let good = || http::get_with(weir.front(), "/staff", &[&basic("ann", "a")]).unwrap().status;
    wait::until("the queue is empty", SOON, || (good() == 200).then_some(()));
}

#[test]
fn many_requests_with_one_password_pass_together() {
    let Some(scene) = Scene::new("authentication-equal", &["python3", "htpasswd"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let file = scene.file("users", user("ann", "a", 11));
    let rest = format!(
        "[[route]]\nauthenticate = \"staff\"\nservice = \"app\"\n\
         [authentication.staff]\nbasic = {{ users_file = \"{}\" }}\n[service.app]\n{}",
        file.display(),
        server_tables("app", [app.address()]),
    );
    let weir = Weir::start(&scene, &scene.config("workers = 2", &rest));
    let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n\r\n", basic("ann", "a"));
    let mut clients: Vec<Connection> =
        (0..200).map(|_| Connection::open(weir.front()).unwrap()).collect();
    for client in &mut clients {
        client.send(request.as_bytes()).unwrap();
    }
    let statuses = clients.iter_mut().map(|client| client.response(false).unwrap().status);
    let statuses: Vec<u16> = statuses.collect();
    assert_eq!(statuses, [200; 200]);
}

/// As many clients as fill the queue guess passwords, each more often than it may wait.
#[test]
fn guesses_of_passwords_lock_out_no_user() {
    let Some(scene) = Scene::new("authentication-fair", &["python3", "htpasswd"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let names = ["ann", "bob", "carl", "dora"];
    let users = names.map(|name| user(name, name, 7)).concat();
    let file = scene.file("users", users);
    let rest = format!(
        "[[route]]\npath = \"/staff\"\nauthenticate = \"staff\"\nservice = \"app\"\n\
         [[route]]\npath = \"/others\"\nauthenticate = \"others\"\nservice = \"app\"\n\
         [authentication.staff]\nbasic = {{ users_file = \"{file}\" }}\n\
         [authentication.others]\nbasic = {{ users_file = \"{file}\" }}\n[service.app]\n{}",
        server_tables("app", [app.address()]),
        file = file.display(),
    );
    let weir = Weir::start(&scene, &scene.config("workers = 2", &rest));
    let front = weir.front();
    // How many of those who guess have been refused.
    let (is_over, refused) = (AtomicBool::new(false), AtomicUsize::new(0));
    let guess_from = |client: u8| {
        let open = |_| Connection::open_from(scene.ip(client), front).unwrap();
        let mut connections: Vec<_> = (0..20).map(open).collect();
        let mut number = 0;
        let mut guess = |connection: &mut Connection| {
            number += 1;
            let field = basic(&format!("user{client}-{number}"), "guess");
            let head = format!("GET /staff HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n");
            connection.send(head.as_bytes()).unwrap();
        };
        connections.iter_mut().for_each(&mut guess);
        let mut counts = [0_u32; 2];
        while !is_over.load(Ordering::Relaxed) {
            for connection in &mut connections {
                match connection.response(false).unwrap().status {
                    401 => counts[0] += 1,
                    503 => {
                        counts[1] += 1;
                        if counts[1] == 1 {
                            refused.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    other => panic!("{other}"),
                }
                guess(connection);
            }
        }
        counts
    };
    std::thread::scope(|scope| {
        let guess_from = &guess_from;
        let guessing: Vec<_> =
            (60..69).map(|client| scope.spawn(move || guess_from(client))).collect();
        // The queue is full then.
        let are_refused = || (refused.load(Ordering::Relaxed) >= 9).then_some(());
        wait::until("every guesser to be refused", SOON, are_refused);
        let mut statuses = Vec::new();
        let paths = ["/staff", "/staff", "/others", "/others"];
        for (path, name) in paths.into_iter().zip(names) {
            // None of them has been verified before.
            for password in ["wrong", name] {
                let mut client = Connection::open_from(scene.ip(80), front).unwrap();
                statuses.push(client.get(path, &[&basic(name, password)]).unwrap().status);
            }
        }
        is_over.store(true, Ordering::Relaxed);
        let counts: Vec<_> = guessing.into_iter().map(|one| one.join().unwrap()).collect();
        assert_eq!(statuses, [401, 200].repeat(4), "401 and 503 of those who guess: {counts:?}");
    });
}

#[test]
fn rates_of_users_and_claims_count_after_the_authentication() {
    let Some(scene) = Scene::new("authentication-rates", &["python3", "openssl"]) else { return };
    let app = App::start(&scene, 11, &[]);
    let issuer = Issuer::new(&scene, "one");
    let keys = scene.file("jwks.json", key_set([&issuer]));
    let rest = format!(
        "[[route]]\npath = \"/tenant\"\nauthenticate = \"api\"\nservice = \"app\"\n\
         rate_limit = [{{ requests = 2, per = \"1h\", by = \"claim:org.tenant\", headers = true }}, \
         {{ requests = 6, per = \"1h\", headers = true }}]\n\
         [[route]]\npath = \"/user\"\nauthenticate = \"api\"\nservice = \"app\"\n\
         rate_limit = {{ requests = 1, per = \"1h\", by = \"user\" }}\n\
         [authentication.api.jwt]\nkeys_file = \"{}\"\naudience = \"shop\"\n\
         [service.app]\n{}",
        keys.display(),
        server_tables("app", [app.address()]),
    );
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest));
    let ask = |path: &str, claims: Value| {
        let field = format!("Authorization: Bearer {}", issuer.token(claims));
        http::get_with(weir.front(), path, &[&field]).unwrap()
    };
    let of = |subject: &str, tenant: Value| json!({ "aud": "shop", "sub": subject, "org": { "tenant": tenant } });
    let first = ask("/tenant", of("ann", json!("acme")));
    assert_eq!(first.status, 200);
    // The rate of the client counts first.
    let policy = "\"client-1h\";q=6;w=3600, \"claim-1h\";q=2;w=3600";
    assert_eq!(first.field("ratelimit-policy"), Some(policy), "{}", first.head);
    let left = "\"client-1h\";r=5;t=600, \"claim-1h\";r=1;t=1800";
    assert_eq!(first.field("ratelimit"), Some(left), "{}", first.head);
    assert_eq!(ask("/tenant", of("bob", json!("acme"))).status, 200);
    assert_eq!(ask("/tenant", of("carl", json!("acme"))).status, 429);
    assert_eq!(ask("/tenant", of("carl", json!("other"))).status, 200);
    // One that is not authenticated counts for its client only.
    let refused = http::get_with(weir.front(), "/tenant", &["Authorization: Bearer a"]).unwrap();
    assert_eq!(
        (refused.status, refused.field("ratelimit-policy")),
        (401, Some("\"client-1h\";q=6;w=3600"))
    );
    assert_eq!(ask("/tenant", of("carl", json!("other"))).status, 200);
    // What the claim's rate refused did not count for the client.
    assert_eq!(ask("/tenant", of("carl", json!("third"))).status, 200);
    assert_eq!(ask("/tenant", of("carl", json!("fourth"))).status, 429);

    assert_eq!(ask("/user", of("ann", json!(1))).status, 200);
    assert_eq!(ask("/user", of("ann", json!(2))).status, 429);
    assert_eq!(ask("/user", of("bob", json!(1))).status, 200);
    // Tokens without a subject share one allowance.
    for (claims, status) in
        [(json!({}), 200), (json!({ "sub": 7 }), 429), (json!({ "sub": "a\u{1}" }), 429)]
    {
        let mut claims = claims;
        claims["aud"] = json!("shop");
        assert_eq!(ask("/user", claims.clone()).status, status, "{claims}");
    }
}

#[test]
fn tokens_are_verified_and_claims_are_passed_on() {
    let Some(scene) = Scene::new("authentication-jwt", &["python3", "openssl"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let (issuer, stranger) = (Issuer::new(&scene, "one"), Issuer::new(&scene, "two"));
    let set = |issuers: &[&Issuer]| scene.file("jwks.json", key_set(issuers.iter().copied()));
    let file = set(&[&issuer]);
    let rest = format!(
        "[[route]]\nauthenticate = \"api\"\nservice = \"app\"\n\
         [authentication.api.jwt]\nkeys_file = \"{}\"\nissuer = \"https://login.example.com\"\n\
         audience = \"api\"\nclaims = {{ groups = \"staff\" }}\n\
         claim_headers = {{ X-User = \"sub\", X-Groups = \"groups\" }}\n\
         [reload]\nwatch = true\n[service.app]\n{}",
        file.display(),
        server_tables("app", [app.address()]),
    );
    let weir = Weir::start(&scene, &scene.config("workers = 2", &rest));
    let ask = |token: &str| {
        let field = format!("Authorization: Bearer {token}");
        http::get_with(weir.front(), "/", &[&field, "X-User: root"]).unwrap()
    };
    let claims = || json!({ "sub": "ann", "groups": ["dev", "staff"] });
    let with = |name: &str, value: Value| {
        let mut claims = claims();
        claims[name] = value;
        claims
    };
    let good = issuer.token(claims());
    let seen = ask(&good);
    assert_eq!((seen.status, echoed(&seen, "X-User")), (200, vec!["ann".to_owned()]), "{seen:?}");
    assert_eq!(echoed(&seen, "X-Groups"), ["dev,staff"]);

    let unsigned = |header: Value| {
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        format!("{}.{}.", encode(&header), good.split('.').nth(1).unwrap())
    };
    let header = |alg: &str, kid: &str| json!({ "alg": alg, "kid": kid });
    for (token, status, detail) in [
        (stranger.signed(&header("EdDSA", "one"), claims()), 401, "token_signature"),
        (stranger.token(claims()), 401, "token_unknown_key"),
        (unsigned(header("none", "one")), 401, "token_algorithm"),
        (unsigned(header("HS256", "one")), 401, "token_"),
        (good[..good.len() - 4].to_owned(), 401, "token_"),
        (format!("{good}="), 401, "malformed"),
        ("x".repeat(17_000), 431, ""),
        (issuer.token(with("exp", json!(1_000_000_000))), 401, "token_expired"),
        (issuer.token(with("aud", json!("other"))), 401, "token_audience"),
        (issuer.token(with("iss", json!("https://evil.example.com"))), 401, "token_issuer"),
        (issuer.token(with("groups", json!(["dev"]))), 403, "claim_missing"),
        (issuer.token(with("groups", json!("staff, root"))), 403, "claim_missing"),
        (issuer.token(with("sub", json!(""))), 403, "value_no_text"),
        (issuer.token(with("sub", json!({ "name": "ann" }))), 403, "value_no_text"),
        (issuer.token(with("groups", json!(["staff", ""]))), 403, "claim_missing"),
        // Header injection by a claim.
        (issuer.token(with("sub", json!("ann\r\nX-Admin: 1"))), 403, "control_character"),
        (issuer.token(with("groups", json!(["staff", "a,root"]))), 403, "comma"),
    ] {
        let seen = ask(&token);
        assert_eq!(seen.status, status, "{detail}: {seen:?}");
        let challenge = seen.field("www-authenticate").unwrap_or_default().to_owned();
        match status {
            401 => assert!(challenge.starts_with("Bearer realm=\"api\""), "{detail}: {challenge}"),
            _ if detail == "claim_missing" => {
                assert!(challenge.contains("error=\"insufficient_scope\""), "{challenge}");
            }
            _ => assert_eq!(challenge, "", "{detail}"),
        }
        if !detail.is_empty() {
            let line = wait::until("the access line", SOON, || {
                weir.access().into_iter().find(|line| {
                    line["detail"].as_str().is_some_and(|found| found.contains(detail))
                        && line["request_id"].as_str() == seen.field("x-request-id")
                })
            });
            assert_eq!(line["server"], Value::Null);
        }
    }
    let log = weir.access().iter().map(Value::to_string).collect::<String>() + &weir.log();
    assert!(!log.contains(good.rsplit('.').next().unwrap()), "a token is in the log");

    // Keys are rotated: first both are valid, then the new one alone.
    for (issuers, statuses) in [(&[&issuer, &stranger][..], [200, 200]), (&[&stranger], [401, 200])]
    {
        set(issuers);
        let tokens = [issuer.token(claims()), stranger.token(claims())];
        wait::until("the new keys", SOON, || {
            (tokens.each_ref().map(|token| ask(token).status) == statuses).then_some(())
        });
    }
}
