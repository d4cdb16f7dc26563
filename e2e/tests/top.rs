//! `weir top` in a real terminal, before a real balancer.

use std::time::Duration;

use e2e::clients::Load;
use e2e::{App, Scene, Terminal, Weir, run, wait};
use rustix::process::Signal;

/// On a busy machine.
const SOON: Duration = Duration::from_secs(20);

/// The time in which a question is read; an answer before it does not count.
const READING: Duration = Duration::from_millis(300);

#[test]
fn a_slow_server_is_seen_and_drained_from_the_keyboard() {
    let Some(scene) = Scene::new("top", &["python3", "setsid"]) else { return };
    let quick = [11, 13].map(|host| App::start(&scene, host, &["--work-ms", "20"]));
    let slow = App::start(&scene, 12, &["--work-ms", "300"]);
    let servers = [quick[0].address(), slow.address(), quick[1].address()];
    let mut weir = Weir::start(&scene, &scene.one_service("in_flight_max = 64", &servers));
    let load = Load::start(&scene, weir.front(), "/", 8);
    let admin = scene.admin().to_string();
    let mut top = Terminal::start(&["top", "--admin", &admin], 80, 24);
    let address = slow.address().to_string();
    let state = |weir: &Weir| {
        let service = weir.api("/api/v1/services/app");
        let servers = service["servers"].as_array().unwrap();
        let slow = servers.iter().find(|server| server["address"] == *address).unwrap();
        slow["state"].as_str().unwrap().to_owned()
    };

    // What is wrong is a sentence, and the server is marked.
    top.wait_for(&[&format!("! {address} of app is slow: "), "[services]"], SOON);
    let figures = top.text();
    let row =
        figures.lines().find(|line| line.trim_start_matches(['>', '!', ' ']).starts_with("app "));
    assert!(row.is_some_and(|row| row.contains(" of 192")), "{figures}");

    // Nothing is drained without a yes, nor with one that was typed before the question was shown.
    top.press("\r/");
    top.paste(&address);
    top.press("\r");
    top.wait_for(&["1 of 3 found", "slow"], SOON);
    let question = format!("Drain {address} of app? It receives ");
    for keys in ["d", "dy"] {
        top.press(keys);
        top.wait_for(&[&question], SOON);
        wait::measure_for(READING);
        top.press("n");
        top.wait_for(&["d drain"], SOON);
    }
    top.paste("dy");
    wait::measure_for(READING);
    assert_eq!(state(&weir), "ready");

    top.press("d");
    top.wait_for(&[&question, "Then 2 of 3"], SOON);
    wait::measure_for(READING);
    top.press("y");
    wait::until("the drain", SOON, || (state(&weir) == "drain").then_some(()));
    top.wait_for(&[&format!("{address} of app: drain, ")], SOON);
    // Its page says why it receives nothing.
    top.press("\r");
    top.wait_for(&["no: an operator drained it."], SOON);
    top.press("r");
    top.wait_for(&["back into service?"], SOON);
    wait::measure_for(READING);
    top.press("y");
    wait::until("the end of the drain", SOON, || (state(&weir) == "ready").then_some(()));

    // A screen that another program has written to is drawn again.
    top.scribble();
    assert!(!top.text().contains("Receives requests"));
    top.press("\u{c}");
    top.wait_for(&["Receives requests", "[services]"], SOON);

    // A larger window has more columns. (Crossterm reads a key that comes together with a signal only with the
    // next one.)
    top.press("\u{1b}");
    top.wait_for(&["REQ/S"], SOON);
    top.resize(120, 40);
    top.wait_for(&["WEIGHT"], SOON);

    // A balancer that is gone is not taken for one without trouble.
    drop(load.finish());
    weir.kill();
    top.wait_for(&["! No new figures for "], SOON);
    assert_eq!(top.unknown(), Vec::<String>::new());
    assert!(!top.is_restored());
    top.signal(Signal::TERM);
    assert_eq!(top.wait(SOON), Some(0));
    wait::until("its terminal to be as before", SOON, || top.is_restored().then_some(()));
}

#[test]
fn a_quiet_screen_costs_few_bytes_and_ctrl_c_ends_it() {
    let Some(scene) = Scene::new("top-quiet", &["python3", "setsid"]) else { return };
    let app = App::start(&scene, 11, &[]);
    let _weir = Weir::start(&scene, &scene.one_service("", &[app.address()]));
    let mut top = Terminal::start(&["top", "--admin", &scene.admin().to_string()], 80, 24);
    // The sentence above may be a finding about this host, on which other tests run.
    top.wait_for(&[">  app", &format!("{} ", app.address()), "ready"], SOON);
    let before = top.bytes();
    wait::measure_for(Duration::from_secs(4));
    let bytes = top.bytes() - before;
    // Only what has changed: the uptime, a cell of a sparkline.
    assert!(bytes < 4_000, "{bytes} bytes in four seconds");
    top.press("\u{3}");
    assert_eq!(top.wait(SOON), Some(0));
    wait::until("its terminal to be as before", SOON, || top.is_restored().then_some(()));
}

#[test]
fn without_a_terminal_it_says_what_else_there_is() {
    let Some(scene) = Scene::new("top-pipe", &[]) else { return };
    let ended = run(&scene, &["top"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(2), ""));
    assert!(
        ended.stderr.contains("needs a terminal") && ended.stderr.contains("`weir status`"),
        "{ended:?}"
    );
}
