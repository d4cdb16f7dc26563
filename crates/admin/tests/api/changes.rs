//! What a person may change.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use admin::{NotOrdered, ReloadError, Sources};
use admin_api::fleet::{Fleet, FleetConfirmation, FleetMember};
use admin_api::receipt::Reload;
use model::Administrative;
use serde_json::json;

use crate::rig::{Api, receipt, sources};

#[test]
fn a_server_is_put_aside_and_back() {
    let api = Api::start();
    let path = "/api/v1/services/listings/servers/127.0.0.1:5001/state";
    let endpoints = || api.registry.current().services[0].endpoints();

    let service = api.post(path, r#"{"state": "drain"}"#).json();
    assert_eq!(service["servers"][0]["state"], "drain");
    assert_eq!(endpoints().all[0].state.administrative(), Administrative::Drain);
    // It counts at once: the own zone has no server left.
    assert_eq!(service["tier"], "all_zones");
    assert!(!endpoints().is_eligible("127.0.0.1:5001".parse().unwrap()));

    let service = api.post(path, r#"{"state": "ready"}"#).json();
    assert_eq!(service["tier"], "own_zone");

    let v6 = "/api/v1/services/listings/servers/[::1]:5002/state";
    let service = api.post(v6, r#"{"state": "maintenance"}"#).json();
    assert_eq!(service["servers"][1]["state"], "maintenance");
}

#[test]
fn a_dry_run_says_what_a_change_would_do_and_changes_nothing() {
    let api = Api::start();
    let server = "/api/v1/services/listings/servers/127.0.0.1:5001";
    let before = api.get("/api/v1/services/listings").json();
    for (path, body) in [
        ("state", json!({ "state": "drain", "dry_run": true })),
        ("weight", json!({ "weight": 0, "dry_run": true })),
    ] {
        let answer = api.post(&format!("{server}/{path}"), &body.to_string()).json();
        assert_eq!((&answer["tier"], &answer["eligible"]), (&json!("all_zones"), &json!(1)));
        assert_eq!(answer["servers"][0]["eligible"], false);
        assert_eq!(api.get("/api/v1/services/listings").json(), before);
    }
    let changed = api.post(&format!("{server}/state"), r#"{"state": "drain"}"#).json();
    assert_eq!(changed["tier"], "all_zones");
    let absent = "/api/v1/services/listings/servers/10.9.9.9:1/state";
    api.post(absent, r#"{"state": "drain", "dry_run": true}"#).problem(404, "server_not_found");
}

#[test]
fn a_state_for_the_whole_fleet_needs_a_fleet_and_an_address_that_all_members_share() {
    let server = "/api/v1/services/listings/servers/127.0.0.1:5001/state";
    let own = || Some(FleetMember { name: "b1".to_owned(), ..FleetMember::default() });
    for (fleet, refusal) in [
        (None, "no_fleet"),
        (Some(Fleet { error: Some("no socket".to_owned()), ..Fleet::default() }), "no_fleet"),
        (Some(Fleet { own: own(), ..Fleet::default() }), "server_of_one_machine"),
    ] {
        let order = |_| -> Result<FleetConfirmation, NotOrdered> { panic!("it was ordered") };
        let api = Api::with(Sources {
            fleet: Some(Arc::new(move || fleet.clone())),
            fleet_order: Some(Arc::new(order)),
            ..sources()
        });
        for body in [
            r#"{"state": "drain", "fleet": true}"#,
            r#"{"state": "drain", "fleet": true, "dry_run": true}"#,
        ] {
            api.post(server, body).problem(409, refusal);
        }
        let state = api.registry.current().services[0].endpoints().all[0].state.administrative();
        assert_eq!(state, Administrative::Ready);
    }
}

#[test]
fn what_a_new_process_would_not_hear_of_is_not_said_to_be_done() {
    let sources = sources();
    let switches = sources.switches.clone();
    let api = Api::with(sources);
    let server = "/api/v1/services/listings/servers/127.0.0.1:5001";
    let says = [
        (format!("{server}/state"), r#"{"state": "drain"}"#),
        (format!("{server}/weight"), r#"{"weight": 7}"#),
    ];
    let state = api.registry.current().services[0].endpoints().all[0].state.clone();
    switches.hold();
    for (path, body) in &says {
        let message = api.post(path, body).problem(503, "upgrade_under_way");
        assert!(message.starts_with("nothing has changed"), "{message}");
    }
    assert_eq!((state.administrative(), state.weight_set()), (Administrative::Ready, None));
    switches.release();
    for (path, body) in &says {
        api.post(path, body).json();
    }
    assert_eq!((state.administrative(), state.weight_set()), (Administrative::Drain, Some(7)));
}

#[test]
fn maintenance_is_switched_by_name_unless_a_new_process_is_taking_over() {
    let sources = sources();
    let switches = sources.switches.clone();
    let api = Api::with(sources);
    let service = "/api/v1/services/listings/maintenance";
    let route = "/api/v1/routes/api.example.com%2Flistings/maintenance";
    let on = r#"{"on": true, "retry_after_ms": 60000}"#;
    switches.hold();
    for path in [service, route] {
        api.post(path, on).problem(503, "upgrade_under_way");
    }
    assert_eq!(api.get("/api/v1/status").json()["maintenance"], json!([]));
    switches.release();
    let row = json!({
        "kind": "service", "name": "listings", "on": true, "in_file": false, "by_operator": true,
        "retry_after_ms": 60_000,
    });
    assert_eq!(api.post(service, on).json(), row);
    let route_row = api.post(route, r#"{"on": true}"#).json();
    assert_eq!(route_row["name"], "api.example.com/listings");
    assert_eq!(api.get("/api/v1/status").json()["maintenance"], json!([route_row, row]));
    let metrics = api.get("/metrics").body;
    assert!(metrics.contains("weir_service_maintenance{service=\"listings\"} 1\n"), "{metrics}");
    let sample = "weir_route_maintenance{route=\"api.example.com/listings\"} 1\n";
    assert!(metrics.contains(sample), "{metrics}");

    api.post("/api/v1/services/x/maintenance", on).problem(404, "service_not_found");
    let message = api.post("/api/v1/routes/x/maintenance", on).problem(404, "route_not_found");
    assert!(message.ends_with("there are: api.example.com/listings"), "{message}");
    for wrong in ["{}", r#"{"on": true, "retry_after_ms": 999}"#, r#"{"on": "yes"}"#] {
        api.post(service, wrong).problem(422, "body_not_readable");
    }
    for path in [service, route] {
        assert_eq!(api.post(path, r#"{"on": false}"#).json()["on"], false);
    }
    assert_eq!(api.get("/api/v1/status").json()["maintenance"], json!([]));
}

#[test]
fn a_mistake_is_told_and_changes_nothing() {
    let api = Api::start();
    let path = "/api/v1/services/listings/servers/127.0.0.1:5001/state";
    let other = "/api/v1/services/listings/servers/127.0.0.1:9/state";
    let message = api.post(other, r#"{"state": "drain"}"#).problem(404, "server_not_found");
    assert!(message.ends_with("its servers: 127.0.0.1:5001, [::1]:5002"), "{message}");
    let nowhere = "/api/v1/services/listings/servers/x/state";
    api.post(nowhere, r#"{"state": "drain"}"#).problem(404, "server_not_found");
    let unknown = api.post(path, r#"{"state": "asleep"}"#);
    assert!(unknown.problem(422, "body_not_readable").contains("maintenance"));
    api.post(path, r#"{"state": "drain", "for": 3}"#).problem(422, "body_not_readable");
    api.post(path, "{").problem(400, "body_not_readable");
    let large = format!(r#"{{"state": "{}"}}"#, "x".repeat(5_000));
    api.post(path, &large).problem(413, "body_not_readable");
    api.get(path).problem(405, "method_not_allowed");
    api.get("/api/v2").problem(404, "not_found");
    let state = &api.registry.current().services[0].endpoints().all[0].state.clone();
    assert_eq!(state.administrative(), Administrative::Ready);
}

#[test]
fn a_name_stands_for_every_address_that_it_has() {
    let api = Api::start();
    let named = |name: &str| format!("/api/v1/services/listings/servers/{name}/state");
    let service = api.post(&named("127.0.0.1%3A5001"), r#"{"state": "drain"}"#).json();
    assert_eq!(service["servers"][0]["state"], "drain");
    // As configured, which here is the address in other words.
    let service = api.post(&named("%5B::1%5D:5002"), r#"{"state": "drain"}"#).json();
    assert_eq!(service["servers"][1]["state"], "drain");
    assert_eq!((&service["tier"], &service["eligible"]), (&json!("none"), &json!(0)));
}

#[test]
fn a_weight_counts_at_once_and_until_it_is_taken_back() {
    let api = Api::start();
    let path = "/api/v1/services/listings/servers/127.0.0.1:5001/weight";
    let service = api.post(path, r#"{"weight": 0}"#).json();
    assert_eq!(service["servers"][0]["weight"], 0);
    assert_eq!(service["servers"][0]["weight_configured"], 1);
    assert_eq!(service["servers"][0]["eligible"], false);
    assert_eq!(service["tier"], "all_zones");
    assert!(api.get("/metrics").body.contains("zone=\"a\"} 0\n"));

    let service = api.post(path, r#"{"weight": 1000}"#).json();
    assert_eq!(service["servers"][0]["weight"], 1000);
    let service = api.post(path, r#"{"weight": null}"#).json();
    assert_eq!(service["servers"][0]["weight"], 1);
    assert_eq!(service["tier"], "own_zone");

    for wrong in [r#"{"weight": 1001}"#, r#"{"weight": -1}"#, r#"{"weight": 1.5}"#, "{}"] {
        let message = api.post(path, wrong).problem(422, "body_not_readable");
        assert!(message.contains("1000"), "{wrong}: {message}");
    }
    assert_eq!(api.get("/api/v1/services/listings").json()["servers"][0]["weight"], 1);
}

#[test]
fn a_reload_answers_with_its_receipt_or_with_what_is_wrong() {
    let api = Api::start();
    assert_eq!(api.post("/api/v1/reload", "").json(), json!(receipt()));
    for (error, status, name) in [
        (ReloadError::Refused("line 3".to_owned()), 422, "configuration_refused"),
        (ReloadError::Failed("no answer".to_owned()), 503, "reload_failed"),
    ] {
        let why = error.to_string();
        let reload = Some(Arc::new(move || Err(error.clone())) as _);
        let api = Api::with(Sources { reload, ..sources() });
        assert_eq!(api.post("/api/v1/reload", "").problem(status, name), why);
    }
    let api = Api::with(Sources { reload: None, ..sources() });
    api.post("/api/v1/reload", "").problem(501, "not_available");
    api.get("/api/v1/reload").problem(405, "method_not_allowed");
    let panics = Some(Arc::new(|| -> Result<Reload, ReloadError> { panic!("on purpose") }) as _);
    let api = Api::with(Sources { reload: panics, ..sources() });
    api.post("/api/v1/reload", "").problem(500, "internal_error");
    api.get("/api/v1/status").json();
}

#[test]
fn another_process_takes_over_or_it_is_said_why_not() {
    let api = Api::start();
    assert_eq!(api.post("/api/v1/upgrade", "").json()["predecessor"]["pid"], 12);
    let fails = Some(Arc::new(|| Err(ReloadError::Failed("it ended".to_owned()))) as _);
    let api = Api::with(Sources { upgrade: fails, ..sources() });
    assert_eq!(api.post("/api/v1/upgrade", "").problem(503, "upgrade_failed"), "it ended");
    let api = Api::with(Sources { upgrade: None, reloads: None, ..sources() });
    api.post("/api/v1/upgrade", "").problem(501, "not_available");
    api.get("/api/v1/reloads").problem(501, "not_available");
}

#[test]
fn reloads_come_one_after_the_other() {
    let running = Arc::new(AtomicBool::new(false));
    let reload = Some(Arc::new(move || {
        assert!(!running.swap(true, SeqCst), "two at once");
        std::thread::yield_now();
        running.store(false, SeqCst);
        Ok(receipt())
    }) as _);
    let api = Api::with(Sources { reload, ..sources() });
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| api.post("/api/v1/reload", "").json());
        }
    });
}
