//! Tokens whose keys are fetched from their issuer (`keys_url`): rotation, an issuer that fails, and one that
//! cannot be trusted.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use e2e::http::Connection;
use e2e::rogue::Rogue;
use e2e::{App, Authority, Issuer, Nginx, Scene, Weir, http, key_set, server_tables, wait};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(20);

/// A server of key sets.
struct Endpoint {
    rogue: Rogue,
    /// The whole response.
    answer: Arc<Mutex<String>>,
    asked: Arc<AtomicUsize>,
    /// It answers only while this is not set.
    holds: Arc<AtomicBool>,
}

impl Endpoint {
    fn start(scene: &Scene, host: u8, answer: String) -> Endpoint {
        let answer = Arc::new(Mutex::new(answer));
        let (asked, holds) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (says, counts, waits) = (Arc::clone(&answer), Arc::clone(&asked), Arc::clone(&holds));
        let rogue = Rogue::start(scene.address(host, 8080), move |peer| {
            while let Some(head) = peer.head() {
                assert!(head.starts_with("GET /keys?a=b HTTP/1.1\r\n"), "{head}");
                assert!(!head.to_lowercase().contains("authorization"), "{head}");
                counts.fetch_add(1, Ordering::SeqCst);
                wait::until("the word to answer", SOON, || {
                    (!waits.load(Ordering::SeqCst)).then_some(())
                });
                let answer = says.lock().unwrap().clone();
                peer.say(answer);
            }
        });
        Endpoint { rogue, answer, asked, holds }
    }

