//! Certificates by ACME while the certificate authority does not answer: listeners open all the same,
//! and the state of things is visible. `prove_acme` has an authority that issues.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use e2e::clients::s_client;
use e2e::{Authority, Scene, Weir, http, run, wait};

const SOON: Duration = Duration::from_secs(10);
const ASK: &str = "GET / HTTP/1.1\r\nHost: a.example.com\r\nConnection: close\r\n\r\n";

/// A configuration with an authority where nothing listens, and a second listener for TLS.
fn config(scene: &Scene, more: &str) -> String {
    let ca = Authority::new(scene, "ca");
    let directory = scene.address(20, 14000);
    let state = scene.folder().join("state/below");
    let secure = scene.address(1, 8443);
    scene.config(
        "workers = 1",
        &format!(
            "[[listener]]\nname = \"secure\"\naddress = \"{secure}\"\n\
             tls = {{ certificates = [{{ acme = [\"a.example.com\", \"b.example.com\"] }}] }}\n\
             [acme]\ndirectory = \"https://{directory}/dir\"\nterms_agreed = true\n{}\n\
             state_directory = \"{}\"\n[[route]]\nrespond = {{ body = \"ok\" }}\n{more}",
            ca.ca(),
            state.display()
        ),
    )
}

#[test]
fn a_listener_opens_before_its_first_certificate_is_issued() {
    let Some(scene) = Scene::new("acme-placeholder", &["openssl"]) else {
        return;
    };
    let text = config(&scene, "");
    let mut weir = Weir::start(&scene, &text);
    let secure = scene.address(1, 8443);
    let seen = s_client(&scene, secure, &["-servername", "a.example.com"], ASK);
    assert!(seen.stdout.contains("Weir: no certificate has been issued yet"), "{seen:?}");
    assert!(seen.stdout.contains("HTTP/1.1 200 OK"), "{seen:?}");

    let line = weir.wait_for_log(&["no certificate for a.example.com, b.example.com"], SOON);
    for words in ["clients get a self-signed one", "retry_at"] {
        assert!(line.contains(words), "{line}");
    }
    let acme = weir.api("/api/v1/status")["acme"].clone();
    assert_eq!(acme["running"], true, "{acme:#}");
    let certificate = &acme["certificates"][0];
    assert_eq!(certificate["names"][1], "b.example.com", "{acme:#}");
    assert!(certificate["not_after"].is_null(), "{acme:#}");
    assert!(certificate["next_attempt"].is_string(), "{acme:#}");
    assert_eq!(certificate["failure"]["count"], 1, "{acme:#}");
    let shown = run(&scene, &["status", "--admin", &scene.admin().to_string()]).stdout;
    assert!(
        shown.contains("a.example.com, b.example.com: not issued yet, next attempt"),
        "{shown}"
    );

    // Only Weir's user can enter the directory.
    let state = scene.folder().join("state");
    for folder in [state.clone(), state.join("below")] {
        let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", folder.display());
    }

    // A request that looks like a challenge is one for the routes.
    let path = "/.well-known/acme-challenge/token";
    assert_eq!(http::get(weir.front(), path).unwrap().text(), "ok");

    // The self-signed certificate stays: a reload sees no change.
    let answer = weir.ask("/api/v1/reload");
    assert_eq!(answer.json()["result"], "unchanged", "{}", answer.text());
    // Without it, the thread ends with the certificate.
    let without = text.replace("{ acme = [\"a.example.com\", \"b.example.com\"] }", &pair(&scene));
    scene.file("weir.toml", without);
    let answer = weir.ask("/api/v1/reload");
    assert_eq!(answer.json()["result"], "applied", "{}", answer.text());
    wait::until("no ACME", SOON, || weir.api("/api/v1/status")["acme"].is_null().then_some(()));
    weir.begin_to_stop();
    assert_eq!(weir.wait(SOON).code, Some(0));
}

fn pair(scene: &Scene) -> String {
    Authority::new(scene, "other").issue("a", &["a.example.com"]).table()
}

#[test]
fn settings_that_cannot_work_are_said_in_one_line() {
    let Some(scene) = Scene::new("acme-mistakes", &[]) else {
        return;
    };
    // A file is in the way of the directory.
    scene.file("state", "");
    let file = scene.file("weir.toml", config(&scene, ""));
    let finished = run(&scene, &["serve", &file.to_string_lossy()]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(finished.stderr.contains("cannot use the ACME state directory"), "{finished:?}");

    scene.file("eab.key", "not base64url!");
    let eab = scene.folder().join("eab.key");
    std::fs::set_permissions(&eab, PermissionsExt::from_mode(0o600)).unwrap();
    let external = "external_account = { key_id = \"k\", hmac_key_file = \"eab.key\" }";
    let text = config(&scene, "").replace("terms_agreed", &format!("{external}\nterms_agreed"));
    let file = scene.file("weir.toml", text);
    for verb in ["check", "serve"] {
        let finished = run(&scene, &[verb, &file.to_string_lossy()]);
        assert_eq!(finished.code, Some(1), "{verb}: {finished:?}");
        assert!(finished.stderr.contains("is not base64url"), "{verb}: {finished:?}");
    }
}
