//! The stream of events.

use std::collections::BTreeSet;
use std::time::Duration;

use admin::Sources;
use serde_json::json;

use crate::rig::{Api, Endless, sources};

const TOPICS: [&str; 6] = ["traffic", "status", "services", "findings", "reloads", "changes"];

fn open(api: &Api, topics: &str) -> Endless {
    let stream = api.begin(&format!("/api/v1/stream?topics={topics}"), "");
    assert_eq!(stream.answer.status, 200);
    assert!(stream.answer.head.contains("content-type: text/event-stream\r\n"));
    stream
}

#[test]
fn every_topic_comes_at_once_as_its_path_answers() {
    let api = Api::start();
    let mut stream = api.begin("/api/v1/stream", "");
    let mut seen = BTreeSet::new();
    for _ in TOPICS {
        let (name, data) = stream.event().unwrap();
        let mut answer = api.get(&format!("/api/v1/{name}")).json();
        let mut data = data;
        for member in ["at_unix_ms", "uptime_s"] {
            for answer in [&mut answer, &mut data] {
                answer.as_object_mut().unwrap().remove(member);
            }
        }
        assert_eq!(data, answer, "{name}");
        seen.insert(name);
    }
    assert_eq!(seen, TOPICS.map(str::to_owned).into());
}

#[test]
fn a_change_is_sent_and_what_stays_is_not() {
    let api = Api::start();
    let mut stream = open(&api, "services,reloads");
    for _ in 0..2 {
        stream.event().unwrap();
    }
    let path = "/api/v1/services/listings/servers/127.0.0.1:5001/state";
    assert_eq!(api.post(path, r#"{"state": "drain"}"#).status, 200);
    let (name, data) = stream.event().unwrap();
    assert_eq!(name, "services");
    assert_eq!(data["services"][0]["servers"][0]["state"], "drain");
}

#[test]
fn what_this_process_does_not_have_is_an_event_as_well() {
    let api = Api::with(Sources { findings: None, ..sources() });
    let (name, data) = open(&api, "findings").event().unwrap();
    assert_eq!(name, "unavailable");
    assert_eq!(data["topic"], "findings");
    assert!(data["message"].as_str().unwrap().contains("doctor"), "{data}");
}

#[test]
fn a_stream_says_that_the_listener_closes() {
    let api = Api::start();
    let mut stream = open(&api, "reloads");
    stream.event().unwrap();
    api.handle.stop();
    assert_eq!(stream.event(), Some(("closing".to_owned(), json!({}))));
    assert_eq!(stream.event(), None);
}

#[test]
fn streams_are_bounded_and_their_topics_known() {
    let api = Api::start();
    let message = api.get("/api/v1/stream?topics=status,x").problem(400, "query_not_readable");
    assert!(message.contains("there are: traffic, status"), "{message}");
    let streams: Vec<_> = (0..8).map(|_| open(&api, "status")).collect();
    api.get("/api/v1/stream?topics=status").problem(503, "too_many_streams");
    // The server notices that a client is gone before its next event.
    drop(streams);
    let until = os::clock::now() + Duration::from_secs(20);
    while api.begin("/api/v1/stream?topics=status", "").answer.status != 200 {
        assert!(os::clock::now() < until, "no place is free");
    }
}
