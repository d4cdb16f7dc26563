//! Keys, pastes and answers, one after another.

use serde_json::{Value, json};

use super::*;
use crate::top::table::Id;

fn picture(servers: &[&str]) -> Picture {
    let server = |address: &&str| json!({ "address": address, "state": "ready", "eligible": true });
    let servers: Vec<_> = servers.iter().map(server).collect();
    let service = |name: &str| json!({ "name": name, "eligible": 1, "servers": servers });
    serde_json::from_value(json!({ "services": [service("a"), service("b")] })).unwrap()
}

fn state(servers: &[&str]) -> State {
    let mut state = State::new("127.0.0.1:9900".to_owned(), (80, 24), Moment::ZERO);
    assert_eq!(fetched(&mut state, servers), None);
    state
}

fn fetched(state: &mut State, servers: &[&str]) -> Option<Effect> {
    let now = state.now;
    state.update(Event::Fetched(Ok(Box::new(picture(servers))), now), now)
}

/// Types, each key on a screen that was drawn after the one before, and with time to read before a `y`;
/// returns the effect of the last key.
fn keys(state: &mut State, keys: &str) -> Option<Effect> {
    let mut effect = None;
    for char in keys.chars() {
        let key = match char {
            '\n' => Key::Enter,
            '\u{1b}' => Key::Escape,
            char => Key::Char(char),
        };
        let wait = if char == 'y' { READING_MIN } else { Duration::ZERO };
        let now = state.now + wait;
        effect = state.update(Event::Key(key), now);
        state.drawn(true, now);
    }
    effect
}

