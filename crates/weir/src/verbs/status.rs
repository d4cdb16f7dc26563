//! `weir status`: what a running balancer is doing.

use std::io::{self, IsTerminal};
use std::time::Duration;

use balancer::signals::Signals;
use serde_json::{Value, json};

use super::check::{print, print_json, print_on};
use crate::api_client::{Client, ClientError};
use crate::flags::{Common, Exit, StatusArgs};
use crate::render;

/// What has been under way for a second or more, the slowest of it.
const SLOWEST: &str = "/api/v1/requests?longer_than_ms=1000&limit=5";

/// Clears a terminal and begins at its top.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J\u{1b}[3J";

pub(crate) fn run(args: &StatusArgs, common: Common) -> Exit {
    let client = match Client::new(&args.admin) {
        Ok(client) => client,
        Err(error) => return error.tell(),
    };
    // At least once it must be there.
    let first = match look(&client) {
        Ok(look) => look,
        Err(error) => return error.tell(),
    };
    let colour = common.colours_stdout();
    match args.watch {
        None if args.json => print_json(&first),
        None => print(&render::status::text(&first, colour)),
        Some(every) => watch(&client, first, every, args.json, colour),
    }
}

/// Everything that is shown, asked for in one go.
fn look(client: &Client) -> Result<Value, ClientError> {
    let mut status: Value = client.get("/api/v1/status")?;
    let mut services: Value = client.get("/api/v1/services")?;
    let mut causes: Value = client.get("/api/v1/causes")?;
    // Their pages are `weir explain`'s.
    for cause in causes["causes"].as_array_mut().into_iter().flatten() {
        let counted = ["name", "fault", "count", "services"];
        let kept = counted.map(|key| (key.to_owned(), cause[key].take()));
        *cause = Value::Object(kept.into_iter().collect());
    }
    status["services"] = services["services"].take();
    status["requests"] = causes["requests"].take();
    status["causes"] = causes["causes"].take();
    // A balancer that cannot tell is shown without.
    status["doctor"] = client.get("/api/v1/findings").unwrap_or_default();
    status["under_way"] = client.get(SLOWEST).unwrap_or_default();
    Ok(status)
}

/// Shows it again and again. A balancer that is away for a while is waited for.
fn watch(client: &Client, first: Value, every: Duration, json: bool, colour: bool) -> Exit {
    let mut signals = match Signals::catch() {
        Ok(signals) => signals,
        Err(error) => {
            eprintln!("weir: no signals: {error}");
            return Exit::Failed;
        }
    };
    let clear = if io::stdout().is_terminal() && !json { CLEAR } else { "" };
    let mut looked: Result<Value, ClientError> = Ok(first);
    loop {
        let text = match &looked {
            Ok(look) if json => format!("{look}\n"),
            Ok(look) => format!("{clear}{}\n", render::status::text(look, colour)),
            Err(error) if json => format!("{}\n", json!({ "error": error.to_string() })),
            Err(error) => format!("{clear}{error}\n"),
        };
        if let Err(ended) = print_on(&text) {
            return ended;
        }
        if signals.wait_at_most(every).is_some() {
            return Exit::Done;
        }
        looked = look(client);
    }
}
