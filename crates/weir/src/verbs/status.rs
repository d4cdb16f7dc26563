//! `weir status`: what a running balancer is doing.

use std::io::{self, IsTerminal};
use std::time::Duration;

use admin_api::causes::Causes;
use admin_api::services::Services;
use balancer::signals::Signals;
use serde_json::json;

use super::check::{print, print_json, print_on};
use crate::api_client::{Client, ClientError};
use crate::flags::{Common, Exit, StatusArgs};
use crate::render;
use crate::render::status::{CauseCount, Look};

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
        None if args.json => print_json(&json!(first)),
        None => print(&render::status::text(&first, colour)),
        Some(every) => watch(&client, first, every, args.json, colour),
    }
}

/// Asks for everything that is shown.
fn look(client: &Client) -> Result<Look, ClientError> {
    let Services { services } = client.get("/api/v1/services")?;
    let Causes { requests, causes } = client.get("/api/v1/causes")?;
    Ok(Look {
        status: client.get("/api/v1/status")?,
        services,
        requests,
        causes: causes.into_iter().map(CauseCount::from).collect(),
        // A balancer that cannot answer these is shown without them.
        doctor: client.get("/api/v1/findings").ok(),
        traffic: client.get("/api/v1/traffic").ok(),
        under_way: client.get(SLOWEST).ok(),
    })
}

/// Shows it again and again. A balancer that is away for a while is waited for.
fn watch(client: &Client, first: Look, every: Duration, json: bool, colour: bool) -> Exit {
    let mut signals = match Signals::catch() {
        Ok(signals) => signals,
        Err(error) => {
            eprintln!("weir: no signals: {error}");
            return Exit::Failed;
        }
    };
    let clear = if io::stdout().is_terminal() && !json { CLEAR } else { "" };
    let mut looked: Result<Look, ClientError> = Ok(first);
    loop {
        let text = match &looked {
            Ok(look) if json => format!("{}\n", json!(look)),
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
