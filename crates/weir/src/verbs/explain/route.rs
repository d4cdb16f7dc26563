//! `weir explain route URL`: which route a request would take, and which server it would get. A running
//! balancer is asked, or a configuration file.

use std::path::Path;
use std::sync::Arc;

use admin::{RouteQuery, explain_route};
use admin_api::routes::{ExplainedAnswer, RouteExplanation};
use control::load::{Folder, LoadError};
use decide::Registry;
use model::Cause;
use serde_json::json;

use super::super::check::{print, print_json};
use crate::api_client::{Client, segment};
use crate::flags::{Common, Exit, ExplainRouteArgs};
use crate::render::explained_route;

pub(super) fn run(args: &ExplainRouteArgs, common: Common) -> Exit {
    let explained = match &args.config {
        Some(file) => by_file(file, args, common),
        None => by_balancer(args),
    };
    let explanation = match explained {
        Ok(explanation) => explanation,
        Err(exit) => return exit,
    };
    let printed = if args.json {
        print_json(&json!(explanation))
    } else {
        print(&explained_route::text(&explanation))
    };
    match printed {
        Exit::Done if explanation.route.is_none() => Exit::NoRoute,
        other => other,
    }
}

/// Returns the parameters of the API.
fn parameters(args: &ExplainRouteArgs) -> Vec<(String, String)> {
    let mut parameters = vec![("url", args.url.clone()), ("method", args.method.clone())];
    parameters.extend(args.listener.iter().map(|listener| ("listener", listener.clone())));
    parameters.extend(args.client.iter().map(|client| ("client", client.to_string())));
    parameters.extend(args.fields.iter().map(|field| ("field", field.clone())));
    parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn by_balancer(args: &ExplainRouteArgs) -> Result<RouteExplanation, Exit> {
    let query: Vec<String> =
        parameters(args).iter().map(|(name, value)| format!("{name}={}", segment(value))).collect();
    let path = format!("/api/v1/routes/explain?{}", query.join("&"));
    let explained = Client::new(&args.admin).and_then(|client| client.get(&path));
    explained.map_err(|error| error.tell())
}

/// Explains by a file alone: no server is chosen, since their states are not known.
fn by_file(file: &Path, args: &ExplainRouteArgs, common: Common) -> Result<RouteExplanation, Exit> {
    let mistake = |why: String| {
        eprintln!("weir: {why}");
        Exit::Mistake
    };
    let query = RouteQuery::read(&parameters(args)).map_err(mistake)?;
    let text = control::load::read(file).map_err(|source| {
        mistake(LoadError::Unreadable { path: file.to_path_buf(), source }.to_string())
    })?;
    let name = file.display().to_string();
    let checked = config::check(&text, &name, &Folder::of(file)).map_err(|report| {
        eprint!("{}", report.render(common.colours_stderr()));
        Exit::Mistake
    })?;
    let registry = Registry::new();
    let now = os::clock::now();
    registry.publish(Arc::new(checked.snapshot), now);
    let mut explanation = explain_route(&registry, &query, now).map_err(mistake)?;
    if let Some(server) = explanation.server.take() {
        // What the file says about maintenance is known, unless the service was drawn.
        let of_file =
            |answer: &ExplainedAnswer| answer.cause == Cause::Maintenance.name() && !server.example;
        explanation.answer = explanation.answer.filter(of_file);
        let note = "by the file alone: no balancer was asked, and so no server was chosen";
        explanation.notes.push(note.to_owned());
    }
    Ok(explanation)
}
