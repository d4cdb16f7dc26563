//! The dashboard's files and its sessions.

use crate::rig::{Answer, Api};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

#[test]
fn its_files_are_public_and_say_what_browsers_need() {
    let api = Api::with_token(TOKEN);
    let page = api.get("/ui/");
    assert_eq!(page.status, 200, "{}", page.body);
    assert!(page.body.to_ascii_lowercase().starts_with("<!doctype html>"), "{}", page.body);
    for field in [
        "content-type: text/html; charset=utf-8\r\n",
        "content-security-policy: default-src 'none'; script-src 'self';",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff\r\n",
        "referrer-policy: no-referrer\r\n",
        "cross-origin-resource-policy: same-origin\r\n",
        "cache-control: no-cache\r\n",
    ] {
        assert!(page.head.contains(field), "{field}: {}", page.head);
    }
    assert!(!page.head.contains("no-store"));
    assert!(api.get("/ui").head.contains("location: /ui/\r\n"));
    assert!(api.get("/ui/src/main.js").head.contains("content-type: text/javascript"));
    for absent in ["/ui/nothing", "/ui/..%2Fpackage.json", "/ui/src/", "/ui//"] {
        api.get(absent).problem(404, "not_found");
    }
}

#[test]
fn a_browser_that_has_a_file_does_not_get_it_again() {
    let api = Api::start();
    let first = api.get("/ui/favicon.svg");
    let tag = first.head.split("etag: w/").nth(1).unwrap().split('\r').next().unwrap();
    let again = api.get_with("/ui/favicon.svg", &format!("If-None-Match: {tag}"));
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    assert_eq!(api.get_with("/ui/favicon.svg", "If-None-Match: \"other\"").status, 200);
}

fn sign_in(api: &Api, token: &str) -> Answer {
    api.post("/ui/session", &format!("{{\"token\": \"{token}\"}}"))
}

/// The cookie and the key of a new session, as header fields.
fn signed_in(api: &Api) -> (String, String) {
    let answer = sign_in(api, TOKEN);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let cookie = answer.head.split("set-cookie: ").nth(1).unwrap().split(';').next().unwrap();
    let key = answer.json()["key"].as_str().unwrap().to_owned();
    (format!("Cookie: {cookie}"), format!("Weir-Session: {key}"))
}

#[test]
fn the_token_is_exchanged_for_a_session() {
    let api = Api::with_token(TOKEN);
    sign_in(&api, &TOKEN[1..]).problem(401, "token_wrong");
    api.post("/ui/session", "{}").problem(422, "body_not_readable");
    let (cookie, key) = signed_in(&api);
    let (_, other_key) = signed_in(&api);
    let status = |fields: &str| api.get_with("/api/v1/status", fields).status;
    assert_eq!(status(&format!("{cookie}\r\n{key}")), 200);
    assert_eq!(status(&cookie), 401);
    assert_eq!(status(&key), 401);
    assert_eq!(status(&format!("{cookie}\r\n{other_key}")), 401);
    // A wrong token is wrong, whatever comes with it.
    let wrong = format!("Authorization: Bearer {}\r\n{cookie}\r\n{key}", &TOKEN[1..]);
    assert_eq!(status(&wrong), 401);
    let host = api.authority();
    let out = format!("DELETE /ui/session HTTP/1.1\r\nHost: {host}\r\n{cookie}\r\n{key}\r\n");
    let answer = api.send(&out, "");
    assert_eq!(answer.status, 204);
    assert!(answer.head.contains("max-age=0"), "{}", answer.head);
    assert_eq!(status(&format!("{cookie}\r\n{key}")), 401);
}

#[test]
fn pages_of_other_origins_cannot_sign_in_or_change_anything() {
    let api = Api::with_token(TOKEN);
    let host = api.authority();
    let body = format!("{{\"token\": \"{TOKEN}\"}}");
    let post = |path: &str, fields: &str, body: &str| {
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n{fields}"
        );
        api.send(&head, body)
    };
    let page = format!("Origin: http://{host}\r\n");
    post("/ui/session", "Origin: http://127.0.0.1:1\r\nWeir-Request: 1\r\n", &body)
        .problem(403, "origin_not_allowed");
    post("/ui/session", &page, &body).problem(403, "request_field_missing");
    assert_eq!(post("/ui/session", &format!("{page}Weir-Request: 1\r\n"), &body).status, 200);
    let (cookie, key) = signed_in(&api);
    let session = format!("{page}{cookie}\r\n{key}\r\n");
    let path = "/api/v1/services/listings/servers/127.0.0.1:5001/state";
    let drain = r#"{"state": "drain"}"#;
    post(path, &session, drain).problem(403, "request_field_missing");
    assert!(api.registry.current().services[0].endpoints().all[0].state.is_ready());
    assert_eq!(post(path, &format!("{session}Weir-Request: 1\r\n"), drain).status, 200);
}

#[test]
fn without_a_token_there_is_nothing_to_sign_in_to() {
    let api = Api::start();
    sign_in(&api, TOKEN).problem(404, "no_token_required");
    assert_eq!(api.get("/api/v1/status").status, 200);
}
