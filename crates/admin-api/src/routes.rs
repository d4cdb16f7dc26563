//! Which route a request would take, and which server it would get.

use decide::explain::{By, Why};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Word;

model::words! {
    /// What a route does.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RouteAction {
        /// Forwards to a service.
        Forward = "forward",
        /// Redirects.
        Redirect = "redirect",
        /// Refuses.
        Deny = "deny",
        /// Answers as configured.
        Respond = "respond",
    }
}

model::words! {
    /// What would become of a request at its service.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ServerOutcome {
        /// It would go to a server at once.
        Server = "server",
        /// It would wait in the queue.
        Waits = "waits",
        /// It would get no server.
        Refused = "refused",
    }
}

/// Why a request would take its route, and which server it would get.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RouteExplanation {
    /// The listener that is assumed.
    pub listener: ExplainedListener,
    /// The request as routes see it.
    pub request: ExplainedRequest,
    /// The route; null: none matches.
    pub route: Option<ExplainedRoute>,
    /// The answer that Weir would give itself; null: a server answers.
    pub answer: Option<ExplainedAnswer>,
    /// The server; null: the request would not reach its service.
    pub server: Option<ExplainedServer>,
    /// The other routes that come closest, in the order in which routes are tried; at most 32.
    pub considered: Vec<ConsideredRoute>,
    /// Number of other routes that are not listed.
    pub not_listed: usize,
    /// What this answer does not know or assumes, in sentences.
    pub notes: Vec<String>,
}

/// The listener that a request is assumed to come in on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExplainedListener {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: String,
    /// Why this one.
    pub why: String,
    /// Names of others that fit equally.
    pub others: Vec<String>,
}

/// A request as routes see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExplainedRequest {
    /// The method.
    pub method: String,
    /// The host in lower case, without a port and a trailing dot.
    pub host: String,
    /// The path in canonical form.
    pub path: String,
    /// The query; null: none.
    pub query: Option<String>,
    /// The client's address; null: unknown.
    pub client: Option<String>,
}

/// A branch of a route's split: a service, or a status that Weir answers with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RouteService {
    /// The service's name; empty if requests get `status`.
    pub name: String,
    /// The status that requests are answered with at once, instead of going to a service.
    pub status: Option<u16>,
    /// Its share relative to the others.
    pub weight: u32,
}

/// The route that a request would take.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExplainedRoute {
    /// Its number in the order in which routes are tried, from 1, as `weir check` shows it.
    pub number: usize,
    /// Its name.
    pub name: String,
    /// Where it is written, such as `weir.toml:12`; null: unknown.
    pub written_at: Option<String>,
    /// Its conditions, all of which the request meets; empty: it matches every request.
    pub conditions: Vec<String>,
    /// Why it is taken.
    pub why: String,
    /// What it does.
    pub action: Word<RouteAction>,
    /// The status that it answers with, if it answers itself.
    pub status: Option<u16>,
    /// Services that it forwards to; with several, one is drawn by weight.
    pub services: Vec<RouteService>,
    /// Services that receive copies of its requests.
    pub mirrors: Vec<String>,
    /// Name of the authentication that it requires; null: none.
    pub authentication: Option<String>,
    /// Names of its rate limits.
    pub rate_limits: Vec<String>,
    /// Whether it is in maintenance.
    pub maintenance: bool,
}

/// An answer that Weir gives itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExplainedAnswer {
    /// Its status; null: it depends on what the route asks about, or there is no response.
    pub status: Option<u16>,
    /// The cause that the access log has for it; `weir explain` has a page for each.
    pub cause: String,
    /// Why, in a sentence.
    pub why: String,
}

/// Another route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConsideredRoute {
    /// Its number in the order in which routes are tried, from 1.
    pub number: usize,
    /// Its name.
    pub name: String,
    /// Where it is written; null: unknown.
    pub written_at: Option<String>,
    /// Whether it matches, too, but another one is tried before it.
    pub matches: bool,
    /// Whether it comes closest of those that do not match; set only if no route matches.
    pub nearest: bool,
    /// Its first condition that the request does not meet, or why another one is tried before it.
    pub why: String,
}

/// The server that a request would get now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExplainedServer {
    /// The service; of several the one that was drawn.
    pub service: String,
    /// What would become of the request.
    pub outcome: Word<ServerOutcome>,
    /// The server's configured name; null: none.
    pub name: Option<String>,
    /// Its address; null: none.
    pub address: Option<String>,
    /// How it was chosen; null: none was.
    pub by: Option<Word<By>>,
    /// Whether chance decides, so that the next request may get another one.
    pub example: bool,
    /// Why, in a sentence.
    pub why: String,
    /// The service's servers in order of configuration: at most 32, always with the chosen one.
    pub servers: Vec<ServerConsidered>,
    /// Number of servers that are not listed.
    pub not_listed: u32,
}

/// A server that was considered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ServerConsidered {
    /// Its configured name.
    pub name: String,
    /// Its address.
    pub address: String,
    /// Why it was chosen or passed over.
    pub why: Word<Why>,
    /// Requests in flight at its address.
    pub in_flight: u32,
}
