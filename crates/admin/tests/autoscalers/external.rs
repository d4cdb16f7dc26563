//! The external metrics API: who is admitted, and what is answered.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use admin::external_metrics::{Ask, Delegate, Door, start};
use autoscaler::access::{FrontProxy, Review, User, Verdict, Wish};
use model::Certificate;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::{Authority, Wanted, authority, certificate, client, listener};

const METRIC: &str =
    "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/weir_service_wanted_servers";

fn front_proxy(by: &Authority, names: &str) -> Arc<FrontProxy> {
    let config_map = json!({ "data": {
        "requestheader-client-ca-file": by.pem(),
        "requestheader-allowed-names": names,
        "requestheader-username-headers": "[\"X-Remote-User\"]",
        "requestheader-group-headers": "[\"X-Remote-Group\"]",
        "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
    }});
    Arc::new(FrontProxy::read(&config_map).unwrap())
}

/// An API server where `right` is alice's token, and alice may read metrics in `shop` and paths.
fn api_server(is_there: &Arc<Mutex<bool>>) -> Ask {
    let is_there = Arc::clone(is_there);
    Arc::new(move |review| {
        let is_there = *is_there.lock().unwrap();
        Box::pin(async move {
            let denied = || Verdict::Denied("no rule".to_owned());
            if !is_there {
                return Err("connection refused".to_owned());
            }
            Ok(match review {
                Review::Token(token) if token == "right" => {
                    Verdict::User(User { name: "alice".to_owned(), ..User::default() })
                }
                Review::Access(User { name, .. }, Wish::Metric { namespace, .. })
                    if name == "alice" && namespace == "shop" =>
                {
                    Verdict::Allowed
                }
                Review::Access(User { name, .. }, Wish::Path(_)) if name == "alice" => {
                    Verdict::Allowed
                }
                Review::Token(_) | Review::Access(..) => denied(),
            })
        })
    })
}

struct Rig {
    ca: Authority,
    running: admin::scrape::Handle,
    front_proxy: watch::Sender<Option<Arc<FrontProxy>>>,
    is_there: Arc<Mutex<bool>>,
}

impl Rig {
    fn start() -> Rig {
        let ca = authority("ca");
        let is_there = Arc::new(Mutex::new(true));
        let (front_proxy, read) = watch::channel(None);
        let delegate = Delegate { ask: api_server(&is_there), front_proxy: read };
        let door = Door::open(&listener(&ca)).unwrap();
        let running = start(door, Wanted::default().exposed(), delegate).unwrap();
        Rig { ca, running, front_proxy, is_there }
    }

    /// Sends a request on a new connection. Returns the status and the body.
    async fn send(&self, presents: Option<&Certificate>, request: &str) -> (u16, Value) {
        let config = client(&self.ca, presents.cloned(), &[b"http/1.1"]);
        let stream = TcpStream::connect(self.running.address()).await.unwrap();
        let connector = tokio_rustls::TlsConnector::from(config);
        let name = "weir.test".try_into().unwrap();
        let mut stream = connector.connect(name, stream).await.unwrap();
        let request = request.replace('\n', "\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let read = timeout(Duration::from_secs(30), stream.read_to_end(&mut answer));
        // The end may come without a TLS alert.
        let _ = read.await.unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or_else(|_| json!(body)))
    }

    async fn get(&self, presents: Option<&Certificate>, path: &str, fields: &str) -> (u16, Value) {
        let request = format!("GET {path} HTTP/1.1\nhost: weir\nconnection: close\n{fields}\n");
        self.send(presents, &request).await
    }
}

#[tokio::test]
async fn the_front_proxy_names_users_and_the_api_server_decides() {
    let rig = Rig::start();
    let proxies = authority("proxies");
    let proxy = certificate(&proxies, "front-proxy-client");
    let other = certificate(&proxies, "other");
    let stranger = certificate(&authority("strangers"), "front-proxy-client");
    let alice = "x-remote-user: alice\n";
    let code = |answer: (u16, Value)| answer.0;
    assert_eq!(code(rig.get(Some(&proxy), METRIC, alice).await), 401, "not read yet");
    rig.front_proxy.send_replace(Some(front_proxy(&proxies, "[\"front-proxy-client\"]")));
    let (status, list) = rig.get(Some(&proxy), METRIC, alice).await;
    assert_eq!((status, &list["kind"]), (200, &json!("ExternalMetricValueList")), "{list}");
    for (presents, fields, expected) in [
        (Some(&proxy), "x-remote-user: bob\n", 403),
        (Some(&proxy), "", 401),
        (
            Some(&proxy),
            "x-remote-user: system:anonymous\nx-remote-group: system:unauthenticated\n",
            403,
        ),
        (Some(&proxy), "x-remote-user: root\nx-remote-group: system:masters\n", 200),
        (Some(&other), alice, 401),
        (Some(&stranger), alice, 401),
        (Some(&stranger), "x-remote-user: root\nx-remote-group: system:masters\n", 401),
        (None, alice, 401),
        (None, "x-remote-user: root\nx-remote-group: system:masters\n", 401),
    ] {
        let (status, answer) = rig.get(presents, METRIC, fields).await;
        assert_eq!(status, expected, "{fields} {answer}");
        if expected != 200 {
            assert_eq!(answer["kind"], "Status", "{answer}");
            assert_eq!(answer["code"], expected, "{answer}");
        }
    }
    let (_, answer) = rig.get(Some(&proxy), METRIC, "x-remote-user: bob\n").await;
    let message = answer["message"].as_str().unwrap();
    assert!(message.contains("User \"bob\" cannot list resource"), "{message}");
    // The authority is replaced.
    rig.front_proxy.send_replace(Some(front_proxy(&authority("new"), "[]")));
    assert_eq!(code(rig.get(Some(&proxy), METRIC, alice).await), 401);
    rig.front_proxy.send_replace(Some(front_proxy(&proxies, "[]")));
    assert_eq!(code(rig.get(Some(&other), METRIC, alice).await), 200, "any name");
}