    fn says(&self, answer: String) {
        *self.answer.lock().unwrap() = answer;
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn url(&self) -> String {
        format!("http://{}/keys?a=b", self.rogue.address())
    }
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn rest(keys: &str, app: &App) -> String {
    format!(
        "[[route]]\nauthenticate = \"api\"\nservice = \"app\"\n\
         [authentication.api.jwt]\n{keys}\naudience = \"api\"\nclaim_headers = {{ X-User = \"sub\" }}\n\
         [service.app]\n{}",
        server_tables("app", [app.address()]),
    )
}

fn bearer(issuer: &Issuer) -> String {
    format!("Authorization: Bearer {}", issuer.token(json!({ "sub": "ann" })))
}

#[test]
fn a_new_key_is_fetched_when_its_first_token_comes() {
    let Some(scene) = Scene::new("key-sets", &["python3", "openssl"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let [one, two, three] = ["one", "two", "three"].map(|kid| Issuer::new(&scene, kid));
    let endpoint = Endpoint::start(&scene, 12, ok(&key_set([&one])));
    let keys = format!("keys_url = \"{}\"", endpoint.url());
    let weir = Weir::start(&scene, &scene.config("workers = 2", &rest(&keys, &app)));
    let status = |field: &str| http::get_with(weir.front(), "/", &[field]).unwrap().status;
    let [first, second, unknown] = [&one, &two, &three].map(bearer);
    // It is there before the first request.
    assert_eq!((status(&first), endpoint.asked()), (200, 1));

    // The issuer begins to use another key without a notice. Requests wait for the one fetch that this
    // makes; one whose client leaves does not.
    endpoint.holds.store(true, Ordering::SeqCst);
    endpoint.says(ok(&key_set([&one, &two])));
    let send = |field: &str| {
        let mut client = Connection::open(weir.front()).unwrap();
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n").as_bytes()).unwrap();
        client
    };
    let waiting: Vec<_> = (0..10).map(|_| send(&second)).collect();
    wait::until("the second fetch", SOON, || (endpoint.asked() == 2).then_some(()));
    drop(send(&second));
    let left = |line: &Value| line["cause"] == "client_closed" || line["cause"] == "client_reset";
    wait::until("its access line", SOON, || weir.access().iter().any(left).then_some(()));
    assert_eq!(status(&first), 200, "who has a known key does not wait");
    endpoint.holds.store(false, Ordering::SeqCst);
    for mut client in waiting {
        assert_eq!(client.response(false).unwrap().status, 200);
    }
    assert_eq!(endpoint.asked(), 2);

    // Made-up keys cause no more fetches for half a minute.
    assert!((0..20).all(|_| status(&unknown) == 401));
    assert_eq!(endpoint.asked(), 2);
    let lines = wait::until("the access lines", SOON, || {
        let lines = weir.access();
        (lines.iter().filter(|line| line["status"] == 401).count() == 20).then_some(lines)
    });
    let denied = lines.iter().filter(|line| line["status"] == 401);
    assert!(denied.into_iter().all(|line| line["detail"] == "token_unknown_key"));
    let fetches = |result: &str| {
        let result = format!("result=\"{result}\"");
        weir.metric("weir_key_set_fetches_total", &["authentication=\"api\"", &result])
    };
    assert_eq!([fetches("fetched"), fetches("failed")].map(|count| count as u64), [2, 0]);
    let keys = weir.metric("weir_key_set_keys", &["authentication=\"api\""]);
    assert_eq!(keys as u64, 2);

    // A reload keeps the keys, and so does the issuer's end.
    let Endpoint { rogue, asked, .. } = endpoint;
    let keys = format!("keys_url = \"http://{}/keys?a=b\"", rogue.address());
    let from = weir.log().len();
    scene.file("weir.toml", scene.config("workers = 2", &(rest(&keys, &app) + "weight = 2\n")));
    weir.hang_up();
    weir.wait_for_log_from(from, &["reloaded"], SOON);
    assert_eq!((status(&second), asked.load(Ordering::SeqCst)), (200, 2));
    drop(rogue);
    assert_eq!([&first, &second, &unknown].map(|field| status(field)), [200, 200, 401]);
}

#[test]
fn without_any_keys_requests_are_refused_until_there_are_some() {
    let Some(scene) = Scene::new("key-sets-none", &["python3", "openssl"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let one = Issuer::new(&scene, "one");
    let error = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 6\r\n\r\nsecret";
    let endpoint = Endpoint::start(&scene, 12, error.to_owned());
    let keys = format!("keys_url = \"{}\"", endpoint.url());
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest(&keys, &app)));
    let ask = |fields: &[&str]| http::get_with(weir.front(), "/", fields).unwrap();
    let token = bearer(&one);
    let seen = ask(&[&token]);
    assert_eq!((seen.status, seen.field("retry-after")), (503, Some("1")));
    assert!(seen.text().contains("authentication_unavailable"), "{}", seen.text());
    assert_eq!(ask(&[]).status, 401, "without a token no keys are needed");
    let line = wait::until("the access line", SOON, || weir.access().first().cloned());
    assert_eq!(
        (&line["cause"], &line["detail"]),
        (&json!("authentication_unavailable"), &json!("no_keys"))
    );
    let log = weir.log();
    assert!(log.contains("a key set could not be fetched") && log.contains("500"), "{log}");
    assert!(!log.contains("secret"), "{log}");

    // It is asked again without any request.
    endpoint.says(ok(&key_set([&one])));
    let keys = || weir.metric("weir_key_set_keys", &["authentication=\"api\""]) as u64;
    wait::until("the keys", SOON, || (keys() == 1).then_some(()));
    assert_eq!(ask(&[&token]).status, 200);
    assert_eq!(app.stat("requests"), 1);
}

#[test]
fn the_issuers_certificate_is_verified() {
    let Some(scene) = Scene::new("key-sets-tls", &["python3", "openssl", "nginx"]) else {
        return;
    };
    let app = App::start(&scene, 11, &[]);
    let one = Issuer::new(&scene, "one");
    let authority = Authority::new(&scene, "ca");
    let address = scene.address(12, 8443);
    let pair = authority.issue("idp", &[&address.ip().to_string()]);
    let extra = format!(
        "listen {address} ssl; ssl_certificate {}; ssl_certificate_key {};",
        pair.chain.display(),
        pair.key.display()
    );
    let _nginx = Nginx::start(&scene, 12, &extra);
    scene.file("jwks.json", key_set([&one]));
    let url = format!("keys_url = \"https://{address}/files/jwks.json\"");
    let weir = Weir::start(&scene, &scene.config("workers = 1", &rest(&url, &app)));
    let token = bearer(&one);
    let status = || http::get_with(weir.front(), "/", &[&token]).unwrap().status;
    assert_eq!(status(), 503);
    let log = weir.log();
    assert!(log.contains("name the CA"), "{log}");

    let from = weir.log().len();
    let trusted = format!("{url}\nkeys_ca = \"{}\"", authority.pem().display());
    scene.file("weir.toml", scene.config("workers = 1", &rest(&trusted, &app)));
    weir.hang_up();
    weir.wait_for_log_from(from, &["reloaded"], SOON);
    // The reload has waited for it.
    assert_eq!(status(), 200);

    // With other authorities in the same file, the issuer is not trusted any more, but still the same.
    let from = weir.log().len();
    std::fs::copy(Authority::new(&scene, "other-ca").pem(), authority.pem()).unwrap();
    weir.wait_for_log_from(from, &["reloaded"], SOON);
    weir.wait_for_log_from(from, &["name the CA", "the keys fetched before stay in use"], SOON);
    assert_eq!(status(), 200);
}
