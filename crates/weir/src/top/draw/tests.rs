//! Whole screens, which are data files in `frames`: `UPDATE_EXPECT=1` rewrites them.

use std::path::Path;
use std::time::Duration;

use admin_api::findings::Findings;
use admin_api::history::History;
use model::Moment;
use ratatui_core::backend::TestBackend;
use ratatui_core::style::Color;
use ratatui_core::terminal::Terminal;
use serde_json::{Value, json};

use super::*;
use crate::top::picture::{Part, Picture};
use crate::top::update::{Event, Key};

/// When the pictures were fetched.
const FETCHED: Moment = Moment::from_millis(100_000);

/// When the last second of the history ended.
const ENDED_UNIX_MS: u64 = 1_795_700_000_000;

fn server(address: &str, zone: &str, figures: (u64, f64, f64, u32)) -> (Value, Value) {
    let (requests, p50_ms, p99_ms, in_flight) = figures;
    let state = json!({
        "name": address, "address": address, "zone": zone, "eligible": true, "health": "up",
        "state": "ready", "weight": 1, "weight_configured": 1, "in_flight": in_flight,
        "in_flight_max": 64, "requests": requests * 60, "failures": 2, "slow_start_share": 1.0,
    });
    let window = |factor: u64| {
        json!({
            "seconds": 10 * factor, "requests": requests * factor, "failed": 0,
            "first_byte": { "p50_ms": p50_ms, "p90_ms": p50_ms * 1.02, "p99_ms": p99_ms },
            "connect_mean_ms": 0.31, "round_trip_ms": 0.24,
        })
    };
    (state, json!({ "address": address, "windows": [window(1), window(6)] }))
}

fn service(name: &str, windows: Value, servers: Vec<(Value, Value)>) -> (Value, Value) {
    let (states, traffic): (Vec<Value>, Vec<Value>) = servers.into_iter().unzip();
    let state = json!({
        "name": name, "eligible": states.len(), "tier": "all_zones",
        "why": "the service has no server in the own zone",
        "queue": { "length": 0, "length_max": 200 }, "servers": states,
    });
    (state, json!({ "name": name, "windows": [windows], "servers": traffic }))
}

/// Sixty seconds of requests; from the second `slow_from` on there are more of them.
fn past(per_second: u64, slow_from: usize) -> Value {
    let rows = (0..60).map(|at: usize| {
        let wave = (at as u64 * 7) % 5;
        Some(if at < slow_from { per_second / 2 + wave } else { per_second + wave })
    });
    json!(rows.collect::<Vec<_>>())
}

/// A balancer with three services in two zones; one server is slow.
fn example() -> Value {
    let window = |requests: u64, failed: u64, [p50, p90, p99]: [f64; 3]| {
        json!({
            "seconds": 10, "requests": requests, "failed": failed,
            "total": { "p50_ms": p50, "p90_ms": p90, "p99_ms": p99 },
        })
    };
    let catalog = service(
        "catalog",
        window(12_402, 2, [20.2, 48.0, 1_508.0]),
        vec![
            server("10.0.1.11:8080", "eu-west-1a", (2_400, 20.0, 47.0, 5)),
            server("10.0.1.12:8080", "eu-west-1a", (2_410, 19.4, 45.0, 5)),
            server("10.0.1.13:8080", "eu-west-1a", (2_390, 20.3, 51.0, 6)),
            server("10.0.2.14:8080", "eu-west-1b", (2_402, 20.9, 48.0, 4)),
            server("10.0.2.15:8080", "eu-west-1b", (420, 1_502.0, 1_540.0, 64)),
        ],
    );
    let listings = service(
        "listings",
        window(5_604, 0, [102.0, 118.0, 131.0]),
        vec![
            server("10.0.1.21:8080", "eu-west-1a", (2_800, 102.0, 131.0, 28)),
            server("10.0.2.21:8080", "eu-west-1b", (2_804, 101.0, 130.0, 28)),
        ],
    );
    let search = service(
        "search",
        window(3_840, 1, [38.0, 61.0, 96.0]),
        vec![server("10.0.1.31:9200", "eu-west-1a", (3_840, 38.0, 96.0, 15))],
    );
    let series = |name: &str, requests: Value| json!({ "service": name, "columns": { "requests": requests } });
    // Three failed with a cause, two with a 5xx.
    let endings = json!([{ "columns": { "failed": [5] }, "causes": [
        { "row": 58, "cause": "connection_refused", "count": 3 },
        { "row": 58, "cause": "completed", "count": 2_181 },
    ] }]);
    let ended: Vec<u64> = (0..60).map(|at| ENDED_UNIX_MS - (59 - at) * 1_000).collect();
    let covered = vec![1_000; 60];
    let rows = |series: Value| {
        json!({
            "enabled": true, "step_ms": 1_000, "ended_unix_ms": ended, "covered_ms": covered,
            "series": series,
        })
    };
    let slow: Vec<Value> =
        (0..60).map(|at| json!(if at < 12 { 20_000 } else { 1_502_000 })).collect();
    let mut picture: Value = serde_json::from_str(include_str!("example.json")).unwrap();
    picture["services"] = json!([catalog.0, listings.0, search.0]);
    picture["traffic"] =
        json!({ "spans_s": [10, 60], "services": [catalog.1, listings.1, search.1] });
    picture["past"] = rows(json!([
        series("catalog", past(1_240, 30)),
        series("listings", past(560, 0)),
        series("search", past(380, 59)),
    ]));
    picture["server_past"] = rows(json!([{
        "service": "catalog", "server": "10.0.2.15:8080",
        "columns": { "requests": past(42, 20), "first_byte_p50_us": slow },
    }]));
    picture["endings"] = rows(endings.clone());
    picture["service_endings"] = rows(endings);
    picture
}

