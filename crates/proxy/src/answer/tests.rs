//! Tests of answers byte by byte, and of properties that hold for all of them.

use wire::http1::{HeadLimits, Parsed, ResponseHead, parse_request, parse_response};

use super::*;

/// 1994-11-06 08:49:37, the date of RFC 9110's examples.
const NOW_S: u64 = 784_111_777;
const LIMITS: HeadLimits =
    HeadLimits { head_max_bytes: 65_536, target_max_bytes: 1024, fields_max: 64 };

fn request(text: &str) -> RequestHead {
    let mut head = RequestHead::default();
    let parsed = parse_request(text.as_bytes(), &LIMITS, &mut head);
    assert!(matches!(parsed, Ok(Parsed::Complete { .. })), "{parsed:?}");
    head
}

fn asking_for(accept: &str) -> RequestHead {
    request(&format!("GET / HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n"))
}

fn occasion(request: Option<&RequestHead>) -> Occasion<'_> {
    Occasion {
        request,
        request_id: b"00ff",
        proxy_status: true,
        close: false,
        grpc: false,
        page: None,
        own: OwnFields::default(),
    }
}

fn written(answer: &Answer, occasion: &Occasion<'_>) -> String {
    // Existing bytes stay.
    let mut out = b"before".to_vec();
    answer.write_at(NOW_S, occasion, &mut out);
    String::from_utf8(out).unwrap().strip_prefix("before").unwrap().to_owned()
}

#[test]
fn text_byte_by_byte() {
    let answer = Answer::of(Cause::ConnectionRefused);
    let expected = "HTTP/1.1 502 Bad Gateway\r\n\
        Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
        Content-Type: text/plain; charset=utf-8\r\n\
        Cache-Control: no-store\r\n\
        Proxy-Status: weir; error=connection_refused\r\n\
        X-Request-Id: 00ff\r\n\
        Content-Length: 92\r\n\
        \r\n\
        502 Bad Gateway\n\
        The server refused the connection.\n\
        \n\
        cause: connection_refused\n\
        request: 00ff\n";
    assert_eq!(written(&answer, &occasion(Some(&asking_for("*/*")))), expected);
}

#[test]
fn json_byte_by_byte() {
    let answer = Answer {
        retry_after: Some(Duration::from_millis(1001)),
        status: 503,
        ..Answer::of(Cause::QueueFull)
    };
    let request = asking_for("application/json");
    let occasion = Occasion { proxy_status: false, close: true, ..occasion(Some(&request)) };
    let expected = "HTTP/1.1 503 Service Unavailable\r\n\
        Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
        Content-Type: application/json\r\n\
        Cache-Control: no-store\r\n\
        X-Request-Id: 00ff\r\n\
        Retry-After: 2\r\n\
        Connection: close\r\n\
        Content-Length: 138\r\n\
        \r\n\
        {\"status\":503,\"cause\":\"queue_full\",\"fault\":\"server\",\
        \"message\":\"Every server is at its limit, and the queue is full.\",\
        \"request_id\":\"00ff\"}\n";
    assert_eq!(written(&answer, &occasion), expected);
}

#[test]
fn problem_details_have_the_members_of_their_rfc() {
    let answer = Answer::of(Cause::DestinationNotFound);
    let all = written(&answer, &occasion(Some(&asking_for("application/problem+json"))));
    let expected = "{\"title\":\"Not Found\",\"status\":404,\
        \"detail\":\"No route matches the request.\",\"cause\":\"destination_not_found\",\
        \"fault\":\"configuration\",\"request_id\":\"00ff\"}\n";
    assert!(all.ends_with(expected), "{all}");
    assert!(all.contains("\r\nContent-Type: application/problem+json\r\n"), "{all}");
}

#[test]
fn a_page_for_a_browser_is_self_contained() {
    let answer = Answer::of(Cause::HttpResponseTimeout);
    let all = written(&answer, &occasion(Some(&asking_for("text/html"))));
    assert!(all.contains("\r\nContent-Type: text/html; charset=utf-8\r\n"), "{all}");
    let page = all.split("\r\n\r\n").nth(1).unwrap();
    assert!(page.starts_with("<!doctype html>\n"), "{page}");
    assert!(page.contains("<title>504 Gateway Timeout</title>"), "{page}");
    assert!(page.contains("<p>The server did not begin its response in time.</p>"), "{page}");
    assert!(page.contains("<dd>http_response_timeout<dt>Request<dd>00ff</dl>"), "{page}");
    for part in ["href", "src=", "url(", "<script", "http:", "https:", "@import"] {
        assert!(!page.contains(part), "{part} in {page}");
    }
}

#[test]
fn client_errors_are_detailed_and_server_errors_are_not() {
    let detail = "a CR is not followed by LF";
    let answer = Answer { detail, ..Answer::of(Cause::HttpRequestError) };
    let all = written(&answer, &occasion(None));
    let status = "Proxy-Status: weir; error=http_request_error; \
        details=\"a CR is not followed by LF\"\r\n";
    assert!(all.contains(status), "{all}");
    assert!(all.contains("HTTP/1.1 (RFC 9112): a CR is not followed by LF.\n"), "{all}");

    let answer = Answer {
        detail: "secret",
        received_status: Some(101),
        ..Answer::of(Cause::HttpUpgradeFailed)
    };
    for accept in ["text/plain", "text/html", "application/json", "application/problem+json"] {
        let all = written(&answer, &occasion(Some(&asking_for(accept))));
        assert!(!all.contains("secret"), "{all}");
        let status = "Proxy-Status: weir; error=http_upgrade_failed; received-status=101\r\n";
        assert!(all.contains(status), "{all}");
    }
}

#[test]
fn every_detail_fits_a_structured_string() {
    let requests = http1_details();
    assert!(requests.len() > 30);
    for detail in requests {
        let answer = Answer { detail, ..Answer::of(Cause::HttpRequestError) };
        let all = written(&answer, &occasion(None));
        assert!(all.contains(&format!("; details=\"{detail}\"\r\n")), "{all}");
    }
    let answer = Answer { detail: "a \"b\" \\ \u{e9}", ..Answer::of(Cause::HttpRequestError) };
    let all = written(&answer, &occasion(None));
    assert!(all.contains("; details=\"a \\\"b\\\" \\\\ \"\r\n"), "{all}");
}

fn http1_details() -> Vec<&'static str> {
    let heads = wire::http1::RequestError::ALL.iter().map(|rule| rule.detail());
    heads.chain(wire::http1::ChunkError::ALL.iter().map(|rule| rule.detail())).collect()
}

