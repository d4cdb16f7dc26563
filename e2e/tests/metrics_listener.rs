//! The listener for metrics and health checks: what it shows, and what it does not.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use e2e::clients::{curl, s_client};
use e2e::{Authority, Scene, Weir, http, run, wait};

const SOON: Duration = Duration::from_secs(10);
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A configuration with a listener for metrics; `keys` are further ones of `[metrics]`.
fn config(scene: &Scene, top: &str, keys: &str) -> String {
    let metrics = format!("[metrics]\naddress = \"{}\"\n{keys}\n", scene.address(2, 9100));
    scene.config(
        &format!("workers = 1\n{top}"),
        &format!("[[route]]\nrespond = \"ready\"\n{metrics}"),
    )
}

#[test]
fn it_answers_scrapers_and_health_checks_and_nothing_else() {
    let Some(scene) = Scene::new("metrics-listener", &[]) else {
        return;
    };
    let address = scene.address(2, 9100);
    let mut weir = Weir::start(&scene, &config(&scene, "drain_delay = \"1h\"", ""));
    let get = |path: &str| http::get(address, path).unwrap();
    let metrics = get("/metrics");
    assert_eq!(metrics.status, 200);
    assert!(metrics.text().contains("\nweir_build_info{"), "{}", metrics.text());
    assert_eq!(["/livez", "/readyz"].map(|path| get(path).status), [200, 200]);
    // A scraper names the balancer as it likes.
    let named = http::get_with(address, "/metrics", &["Host: weir-1.internal:9100"]).unwrap();
    assert_eq!(named.status, 200);
    // Nothing of the admin API is here.
    for path in ["/", "/api/v1/status", "/api/v1/configuration", "/api/v1/reload", "/metrics/x"] {
        assert_eq!(get(path).status, 404, "{path}");
    }
    let mut connection = http::Connection::open(address).unwrap();
    for (method, path) in [("POST", "/metrics"), ("POST", "/readyz"), ("DELETE", "/livez")] {
        assert_eq!(
            connection.request(method, path, &[], b"").unwrap().status,
            405,
            "{method} {path}"
        );
    }
    assert_eq!(connection.request("POST", "/api/v1/reload", &[], b"{}").unwrap().status, 404);

    weir.begin_to_stop();
    wait::until("the announcement", SOON, || (get("/readyz").status == 503).then_some(()));
    assert_eq!(["/livez", "/metrics"].map(|path| get(path).status), [200, 200]);
    weir.begin_to_stop();
    weir.wait(SOON);
}

#[test]
fn a_token_guards_metrics_and_certificates_are_renewed() {
    let Some(scene) = Scene::new("metrics-tls", &["curl"]) else {
        return;
    };
    let ca = Authority::new(&scene, "ca");
    let (first, second) =
        (ca.issue("first", &["m.example.com"]), ca.issue("second", &["m.example.com"]));
    let (chain, key) = (scene.folder().join("used.pem"), scene.folder().join("used.key"));
    let install = |pair: &e2e::Pair| {
        std::fs::copy(&pair.key, &key).unwrap();
        std::fs::copy(&pair.chain, &chain).unwrap();
    };
    install(&first);
    let token = scene.file("metrics.token", TOKEN);
    std::fs::set_permissions(&token, Permissions::from_mode(0o600)).unwrap();
    let keys = format!(
        "token_file = \"{}\"\ntls = {{ certificates = [{{ chain = \"{}\", key = \"{}\" }}] }}",
        token.display(),
        chain.display(),
        key.display()
    );
    let weir = Weir::start(&scene, &config(&scene, "", &keys));
    let address = scene.address(2, 9100);
    let root = ca.pem().display().to_string();
    let status = |path: &str, more: &[&str]| -> u16 {
        let url = format!("https://m.example.com:{}{path}", address.port());
        let to = format!("m.example.com:{}:{}", address.port(), address.ip());
        let words =
            ["--cacert", &root, "--resolve", &to, "-o", "/dev/null", "-w", "%{http_code}", &url];
        let seen = curl(&scene, &[&words[..], more].concat());
        seen.stdout.trim().parse().unwrap_or_else(|e| panic!("{e}: {seen:?}"))
    };
    let bearer = |token: &str| format!("Authorization: Bearer {token}");
    assert_eq!(status("/metrics", &[]), 401);
    assert_eq!(status("/metrics", &["-H", &bearer("0123456789abcdef0123456789abcdee")]), 401);
    assert_eq!(status("/metrics", &["-H", &bearer(TOKEN)]), 200);
    // Health checks carry no token.
    assert_eq!(["/livez", "/readyz"].map(|path| status(path, &[])), [200, 200]);
    // Clear text is no request here.
    assert!(http::get(address, "/livez").is_err());

    let ask = "GET /livez HTTP/1.1\r\nHost: m.example.com\r\nConnection: close\r\n\r\n";
    // With its certificate.
    let shown = || {
        let seen = s_client(&scene, address, &["-servername", "m.example.com"], ask).stdout;
        let (_, rest) = seen.split_once("-----BEGIN CERTIFICATE-----").expect("a certificate");
        rest.split_once("-----END").expect("its end").0.to_owned()
    };
    let before = shown();
    install(&second);
    let receipt = run(&scene, &["reload", "--admin", &scene.admin().to_string()]);
    assert_eq!(receipt.code, Some(0), "{receipt:?}");
    wait::until("the new certificate", SOON, || (shown() != before).then_some(()));
    assert_eq!(status("/livez", &[]), 200);
    drop(weir);
}

#[test]
fn an_upgrade_hands_its_socket_over() {
    let Some(scene) = Scene::new("metrics-upgrade", &[]) else {
        return;
    };
    let address = scene.address(2, 9100);
    let mut weir = Weir::start(&scene, &config(&scene, "", ""));
    let (_, successor) = weir.upgrade(SOON);
    assert_eq!(http::get(address, "/readyz").unwrap().status, 200);
    assert!(successor.is_running());
}