/// A balancer whose names try to take the terminal over.
fn hostile() -> Value {
    let mut picture = example();
    let evil = "\u{1b}[2J\u{1b}]0;x\u{7}\r\n\u{202e}日本語のとても長い名前\u{200b}";
    picture["services"][0]["name"] = json!(evil);
    picture["traffic"]["services"][0]["name"] = json!(evil);
    picture["services"][0]["servers"][4]["zone"] = json!("\u{9b}31m");
    picture["services"][0]["why"] = json!("\u{1b}[31m");
    picture["status"]["zone"] = json!("\u{1b}c");
    picture["requests"]["requests"][0]["path"] = json!("/\u{1b}[?1049l");
    picture
}

/// One service with a thousand servers, every hundredth of them down.
fn thousand() -> Value {
    let mut picture = example();
    let server = |at: u32| {
        let address = format!("10.{}.{}.{}:8080", at / 400, at / 20 % 20, at % 20 + 1);
        let mut server = server(&address, "eu-west-1a", (40, 20.0, 47.0, at % 9));
        if at % 100 == 7 {
            server.0["health"] = json!("down");
            server.0["eligible"] = json!(false);
        }
        server
    };
    let window = json!({ "seconds": 10, "requests": 40_000, "total": { "p50_ms": 20.0 } });
    let (mut state, traffic) = service("catalog", window, (0..1_000).map(server).collect());
    state["eligible"] = json!(990);
    picture["services"][0] = state;
    picture["traffic"]["services"][0] = traffic;
    picture
}

/// A balancer that has served nothing yet.
fn quiet() -> Value {
    let mut picture = example();
    for service in picture["traffic"]["services"].as_array_mut().unwrap() {
        service["windows"] = json!([{ "seconds": 10 }]);
        for server in service["servers"].as_array_mut().unwrap() {
            server["windows"] = json!([{ "seconds": 10 }, { "seconds": 60 }]);
        }
    }
    for member in ["past", "server_past", "endings", "service_endings", "requests", "causes"] {
        picture[member] = json!({});
    }
    picture["findings"] = json!({ "enabled": true });
    for service in picture["services"].as_array_mut().unwrap() {
        for server in service["servers"].as_array_mut().unwrap() {
            server["in_flight"] = json!(0);
        }
    }
    picture
}

/// Shows a picture, and presses keys.
fn state(picture: Value, keys: &str, size: (u16, u16)) -> State {
    shown(serde_json::from_value(picture).unwrap(), keys, size)
}

