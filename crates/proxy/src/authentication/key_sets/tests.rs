//! Tests of fetches, with a server for each that answers once.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use super::fetch::{Contents, FetchError, fetch};
use super::*;

const KEY: &str =
    r#"{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;

/// Fetches a key set from a server that sends this response.
fn fetched(response: &str) -> Result<Contents, FetchError> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap()).parse().unwrap();
    let response = response.to_owned();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        // The client may close as soon as it has seen too much.
        let _ = stream.write_all(response.as_bytes());
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tasks = tokio::task::LocalSet::new();
    let fetched =
        tasks.block_on(&runtime, fetch(&HttpPeer { url, ca: None, certificate: None }, None));
    server.join().unwrap();
    fetched
}

fn response(status: &str, fields: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn a_key_set_comes_with_its_freshness() {
    let body = format!("{{\"keys\":[{KEY}]}}");
    for (fields, max_age_s) in [
        ("", None),
        ("Cache-Control: public, max-age=3600\r\n", Some(3600)),
        ("Cache-Control: max-age=\"60\", MAX-AGE=30\r\nAge: 10\r\n", Some(20)),
        ("Cache-Control: max-age=60\r\nAge: 3600\r\n", Some(0)),
        ("Cache-Control: max-age=-1, s-maxage=5\r\n", None),
        ("Cache-Control: max-age=99999999999999999999\r\n", None),
    ] {
        let contents = fetched(&response("200 OK", fields, &body)).unwrap();
        assert_eq!(contents.keys.len(), 1);
        assert_eq!(contents.max_age, max_age_s.map(Duration::from_secs), "{fields}");
    }
}

#[test]
fn what_is_no_key_set_is_refused_with_the_reason() {
    let long = "x".repeat(600 * 1024);
    let secret =
        r#"{"keys":[{"kty":"oct","kid":"a","k":"c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0"}]}"#;
    for (response, reason) in [
        (response("404 Not Found", "", "{}"), "the answer is 404; is it the URL of a key set"),
        (
            response("302 Found", "Location: https://b.example/keys\r\n", ""),
            "the answer is 302, a redirect to https://b.example/keys, which is not followed",
        ),
        (response("204 No Content", "", ""), "the answer is 204"),
        (response("200 OK", "", "<html>"), "the key set is not valid JSON"),
        (response("200 OK", "", "{\"keys\":[]}"), "no key that can be used: it is empty"),
        (response("200 OK", "", "{\"keys\":[],\"keys\":[]}"), "a member twice"),
        (response("200 OK", "", secret), "symmetric keys (`oct`) are not allowed here"),
        (response("200 OK", "", &long), "more than 524288 bytes"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{".to_owned(), "closed within the response"),
        ("SSH-2.0-OpenSSH\r\n\r\n".to_owned(), "not a valid HTTP response"),
        (String::new(), "closed before a response"),
    ] {
        let error = fetched(&response).err().map(|error| error.to_string());
        let error = error.unwrap_or_else(|| panic!("accepted: {response}"));
        assert!(error.contains(reason) && error.len() < 600, "{error}");
    }
}