#[test]
fn a_redirect_is_no_error() {
    let answer = Answer {
        status: 308,
        location: Some("http://b/".to_owned()),
        ..Answer::of(Cause::Redirected)
    };
    let expected = "HTTP/1.1 308 Permanent Redirect\r\n\
        Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
        Location: http://b/\r\n\
        X-Request-Id: 00ff\r\n\
        Content-Length: 0\r\n\
        \r\n";
    assert_eq!(written(&answer, &occasion(Some(&asking_for("text/html")))), expected);
}

#[test]
fn a_head_is_answered_by_the_head_alone() {
    for accept in ["text/plain", "text/html", "application/json"] {
        let answer = Answer::of(Cause::RateLimited);
        let get = written(&answer, &occasion(Some(&asking_for(accept))));
        let text = format!("HEAD / HTTP/1.1\r\nHost: a\r\nAccept: {accept}\r\n\r\n");
        let head = written(&answer, &occasion(Some(&request(&text))));
        assert_eq!(get.split_inclusive("\r\n\r\n").next(), Some(&*head));
    }
}

#[test]
fn an_http10_client_with_keep_alive_is_answered_with_keep_alive() {
    let old = request("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let all = written(&Answer::of(Cause::DestinationNotFound), &occasion(Some(&old)));
    assert!(all.contains("\r\nConnection: keep-alive\r\n"), "{all}");
}

#[test]
fn a_hostile_request_id_stays_data_and_is_cut() {
    let mut id = b"x\"}</dd><img src=x onerror=alert(1)>\\\xff\t".to_vec();
    id.resize(50_000, b'a');
    let answer = Answer::of(Cause::ConnectionReset);
    let write = |accept: &str| {
        let head = asking_for(accept);
        let occasion = Occasion { request_id: &id, ..occasion(Some(&head)) };
        let all = written(&answer, &occasion);
        assert!(all.len() < 2_000, "{} bytes", all.len());
        let line = "\r\nX-Request-Id: x\"}</dd><img src=x onerror=alert(1)>\\??aaa";
        assert!(all.contains(line), "{all}");
        all.split("\r\n\r\n").nth(1).unwrap().to_owned()
    };
    let page = write("text/html");
    assert!(!page.contains("<img") && page.contains("&#60;img src=x onerror"), "{page}");
    for accept in ["application/json", "application/problem+json"] {
        let value: serde_json::Value = serde_json::from_str(&write(accept)).unwrap();
        let id = value["request_id"].as_str().unwrap();
        assert!(id.starts_with("x\"}</dd><img src=x onerror=alert(1)>\\??aaa"), "{id}");
        assert_eq!(value["cause"], "connection_reset");
    }
}

/// Every answer in every format is a response that a strict parser accepts, with the length it
/// declares.
#[test]
fn every_answer_is_sound_http() {
    for &cause in Cause::ALL {
        for status in [cause.status(), 418, 599] {
            if status == 0 {
                continue;
            }
            for accept in ["text/plain", "text/html", "application/json"] {
                for detail in ["", "a CR is not followed by LF"] {
                    let head = asking_for(accept);
                    let answer = Answer { status, detail, ..Answer::of(cause) };
                    let all = written(&answer, &occasion(Some(&head)));
                    let mut response = ResponseHead::default();
                    let parsed = parse_response(all.as_bytes(), &LIMITS, &mut response);
                    let Ok(Parsed::Complete { consumed }) = parsed else {
                        panic!("{parsed:?}: {all}");
                    };
                    let body = wire::http1::ResponseBody::Length((all.len() - consumed) as u64);
                    assert_eq!(response.body(false), body, "{all}");
                    assert_eq!(response.status(), status);
                    if accept == "application/json" {
                        let value: serde_json::Value =
                            serde_json::from_str(&all[consumed..]).unwrap();
                        assert_eq!(value["status"], status);
                        assert_eq!(value["cause"], cause.name());
                        assert_eq!(value["fault"], cause.fault().as_str());
                    }
                }
            }
        }
    }
}

fn page(fields: &[(&str, &str)]) -> Content {
    let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).into()));
    Content {
        media_type: Some("text/html".to_owned()),
        fields: fields.collect(),
        body: Arc::from(&b"<p>Sorry</p>"[..]),
    }
}