fn selected(state: &State) -> Option<String> {
    match state.view().id.clone()? {
        Id::Service(name) => Some(name),
        Id::Server { service, address } => Some(format!("{service} {address}")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn enter_opens_and_escape_goes_back() {
    let mut state = state(&["x:1", "y:1"]);
    keys(&mut state, "j\nj");
    assert_eq!(state.view().place, Place::Servers(Some("b".to_owned())));
    assert_eq!(selected(&state).as_deref(), Some("b y:1"));
    keys(&mut state, "\n");
    assert!(
        matches!(&state.view().place, Place::Page(Id::Server { address, .. }) if address == "y:1")
    );
    keys(&mut state, "\u{1b}\u{1b}");
    assert_eq!((state.views.len(), selected(&state).as_deref()), (1, Some("b")));
    assert_eq!(keys(&mut state, "q"), Some(Effect::Quit));
}

#[test]
fn what_is_selected_stays_selected() {
    let mut state = state(&["x:1", "y:1", "z:1"]);
    keys(&mut state, "\nj");
    fetched(&mut state, &["w:1", "x:1", "y:1"]);
    assert_eq!(selected(&state).as_deref(), Some("a y:1"));
    fetched(&mut state, &["w:1"]);
    assert_eq!(selected(&state).as_deref(), Some("a w:1"), "it is gone");
    fetched(&mut state, &[]);
    assert_eq!(selected(&state), None);
    keys(&mut state, "jkG\n");
}

#[test]
fn nothing_changes_without_a_yes() {
    let mut state = state(&["x:1"]);
    assert_eq!(keys(&mut state, "\ndn"), None);
    assert_eq!(keys(&mut state, "d\n"), None);
    let expected = Change::Server {
        service: "a".to_owned(),
        address: "x:1".to_owned(),
        state: Administrative::Drain,
    };
    assert_eq!(keys(&mut state, "dy"), Some(Effect::Change(expected)));
    assert_eq!(keys(&mut state, "dy"), None, "one at a time");
    let at = state.now;
    state.update(Event::Changed(Ok("done".to_owned())), at);
    assert!(state.notice.as_ref().is_some_and(|notice| !notice.is_error));
    state.update(Event::Tick, at + NOTICE);
    assert_eq!(state.notice, None);
    fetched(&mut state, &["x:1"]);
    assert!(keys(&mut state, "my").is_some());
}

#[test]
fn a_change_needs_a_question_that_was_on_the_screen() {
    let mut state = state(&["x:1"]);
    keys(&mut state, "\n");
    let now = state.now;
    let mut typed_ahead = |keys: &str| {
        let press = |char| state.update(Event::Key(Key::Char(char)), now);
        keys.chars().filter_map(press).count()
    };
    assert_eq!((typed_ahead("dy"), typed_ahead("yy")), (0, 0));
    let mut agree = |has_question, after| {
        state.drawn(has_question, now);
        let effect = state.update(Event::Key(Key::Char('y')), now + after);
        assert!(effect.is_some() || matches!(state.input, Input::Confirm { .. }));
        effect.is_some()
    };
    assert!(!agree(false, NOTICE / 4), "the window is too small for the question");
    assert!(!agree(true, Duration::from_millis(5)), "too soon to have read it");
    assert!(agree(true, READING_MIN));
}

#[test]
fn pasted_text_is_only_text() {
    let mut state = state(&["x:1", "y:1"]);
    let now = state.now;
    let paste = |state: &mut State, text: &str| {
        let effect = state.update(Event::Pasted(text.to_owned()), now);
        state.drawn(true, now);
        effect
    };
    assert_eq!(paste(&mut state, "\nd"), None);
    assert_eq!((state.views.len(), &state.input), (1, &Input::Normal));
    keys(&mut state, "\nd");
    assert_eq!(paste(&mut state, "y"), None);
    keys(&mut state, "n/");
    paste(&mut state, "y:1\n");
    assert_eq!((&*state.view().filter, state.table.rows.len()), ("y:1", 1));
}

#[test]
fn old_figures_are_no_ground_for_a_change() {
    let mut state = state(&["x:1"]);
    keys(&mut state, "\nd");
    let later = state.now + Duration::from_secs(10);
    assert_eq!(state.update(Event::Key(Key::Char('y')), later), None, "asked before");
    keys(&mut state, "d");
    assert_eq!(state.input, Input::Normal);
}

#[test]
fn a_pause_keeps_the_picture_and_allows_no_change() {
    let mut state = state(&["x:1"]);
    keys(&mut state, "\n ");
    fetched(&mut state, &["y:1"]);
    assert_eq!(selected(&state).as_deref(), Some("a x:1"));
    assert_eq!(keys(&mut state, "dy"), None);
    keys(&mut state, " ");
    fetched(&mut state, &["y:1"]);
    assert_eq!(selected(&state).as_deref(), Some("a y:1"));
    assert!(keys(&mut state, "dy").is_some());
    assert_eq!(keys(&mut state, "q"), None, "the change has not been answered");
    let now = state.now;
    state.update(Event::Changed(Ok("done".to_owned())), now);
    assert_eq!(keys(&mut state, "q"), Some(Effect::Quit));
}

#[test]
fn a_finding_about_one_server_leads_to_its_drain() {
    let drained = |servers: Value| {
        let mut picture = json!({ "services": [{ "name": "a", "eligible": 2, "servers": [
            { "address": "x:1", "state": "ready" }, { "address": "y:1", "state": "ready" },
        ] }] });
        picture["findings"] = json!({ "enabled": true, "findings": [{
            "rule": "server_slow", "subject": "x:1 of a", "service": "a", "servers": servers,
            "severity": "warning", "certainty": "certain", "what": "x:1 of a is slow.",
            "evidence": [], "why": "", "verify": "", "source": [], "is_present": true,
        }] });
        let mut state = State::new("127.0.0.1:9900".to_owned(), (80, 24), Moment::ZERO);
        let picture = serde_json::from_value(picture).unwrap();
        state.update(Event::Fetched(Ok(Box::new(picture)), Moment::ZERO), Moment::ZERO);
        assert!(matches!(&state.judgement.troubles[0].id, Id::Finding { .. }));
        let from_row = keys(&mut state, "edy");
        state.is_changing = false;
        assert_eq!(keys(&mut state, "\ndy"), from_row, "its page");
        from_row
    };
    let (service, address) = ("a".to_owned(), "x:1".to_owned());
    let drain = Change::Server { service, address, state: Administrative::Drain };
    assert_eq!(drained(json!(["x:1"])), Some(Effect::Change(drain)));
    assert_eq!(drained(json!(["x:1", "y:1"])), None);
}

#[test]
fn an_order_can_be_reversed() {
    let mut state = state(&["x:1", "y:1"]);
    let first = |state: &State| match &state.table.rows[0].id {
        Id::Server { address, .. } => address.clone(),
        other => panic!("{other:?}"),
    };
    keys(&mut state, "\ns");
    assert_eq!(first(&state), "x:1");
    keys(&mut state, "S");
    assert_eq!(first(&state), "y:1");
    keys(&mut state, "sS");
    assert!(state.view().is_reversed);
}

#[test]
fn a_service_can_be_in_maintenance_but_not_drained() {
    let mut state = state(&["x:1"]);
    let on = Effect::Change(Change::Service { service: "a".to_owned(), on: true });
    assert_eq!(keys(&mut state, "my"), Some(on));
    state.is_changing = false;
    assert_eq!(keys(&mut state, "dy"), None);
    assert!(state.notice.is_some() || state.input == Input::Normal);
    keys(&mut state, "cd");
    assert_eq!(state.input, Input::Normal);
}

#[test]
fn a_balancer_that_is_away_is_changed_by_nothing() {
    let mut state = state(&["x:1"]);
    let lost_at = Moment::from_millis(1_000);
    state.update(Event::Fetched(Err("nothing listens".to_owned()), lost_at), lost_at);
    state.update(
        Event::Fetched(Err("nothing listens".to_owned()), lost_at),
        Moment::from_millis(9_000),
    );
    assert_eq!(state.lost.as_ref().map(|lost| lost.since), Some(lost_at));
    assert_eq!(keys(&mut state, "\ndy"), None);
    fetched(&mut state, &["x:1"]);
    assert_eq!(state.lost, None);
}

#[test]
fn a_search_keeps_what_contains_the_text() {
    let mut state = state(&["x:1", "y:1"]);
    keys(&mut state, "\n/Y:");
    assert_eq!(state.table.rows.len(), 1);
    assert_eq!(selected(&state).as_deref(), Some("a y:1"));
    keys(&mut state, "\n");
    assert_eq!((&state.input, &*state.view().filter), (&Input::Normal, "Y:"));
    keys(&mut state, "\u{1b}");
    assert_eq!((state.table.rows.len(), state.views.len()), (2, 2));
    keys(&mut state, "/");
    keys(&mut state, &"a".repeat(1_000));
    assert_eq!(state.view().filter.len(), FILTER_CHARS_MAX);
}

#[test]
fn keys_lead_to_every_tab() {
    let mut state = state(&["x:1"]);
    for (at, (place, _)) in Place::TABS.iter().enumerate() {
        keys(&mut state, &(at + 1).to_string());
        assert_eq!(state.view().place, *place);
    }
    let now = state.now;
    state.update(Event::Key(Key::Tab), now);
    assert_eq!(state.view().place, Place::Services);
    state.update(Event::Key(Key::BackTab), now);
    assert_eq!(state.view().place, Place::Checks);
    assert!(state.needs().checks && !state.needs().requests);
    keys(&mut state, "?e");
    assert_eq!(state.view().place, Place::Checks, "a key closes the help, and does nothing else");
}
