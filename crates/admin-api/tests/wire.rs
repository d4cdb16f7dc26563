//! The JSON stays what earlier versions wrote and read: answers of the API recorded before it had
//! types, and a handover in the same form, are read and written again without a difference.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

use admin_api::handover::{Manifest, Message, Opening};
use admin_api::{Problem, receipt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[track_caller]
fn stays<T: Serialize + DeserializeOwned>(text: &str) {
    let value: Value = serde_json::from_str(text).unwrap();
    let typed: T = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), value);
}

#[test]
fn earlier_json_is_read_and_written_without_a_difference() {
    stays::<receipt::Reload>(include_str!("served/reload_applied.json"));
    stays::<receipt::Reload>(include_str!("served/reload_unchanged.json"));
    stays::<receipt::Reloads>(include_str!("served/reloads.json"));
    stays::<receipt::Upgrade>(include_str!("served/upgrade.json"));
    stays::<Problem>(include_str!("served/problem.json"));
    stays::<Manifest>(include_str!("served/handover.json"));
    stays::<Message>(r#"{"ready":7,"version":"0.1.0"}"#);
    stays::<Message>(r#"{"failed":"no address"}"#);
}

#[test]
fn members_of_a_newer_version_are_ignored_and_those_of_an_older_one_not_needed() {
    let newer: receipt::Reload =
        serde_json::from_value(json!({ "result": "applied", "mood": "good" })).unwrap();
    let expected =
        receipt::Reload { result: receipt::ReloadResult::Applied.into(), ..Default::default() };
    assert_eq!(newer, expected);
    let older: Manifest = serde_json::from_value(json!({ "form": 1, "says": 5 })).unwrap();
    assert_eq!((older.servers.len(), older.admin, older.instance), (0, None, None));
    assert_eq!((older.metrics, older.maintenance.len()), (None, 0));
    let said: Message = serde_json::from_value(json!({ "ready": 7 })).unwrap();
    assert_eq!(said, Message::Ready { ready: 7, version: None });
}

#[test]
fn another_form_can_be_refused_through_its_pipe() {
    let other = r#"{"form":2,"says":5,"listeners":"elsewhere"}"#;
    let opening: Opening = serde_json::from_str(other).unwrap();
    assert_eq!((opening.form, opening.says), (2, Some(5)));
    assert!(serde_json::from_str::<Manifest>(other).is_err());
}