#[tokio::test]
async fn tokens_are_reviewed() {
    let rig = Rig::start();
    let bearer = |token: &str| format!("authorization: Bearer {token}\n");
    for (token, expected) in [("right", 200), ("wrong", 401), ("right", 200)] {
        let (status, answer) = rig.get(None, METRIC, &bearer(token)).await;
        assert_eq!(status, expected, "{answer}");
    }
    let elsewhere = METRIC.replace("shop", "other");
    assert_eq!(rig.get(None, &elsewhere, &bearer("right")).await.0, 403);
    // Without the API server, only those are admitted for which its answer is remembered.
    *rig.is_there.lock().unwrap() = false;
    let (status, answer) = rig.get(None, METRIC, &bearer("third")).await;
    assert_eq!(status, 401);
    assert!(!answer.to_string().contains("connection refused"), "no details: {answer}");
    let third = METRIC.replace("shop", "third");
    let (status, answer) = rig.get(None, &third, &bearer("right")).await;
    // 401 if the token's review is remembered no more.
    assert!(matches!(status, 401 | 403), "{answer}");
}

#[tokio::test]
async fn answers_are_those_of_the_api_and_no_input_is_an_error_of_the_server() {
    let rig = Rig::start();
    let right = "authorization: Bearer right\n";
    let query = |selector: &str| format!("{METRIC}?labelSelector={selector}");
    let (_, list) = rig.get(None, &query("service%3Dweb%2Cport+in+(8080)"), right).await;
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1), "{list}");
    assert_eq!(list["items"][0]["value"], "2");
    let (_, list) = rig.get(None, METRIC, right).await;
    assert_eq!(list["items"], json!([]), "some have no number");
    let (_, list) = rig.get(None, &query("service%20notin%20(new%2Cunlimited)"), right).await;
    let names: Vec<_> = list["items"].as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 3, "idle, listings and web: {list}");
    let long = query(&"a".repeat(5_000));
    for (path, expected) in [
        ("/livez", 200),
        ("/healthz", 200),
        ("/readyz", 503),
        ("/apis", 200),
        ("/apis/external.metrics.k8s.io", 200),
        ("/apis/external.metrics.k8s.io/v1beta1", 200),
        ("/metrics", 404),
        ("/%ff", 404),
        (&METRIC.replace("weir_", "other_"), 404),
        (&format!("/{}", "a".repeat(600)), 404),
        (&query("a%20b"), 400),
        (&query("%ff"), 400),
        (&query("a&labelSelector=b"), 400),
        (&long, 400),
        (&format!("{METRIC}?watch=true&resourceVersion=0"), 200),
    ] {
        let (status, answer) = rig.get(None, path, right).await;
        assert_eq!(status, expected, "{path} {answer}");
    }
    assert_eq!(rig.get(None, "/livez", "").await.0, 200, "without authentication");
    assert_eq!(rig.get(None, "/apis", "").await.0, 401);
    assert_eq!(rig.get(None, &format!("/{}", "a".repeat(600)), "").await.0, 404);
    let accept =
        "accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,*/*\n";
    let (_, groups) = rig.get(None, "/apis", &format!("{right}{accept}")).await;
    assert_eq!(groups["kind"], "APIGroupDiscoveryList");
    for request in ["POST", "DELETE", "PATCH", "OPTIONS", "BREW"] {
        let request = format!("{request} {METRIC} HTTP/1.1\nhost: weir\nconnection: close\n\n");
        assert_eq!(rig.send(None, &request).await.0, 405);
    }
    for fields in ["authorization: Bearer \u{ff}\n", "authorization: Basic cm9vdA==\n"] {
        assert_eq!(rig.get(None, METRIC, fields).await.0, 401);
    }
}