#[test]
fn an_error_page_replaces_the_body_and_nothing_else() {
    let content = page(&[("retry-after", "9"), ("x-a", "1")]);
    let answer =
        Answer { retry_after: Some(Duration::from_secs(3)), ..Answer::of(Cause::RateLimited) };
    let request = asking_for("application/json");
    let with = |varies| Occasion {
        own: OwnFields { hsts: Some(Duration::from_secs(60)), ..OwnFields::default() },
        page: Some(Chosen { content: &content, varies }),
        ..occasion(Some(&request))
    };
    let expected = "HTTP/1.1 429 Too Many Requests\r\n\
        Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
        Content-Type: text/html\r\n\
        Cache-Control: no-store\r\n\
        Proxy-Status: weir; error=rate_limited\r\n\
        X-Request-Id: 00ff\r\n\
        Strict-Transport-Security: max-age=60\r\n\
        Retry-After: 3\r\n\
        Vary: Accept\r\n\
        x-a: 1\r\n\
        Content-Length: 12\r\n\
        \r\n\
        <p>Sorry</p>";
    assert_eq!(written(&answer, &with(true)), expected);
    assert_eq!(written(&answer, &with(false)), expected.replace("Vary: Accept\r\n", ""));
    let alone = Answer { retry_after: None, ..answer };
    let all = written(&alone, &with(false));
    assert_eq!(all, expected.replace("Retry-After: 3\r\nVary: Accept", "retry-after: 9"));
    // A call of gRPC reads no page.
    let grpc = Occasion { grpc: true, ..with(false) };
    let all = written(&alone, &grpc);
    assert!(all.contains("grpc-status: 14") && !all.contains("Sorry"), "{all}");
}

#[test]
fn an_error_page_may_say_how_long_it_is_cached() {
    let content = page(&[("cache-control", "max-age=5")]);
    let request = request("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
    let page = Some(Chosen { content: &content, varies: false });
    let occasion = Occasion { page, ..occasion(Some(&request)) };
    let all = written(&Answer::of(Cause::DestinationNotFound), &occasion);
    assert!(all.contains("cache-control: max-age=5\r\n") && !all.contains("no-store"), "{all}");
    assert!(all.ends_with("Content-Length: 12\r\n\r\n"), "{all}");
}
