//! TLS on both sides: what openssl, curl, ab and h2load see of it before Weir, and what nginx
//! behind it; certificates that change under load; TLS passed through by server name.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use e2e::clients::{H2load, client, curl, python_client, s_client, start};
use e2e::{Authority, Finished, Nginx, Pair, Scene, Weir, http, run, server_tables, wait};
use serde_json::Value;

const SOON: Duration = Duration::from_secs(10);
const ASK: &str = "GET /status HTTP/1.1\r\nHost: a.example.com\r\nConnection: close\r\n\r\n";

/// The lines of `tls = { … }` with these certificates and what else stands there.
fn tls(pairs: &[&Pair], more: &str) -> String {
    let tables: Vec<String> = pairs.iter().map(|pair| pair.table()).collect();
    format!("tls = {{ certificates = [{}]{more} }}\n", tables.join(", "))
}

/// A configuration whose public listener has the lines `listener` and whose one service has
/// `service` and `servers`.
fn config(scene: &Scene, listener: &str, service: &str, servers: &[SocketAddr]) -> String {
    let servers = server_tables("app", servers);
    let routes = "[[route]]\nservice = \"app\"\n[service.app]\n";
    scene.config("workers = 2", &format!("{listener}\n{routes}{service}\n{servers}"))
}

/// The common name of the certificate that is shown.
fn shown(finished: &Finished) -> String {
    let subject = finished.stdout.lines().find_map(|line| line.strip_prefix("subject="));
    let name = subject.and_then(|subject| subject.split("CN = ").nth(1));
    name.unwrap_or_else(|| panic!("no certificate: {finished:?}")).to_owned()
}