fn shown(picture: Picture, keys: &str, size: (u16, u16)) -> State {
    let mut state = State::new("127.0.0.1:9900".to_owned(), size, Moment::ZERO);
    state.update(Event::Fetched(Ok(Box::new(picture)), FETCHED), FETCHED);
    for char in keys.chars() {
        let key = if char == '\n' { Key::Enter } else { Key::Char(char) };
        state.update(Event::Key(key), FETCHED);
    }
    state
}

fn screen(state: &State, has_colours: bool) -> Buffer {
    let (columns, lines) = state.size;
    let mut terminal = Terminal::new(TestBackend::new(columns, lines)).unwrap();
    let draw = |buffer: &mut Buffer| draw(state, Palette { has_colours }, buffer);
    terminal.draw(|frame| _ = draw(frame.buffer_mut())).unwrap();
    terminal.backend().buffer().clone()
}

/// The text of a screen, a line each.
fn text(buffer: &Buffer) -> String {
    let mut out = String::new();
    for line in buffer.content().chunks(usize::from(buffer.area.width)) {
        let mut text = String::new();
        let mut skipped = 0;
        for cell in line {
            // The second half of a wide character.
            if skipped > 0 {
                skipped -= 1;
                continue;
            }
            text.push_str(cell.symbol());
            skipped = crate::top::tone::width(cell.symbol()).saturating_sub(1);
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

/// A name, the screen, and what is shown there.
type Case = (&'static str, (u16, u16), State);

fn cases() -> Vec<Case> {
    const SMALL: (u16, u16) = (80, 24);
    const LARGE: (u16, u16) = (120, 40);
    let mut lost = state(example(), "", SMALL);
    let why = "nothing listens at 127.0.0.1:9900";
    lost.update(
        Event::Fetched(Err(why.to_owned()), Moment::from_millis(103_000)),
        Moment::from_millis(103_000),
    );
    lost.update(Event::Tick, Moment::from_millis(115_000));
    let mut never = State::new("127.0.0.1:9900".to_owned(), SMALL, Moment::ZERO);
    never.update(
        Event::Fetched(Err(why.to_owned()), Moment::from_millis(1_000)),
        Moment::from_millis(1_000),
    );
    let mut changed = state(example(), "\n", SMALL);
    changed.update(Event::Changed(Ok("10.0.2.15:8080 of catalog: drain".to_owned())), FETCHED);
    let both = |name: [&'static str; 2], picture: fn() -> Value, keys: &str| {
        let [small, large] = name;
        [
            (small, SMALL, state(picture(), keys, SMALL)),
            (large, LARGE, state(picture(), keys, LARGE)),
        ]
    };
    let mut cases: Vec<Case> = Vec::new();
    cases.extend(both(["services-80x24", "services-120x40"], example, ""));
    cases.extend(both(["servers-80x24", "servers-120x40"], example, "\n"));
    cases.extend(both(["all-servers-80x24", "all-servers-120x40"], example, "2sss"));
    cases.extend(both(["server-80x24", "server-120x40"], example, "\n\n"));
    cases.extend(both(["clients-80x24", "clients-120x40"], example, "3"));
    cases.extend(both(["causes-80x24", "causes-120x40"], example, "c"));
    cases.extend(both(["in-flight-80x24", "in-flight-120x40"], example, "5"));
    cases.extend(both(["findings-80x24", "findings-120x40"], example, "ej"));
    cases.extend(both(["hostile-80x24", "hostile-120x40"], hostile, ""));
    cases.extend(both(["thousand-80x24", "thousand-120x40"], thousand, "\nG"));
    cases.extend(both(["quiet-80x24", "quiet-120x40"], quiet, ""));
    for (name, keys) in [
        ("drain-80x24", "\nd"),
        ("finding-80x24", "e\n"),
        ("find-80x24", "\n/10.0.2"),
        ("help-80x24", "?"),
        ("checks-80x24", "7"),
    ] {
        cases.push((name, SMALL, state(example(), keys, SMALL)));
    }
    cases.extend(with_gaps(SMALL));
    let nothing = json!({
        "status": { "ready": true }, "traffic": {}, "past": {}, "findings": { "enabled": true },
    });
    cases.push(("hostile-in-flight-80x24", SMALL, state(hostile(), "5", SMALL)));
    cases.push(("no-service-80x24", SMALL, state(nothing, "", SMALL)));
    cases.push(("disconnected-80x24", SMALL, lost));
    cases.push(("never-connected-80x24", SMALL, never));
    cases.push(("changed-80x24", SMALL, changed));
    cases
}

/// Balancers of which something is not known, and small windows.
fn with_gaps(size: (u16, u16)) -> Vec<Case> {
    let why = || "127.0.0.1:9900 does not answer in time".to_owned();
    let quiet = || serde_json::from_value::<Picture>(quiet()).unwrap();
    let no_history = Picture {
        traffic: Part::Unknown("history_memory_max is 0 in the configuration".to_owned()),
        past: Part::Known(History::default()),
        ..quiet()
    };
    let no_findings = Picture { findings: Part::Unknown(why()), ..quiet() };
    let no_doctor = Picture { findings: Part::Known(Findings::default()), ..quiet() };
    let no_requests = Picture { requests: Part::Unknown(why()), ..quiet() };
    let mut paused = state(example(), " ", size);
    paused.update(Event::Tick, FETCHED + Duration::from_secs(75));
    vec![
        ("no-history-80x24", size, shown(no_history, "", size)),
        ("no-findings-80x24", size, shown(no_findings, "", size)),
        ("no-doctor-80x24", size, shown(no_doctor, "e", size)),
        ("no-requests-80x24", size, shown(no_requests, "5", size)),
        ("paused-80x24", size, paused),
        ("narrow-36x24", (36, 24), state(example(), "e\n", (36, 24))),
        ("narrow-drain-36x12", (36, 12), state(example(), "\nd", (36, 12))),
    ]
}

#[test]
fn a_question_is_asked_only_if_all_of_it_is_shown() {
    let is_asked = |size| {
        let state = state(example(), "\nd", size);
        let mut buffer = Buffer::empty(Rect::new(0, 0, size.0, size.1));
        draw(&state, Palette { has_colours: false }, &mut buffer)
    };
    assert_eq!([(80, 24), (36, 24), (36, 9), (29, 24)].map(is_asked), [true, true, false, false]);
}

#[test]
fn screens_are_as_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/top/draw/frames");
    let mut wrong = Vec::new();
    for (name, _, state) in cases() {
        let found = text(&screen(&state, false));
        let path = folder.join(name).with_extension("txt");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&path, found).unwrap();
        } else if std::fs::read_to_string(&path).ok().as_deref() != Some(&found) {
            wrong.push(format!("{name}:\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "not as expected (UPDATE_EXPECT=1 rewrites):\n{}", wrong.join("\n"));
}

#[test]
fn nothing_that_controls_a_terminal_reaches_it() {
    for keys in ["", "\n", "\n\n", "2", "3", "c", "5", "e", "e\n", "md", "\nd"] {
        let buffer = screen(&state(hostile(), keys, (100, 30)), true);
        let is_clean =
            |symbol: &str| !symbol.chars().any(|char| char.is_control() || char == '\u{202e}');
        assert!(buffer.content().iter().all(|cell| is_clean(cell.symbol())), "{keys:?}");
    }
}

#[test]
fn without_colours_there_are_none() {
    let coloured = |buffer: &Buffer| {
        let cells = buffer.content().iter();
        cells.filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset).count()
    };
    for (name, _, state) in cases() {
        assert_eq!(coloured(&screen(&state, false)), 0, "{name}");
    }
    assert!(coloured(&screen(&state(example(), "", (80, 24)), true)) > 0);
}

#[test]
fn any_size_can_be_drawn() {
    for columns in [0, 1, 29, 30, 31, 79, 81, 139, 300] {
        for lines in [0, 1, 7, 8, 9, 23, 60] {
            for keys in ["", "\n", "\n\n", "\nd", "?", "c", "/x", "e", "e\n", "5"] {
                drop(screen(&state(example(), keys, (columns, lines)), true));
            }
        }
    }
}

#[test]
fn figures_keep_their_places() {
    // The same screen with other figures differs only where figures are: headings stay.
    let headings = |picture: Value| {
        let text = text(&screen(&state(picture, "", (80, 24)), false));
        text.lines().filter(|line| line.contains("REQ/S")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(headings(example()), headings(quiet()));
}