/// The last access line with this cause.
fn wait_for_cause(weir: &Weir, cause: &str) -> Value {
    wait::until(&format!("an access line with {cause}"), SOON, || {
        weir.access().into_iter().rev().find(|line| line["cause"] == cause)
    })
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[test]
fn a_certificate_whose_renewal_is_overdue_is_found_until_it_is_renewed() {
    let Some(scene) = Scene::new("tls-expiring", &["nginx"]) else {
        return;
    };
    let nginx = Nginx::start(&scene, 11, "");
    let ca = Authority::new(&scene, "ca");
    let names = ["a.example.com"];
    let old = ca.issue_ending("a", &names, Duration::from_hours(10 * 24));
    let listener = format!("{}\n[doctor]\ninterval = \"1s\"", tls(&[&old], ""));
    let weir = Weir::start(&scene, &config(&scene, &listener, "", &[nginx.address()]));
    let finding = |wanted: bool| {
        let findings = weir.api("/api/v1/findings");
        let is_it =
            |one: &&Value| one["rule"] == "certificate_expiring" && one["is_present"] == true;
        let found = findings["findings"].as_array().and_then(|all| all.iter().find(is_it).cloned());
        (found.is_some() == wanted).then_some(found)
    };
    let found = wait::until("the finding", SOON, || finding(true)).unwrap();
    assert_eq!(found["severity"], "warning", "{found:#}");
    let what = found["what"].as_str().unwrap();
    assert!(
        what.starts_with("The certificate for a.example.com on listener public ends on "),
        "{what}"
    );
    ca.issue("a", &names);
    wait::until("the end of the finding", SOON, || finding(false));
}

#[test]
fn the_server_name_chooses_the_certificate() {
    let Some(scene) = Scene::new("tls-sni", &["nginx", "openssl"]) else {
        return;
    };
    let nginx = Nginx::start(&scene, 11, "");
    let ca = Authority::new(&scene, "ca");
    let first = ca.issue("first", &["first.example.com"]);
    let a = ca.issue("a", &["a.example.com"]);
    let wild = ca.issue("wild", &["*.b.example.com"]);
    let listener = tls(&[&first, &a, &wild], "");
    let weir = Weir::start(&scene, &config(&scene, &listener, "", &[nginx.address()]));
    for (asked, expected) in [
        (&["-servername", "a.example.com"][..], "a.example.com"),
        (&["-servername", "A.Example.COM"], "a.example.com"),
        (&["-servername", "x.b.example.com"], "*.b.example.com"),
        (&["-servername", "x.y.b.example.com"], "first.example.com"),
        (&["-servername", "b.example.com"], "first.example.com"),
        (&["-servername", "other.example.org"], "first.example.com"),
        (&["-noservername"], "first.example.com"),
    ] {
        for version in ["-tls1_2", "-tls1_3"] {
            let seen = s_client(&scene, weir.front(), &[asked, &[version]].concat(), ASK);
            assert_eq!(shown(&seen), expected, "{asked:?} {version}");
            assert!(seen.stdout.contains("HTTP/1.1 200 OK"), "{seen:?}");
            // The end is said, not cut off (RFC 8446 section 6.1).
            assert!(!seen.stderr.contains("unexpected eof"), "{seen:?}");
        }
    }
    // Verified, as clients do.
    let ca = path(ca.pem());
    let verify = ["-servername", "x.b.example.com", "-verify_return_error", "-CAfile", &ca];
    let seen = s_client(&scene, weir.front(), &verify, ASK);
    assert!(seen.stdout.contains("Verification: OK"), "{seen:?}");
}

#[test]
fn a_connection_to_one_host_carries_no_requests_for_another() {
    let Some(scene) = Scene::new("tls-hosts", &["nginx", "openssl"]) else {
        return;
    };
    let nginx = Nginx::start(&scene, 11, "");
    let ca = Authority::new(&scene, "ca");
    let all = ca.issue("all", &["a.example.com", "*.example.com", "example.org"]);
    let hosts = "hosts = [\"a.example.com\", \"*.example.com\", \"c.example.com\"]\n";
    let listener = format!("{hosts}{}", tls(&[&all], ""));
    let weir = Weir::start(&scene, &config(&scene, &listener, "", &[nginx.address()]));
    for (server_name, host, status) in [
        (Some("a.example.com"), "a.example.com", "200"),
        (Some("A.example.com"), "A.EXAMPLE.com:443", "200"),
        (Some("x.example.com"), "y.example.com", "200"),
        (Some("x.example.com"), "a.example.com", "421"),
        (Some("a.example.com"), "x.example.com", "421"),
        (Some("c.example.com"), "a.example.com", "421"),
        (None, "a.example.com", "421"),
        (Some("a.example.com"), "example.org", "404"),
        (Some("example.org"), "a.example.com", "421"),
    ] {
        let name = server_name.map_or(vec!["-noservername"], |name| vec!["-servername", name]);
        let ask = format!("GET /status HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let seen = s_client(&scene, weir.front(), &name, &ask);
        let expected = format!("HTTP/1.1 {status} ");
        assert!(seen.stdout.contains(&expected), "{server_name:?} {host}: {seen:?}");
    }
    let line = wait::until("the access line with both names", SOON, || {
        let is_it = |line: &Value| line["tls"]["server_name"] == "example.org";
        weir.access().into_iter().find(is_it)
    });
    assert_eq!(line["cause"], "misdirected_request");
    assert_eq!((&line["fault"], &line["host"]), (&"client".into(), &"a.example.com".into()));
    assert_eq!(wait_for_cause(&weir, "destination_not_found")["host"], "example.org");
}

#[test]
fn certificates_of_a_directory_come_and_go() {
    let Some(scene) = Scene::new("tls-directory", &["nginx", "openssl"]) else {
        return;
    };
    let nginx = Nginx::start(&scene, 11, "");
    let ca = Authority::new(&scene, "ca");
    let folder = scene.folder().join("certs");
    std::fs::create_dir_all(&folder).unwrap();
    let copy = |from: &Path, to: &str| {
        std::fs::copy(from, folder.join(to)).unwrap();
    };
    let a = ca.issue("a", &["a.example.com"]);
    copy(&a.chain, "a.pem");
    copy(&a.key, "a.key");
    // As certbot has it: links into another folder.
    let b = ca.issue("b", &["b.example.com"]);
    std::fs::create_dir_all(folder.join("b.example.com")).unwrap();
    for (file, name) in [(&b.chain, "fullchain.pem"), (&b.key, "privkey.pem")] {
        std::os::unix::fs::symlink(file, folder.join("b.example.com").join(name)).unwrap();
    }
    std::fs::write(folder.join("README"), "not a certificate").unwrap();
    let listener = format!(
        "tls = {{ certificate_directory = \"{}\", unknown_names = \"refuse\" }}\n",
        folder.display()
    );
    let weir = Weir::start(&scene, &config(&scene, &listener, "", &[nginx.address()]));
    let seen = |name: &str| s_client(&scene, weir.front(), &["-servername", name], ASK);
    assert_eq!(shown(&seen("a.example.com")), "a.example.com");
    assert_eq!(shown(&seen("b.example.com")), "b.example.com");
    let is_refused = |finished: &Finished| !finished.stdout.contains("subject=");
    assert!(is_refused(&seen("c.example.com")));
    assert!(is_refused(&s_client(&scene, weir.front(), &["-noservername"], ASK)));
    let line = wait_for_cause(&weir, "client_tls_error");
    assert_eq!(line["fault"], "client", "{line}");

    // Chain and key in one file; written beside and renamed.
    let c = ca.issue("c", &["c.example.com"]);
    let both = [&c.chain, &c.key].map(|file| std::fs::read_to_string(file).unwrap()).concat();
    std::fs::write(folder.join(".new"), both).unwrap();
    std::fs::rename(folder.join(".new"), folder.join("c.pem")).unwrap();
    wait::until("the new certificate", SOON, || {
        (!is_refused(&seen("c.example.com"))).then_some(())
    });
    std::fs::remove_file(folder.join("a.pem")).unwrap();
    wait::until("the end of another", SOON, || is_refused(&seen("a.example.com")).then_some(()));

    // A folder as Kubernetes makes it. Its certificate has expired, and is used for want of another.
    let old = ca.issue_expired("old", &["old.example.com"]);
    std::fs::create_dir_all(folder.join("secret")).unwrap();
    copy(&old.key, "secret/tls.key");
    copy(&old.chain, "secret/tls.crt");
    wait::until("an expired certificate", SOON, || {
        (!is_refused(&seen("old.example.com"))).then_some(())
    });

    // One that cannot be used changes nothing; not even a file that has just been begun.
    let from = weir.log().len();
    std::fs::write(folder.join("c.pem"), "-----BEGIN").unwrap();
    weir.wait_for_log_from(from, &["no certificate in", "c.pem"], SOON);
    assert_eq!(shown(&seen("c.example.com")), "c.example.com");
    copy(&c.chain, "c.pem");
    copy(&c.key, "c.key");
    let from = weir.log().len();
    copy(&a.chain, "d.pem");
    weir.wait_for_log_from(from, &["no key for", "d.pem"], SOON);
    assert_eq!(shown(&seen("c.example.com")), "c.example.com");
    let checked = run(&scene, &["check", &path(&scene.folder().join("weir.toml"))]);
    assert_eq!(checked.code, Some(2), "{checked:?}");
    assert!(checked.stderr.contains("d-key.pem"), "{checked:?}");
}

#[test]
fn versions_and_protocols_are_agreed_on() {
    let Some(scene) = Scene::new("tls-versions", &["nginx", "openssl", "curl"]) else {
        return;
    };
    let nginx = Nginx::start(&scene, 11, "");
    let pair = Authority::new(&scene, "ca").issue("a", &["a.example.com"]);
    let [only_13, without_http2] = [8443, 8444].map(|port| scene.address(1, port));
    let more = |address: SocketAddr, rest: String| {
        format!("[[listener]]\naddress = \"{address}\"\n{rest}\n")
    };
    let text = config(&scene, &tls(&[&pair], ""), "", &[nginx.address()])
        + &more(only_13, tls(&[&pair], ", version_min = \"1.3\", hsts = \"365d\""))
        + &more(without_http2, tls(&[&pair], "") + "http2 = false");
    let weir = Weir::start(&scene, &text);

    let seen = s_client(&scene, only_13, &["-tls1_2"], ASK);
    assert!(!seen.stdout.contains("HTTP/1.1"), "{seen:?}");
    assert!(seen.stderr.contains("alert protocol version"), "{seen:?}");
    let line = wait_for_cause(&weir, "client_tls_error");
    assert!(line["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{line}");
    let seen = s_client(&scene, only_13, &["-tls1_3"], ASK);
    assert!(seen.stdout.contains("Strict-Transport-Security: max-age=31536000\r\n"), "{seen:?}");
    for old in ["-tls1", "-tls1_1"] {
        let seen = s_client(&scene, weir.front(), &[old, "-cipher", "ALL:@SECLEVEL=0"], ASK);
        assert!(!seen.stdout.contains("HTTP/1.1 200"), "{old}: {seen:?}");
    }

    for (address, offered, agreed) in [
        (weir.front(), "h2,http/1.1", "ALPN protocol: h2"),
        (weir.front(), "http/1.1", "ALPN protocol: http/1.1"),
        (without_http2, "h2,http/1.1", "ALPN protocol: http/1.1"),
    ] {
        let seen = client_hello(&scene, address, &["-alpn", offered]);
        assert!(seen.stdout.contains(agreed), "{offered}: {seen:?}");
    }
    let seen = client_hello(&scene, weir.front(), &["-alpn", "gopher"]);
    assert!(seen.stderr.contains("no application protocol"), "{seen:?}");
    let url = format!("https://{}/status", weir.front());
    for (words, version) in
        [(&["--http2"][..], "2"), (&["--http1.1"], "1.1"), (&["--no-alpn"], "1.1")]
    {
        let format = ["-k", "-o", "/dev/null", "-w", "%{http_version} %{response_code}"];
        let seen = curl(&scene, &[words, &format, &[&url]].concat());
        assert_eq!(seen.stdout, format!("{version} 200"), "{words:?} {seen:?}");
    }
}

/// A handshake and the end.
fn client_hello(scene: &Scene, address: SocketAddr, words: &[&str]) -> Finished {
    let address = address.to_string();
    client(scene, "openssl", &[&["s_client", "-connect", &address][..], words].concat(), 20)
}

#[test]
fn sessions_are_resumed_by_whatever_worker() {
    let Some(scene) = Scene::new("tls-resumption", &["nginx", "openssl"]) else {
        return;
    };
    let nginx = Nginx::start(&scene, 11, "");
    let pair = Authority::new(&scene, "ca").issue("a", &["a.example.com"]);
    let text = config(&scene, &tls(&[&pair], ""), "", &[nginx.address()]);
    let weir = Weir::start(&scene, &text.replace("workers = 2", "workers = 4"));
    for version in ["-tls1_2", "-tls1_3"] {
        let session = path(&scene.folder().join(format!("session{version}")));
        let first = s_client(&scene, weir.front(), &[version, "-sess_out", &session], ASK);
        assert!(first.stdout.contains("\nNew, "), "{first:?}");
        for _ in 0..8 {
            let again = s_client(&scene, weir.front(), &[version, "-sess_in", &session], ASK);
            assert!(again.stdout.contains("\nReused, "), "{version}: {again:?}");
            assert!(again.stdout.contains("HTTP/1.1 200"), "{version}: {again:?}");
        }
    }
}

#[test]
fn a_connection_that_was_silent_for_a_while_goes_on() {
    let Some(scene) = Scene::new("tls-silence", &["nginx", e2e::PYTHON_PEERS]) else {
        return;
    };
    let nginx = Nginx::start(&scene, 11, "");
    let pair = Authority::new(&scene, "ca").issue("a", &["a.example.com"]);
    let weir = Weir::start(&scene, &config(&scene, &tls(&[&pair], ""), "", &[nginx.address()]));
    let (front, seconds) = (weir.front().to_string(), http::SILENCE.as_secs_f64().to_string());
    let seen = python_client(&scene, "clients/pauses.py", &[&front, &seconds, "3"]);
    assert_eq!(seen.stdout.split_whitespace().collect::<Vec<_>>(), ["200"; 3], "{seen:?}");
}

#[test]
fn client_certificates_are_asked_for() {
    let Some(scene) = Scene::new("tls-clients", &["nginx", "curl"]) else {
        return;
    };
    let nginx = Nginx::start(&scene, 11, "");
    let pair = Authority::new(&scene, "ca").issue("a", &["a.example.com"]);
    let clients = Authority::new(&scene, "clients");
    let known = clients.issue("known", &["someone"]);
    let expired = clients.issue_expired("expired", &["someone"]);
    let unknown = Authority::new(&scene, "others").issue("unknown", &["someone"]);
    let optional = scene.address(1, 8443);
    let asks = |required: bool| {
        let ca = clients.ca();
        tls(&[&pair], &format!(", client_certificates = {{ {ca}, required = {required} }}"))
    };
    let text = config(&scene, &asks(true), "", &[nginx.address()])
        + &format!("[[listener]]\naddress = \"{optional}\"\n{}", asks(false));
    let weir = Weir::start(&scene, &text);
    let ask = |address: SocketAddr, shows: Option<&Pair>, version: &[&str]| {
        let url = format!("https://{address}/status");
        let shown = shows.map(|pair| [path(&pair.chain), path(&pair.key)]);
        let mut words = [version, &["-k", "-w", "%{response_code}", "-o", "/dev/null"]].concat();
        if let Some([chain, key]) = &shown {
            words.extend(["--cert", chain, "--key", key]);
        }
        words.push(&url);
        let seen = curl(&scene, &words);
        (seen.code == Some(0)).then_some(seen.stdout)
    };
    for version in [&["--tls-max", "1.2"][..], &["--tlsv1.3"]] {
        let ok = || Some("200".to_owned());
        assert_eq!(ask(weir.front(), Some(&known), version), ok(), "{version:?}");
        assert_eq!(ask(weir.front(), None, version), None, "{version:?}");
        assert_eq!(ask(weir.front(), Some(&unknown), version), None, "{version:?}");
        assert_eq!(ask(weir.front(), Some(&expired), version), None, "{version:?}");
        assert_eq!(ask(optional, Some(&known), version), ok(), "{version:?}");
        assert_eq!(ask(optional, None, version), ok(), "{version:?}");
        assert_eq!(ask(optional, Some(&unknown), version), None, "{version:?}");
    }
    let line = wait_for_cause(&weir, "client_tls_error");
    assert!(line["detail"].as_str().is_some_and(|detail| detail.contains("certificate")), "{line}");
}

#[test]
fn a_check_refuses_what_clients_would_refuse() {
    let Some(scene) = Scene::new("tls-check", &[]) else {
        return;
    };
    let ca = Authority::new(&scene, "ca");
    let good = ca.issue("good", &["a.example.com"]);
    let expired = ca.issue_expired("expired", &["old.example.com"]);
    let crossed = Pair { key: ca.issue("other", &["b.example.com"]).key, ..good.clone() };
    let check = |pair: &Pair| {
        let text = config(&scene, &tls(&[pair], ""), "", &[scene.address(11, 8080)]);
        let file = path(&scene.file("checked.toml", text));
        run(&scene, &["check", &file])
    };
    let seen = check(&good);
    assert_eq!(seen.code, Some(0), "{seen:?}");
    for (pair, why) in [
        (&expired, "the certificate of old.example.com has expired"),
        (&crossed, "does not belong to the certificate of a.example.com"),
    ] {
        let seen = check(pair);
        assert_eq!(seen.code, Some(2), "{seen:?}");
        assert!(seen.stderr.contains(why) || seen.stdout.contains(why), "{seen:?}");
    }
}

#[test]
fn clear_text_on_a_tls_port_is_told_so() {
    let Some(scene) = Scene::new("tls-clear", &["nginx"]) else {
        return;
    };
    let nginx = Nginx::start(&scene, 11, "");
    let pair = Authority::new(&scene, "ca").issue("a", &["a.example.com"]);
    let weir = Weir::start(&scene, &config(&scene, &tls(&[&pair], ""), "", &[nginx.address()]));
    let answer = http::get(weir.front(), "/status").unwrap();
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("clear text where TLS is spoken"), "{}", answer.text());
    let line = wait_for_cause(&weir, "http_request_error");
    assert_eq!(line["status"], 400, "{line}");
    // Neither TLS nor HTTP, and nothing at all.
    let _ = http::raw(weir.front(), &[0x80; 300]).unwrap();
    assert_eq!(http::raw(weir.front(), b"").unwrap(), b"");
    let line = wait_for_cause(&weir, "client_tls_error");
    assert!(line["status"].is_null(), "{line}");
}

#[test]
fn memory_stays_bounded_when_clients_read_slowly() {
    let Some(scene) = Scene::alone("tls-memory", &["nginx", "curl"]) else {
        return;
    };
    let nginx = Nginx::start(&scene, 11, "");
    std::fs::File::create(scene.folder().join("huge")).unwrap().set_len(400_000_000).unwrap();
    let pair = Authority::new(&scene, "ca").issue("a", &["a.example.com"]);
    let text = config(&scene, &tls(&[&pair], ""), "", &[nginx.address()]);
    let mut weir = Weir::start(&scene, &text);
    let before = weir.process().resident_bytes();
    let url = format!("https://{}/files/huge", weir.front());
    let words = ["-k", "-s", "-o", "/dev/null", "--limit-rate", "10k"];
    let slow: Vec<_> = ["--http1.1", "--http2"]
        .repeat(6)
        .into_iter()
        .map(|version| start(&scene, "curl", &[&words[..], &[version, &url]].concat()))
        .collect();
    wait::until("all to be served", SOON, || {
        (weir.metric("weir_server_in_flight", &[]) >= 12.0).then_some(())
    });
    wait::measure_for(Duration::from_secs(2));
    let grown = weir.process().resident_bytes().saturating_sub(before);
    println!("{grown} bytes more for 12 slow clients");
    assert!(grown < 24_000_000, "{grown} bytes more for 12 slow clients");
    drop(slow);
}

#[test]
fn certificates_change_under_load() {
    let needs = ["nginx", "openssl", "h2load", "ab", "wrk"];
    let Some(scene) = Scene::alone("tls-swap", &needs) else {
        return;
    };
    let nginx = Nginx::start(&scene, 11, "");
    let ca = Authority::new(&scene, "ca");
    let pair = ca.issue("public", &["a-0.example.com"]);
    let weir = Weir::start(&scene, &config(&scene, &tls(&[&pair], ""), "", &[nginx.address()]));
    let url = format!("https://{}/status", weir.front());
    let h2load_words = ["-D", "5", "-c", "10", "-m", "10", "-t", "1", &url];
    let mut kept = start(&scene, "h2load", &h2load_words);
    let wrk_words = ["-t", "1", "-c", "8", "-d", "5s", &url];
    let mut text = start(&scene, "wrk", &wrk_words);
    let mut fresh = start(&scene, "ab", &["-q", "-c", "4", "-t", "5", "-n", "1000000", &url]);
    for round in 1..=3 {
        let name = format!("a-{round}.example.com");
        wait::measure_for(Duration::from_millis(600));
        // Written over in place, as certbot's hooks and cp do; the watcher sees it.
        ca.issue("public", &[&name]);
        wait::until("the new certificate", SOON, || {
            let seen = client_hello(&scene, weir.front(), &[]);
            (shown(&seen) == name).then_some(())
        });
    }
    let bound = Duration::from_secs(30);
    let seen = H2load::read(&kept.wait(bound).stdout);
    assert!(seen.failed == 0 && seen.succeeded > 500, "{}", seen.text);
    let seen = text.wait(bound).stdout;
    assert!(!seen.contains("Socket errors") && !seen.contains("Non-2xx"), "{seen}");
    let seen = fresh.wait(bound).stdout;
    let failed = seen.lines().find_map(|line| line.strip_prefix("Failed requests:"));
    assert_eq!(failed.map(str::trim), Some("0"), "{seen}");
    assert!(!seen.contains("Non-2xx"), "{seen}");
    let refused = weir.metric("weir_reloads_total", &["result=\"refused\""]);
    println!("reloads refused in between (a certificate without its key yet): {refused}");
}
