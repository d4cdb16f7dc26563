//! The status of each object, as Weir writes it. The writer adds the time of the last transition to conditions.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::OrdMap;
use imbl::ordmap::DiffItem;

use crate::ir::RouteKind;
use crate::objects::gateway::Address;
use crate::objects::reference::ParentRef;
use crate::objects::{Key, Meta};

/// A condition. Its object's status states the generation that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its type: `Accepted`, `Programmed` and so on.
    pub kind: &'static str,
    /// Whether its status is `True` or `False`.
    pub is_true: bool,
    /// One word for programs.
    pub reason: &'static str,
    /// One or two sentences for people.
    pub message: String,
}

impl Condition {
    /// Creates a condition with the status `True`.
    pub fn yes(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Condition {
        Condition { kind, is_true: true, reason, message: message.into() }
    }

    /// Creates a condition with the status `False`.
    pub fn no(kind: &'static str, problem: &Problem) -> Condition {
        let Problem { reason, message } = problem.clone();
        Condition { kind, is_true: false, reason, message }
    }
}

/// Why something cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The reason of the condition.
    pub reason: &'static str,
    /// The message of the condition.
    pub message: String,
}

impl Problem {
    /// Creates a problem.
    pub fn new(reason: &'static str, message: impl Into<String>) -> Problem {
        Problem { reason, message: message.into() }
    }

    /// Creates a problem with a value that Weir does not support.
    pub fn unsupported(message: impl Into<String>) -> Problem {
        Problem::new("UnsupportedValue", message)
    }

    /// Returns the first of several problems; its message counts the others.
    pub fn first(problems: &[Problem]) -> Option<Problem> {
        let first = problems.first()?;
        let message = match problems.len() {
            1 => first.message.clone(),
            2 => format!("{} (1 more problem.)", first.message),
            count => format!("{} ({} more problems.)", first.message, count - 1),
        };
        Some(Problem { reason: first.reason, message })
    }
}

/// The status of each route. Copies share what they have in common.
pub type RouteStatuses = OrdMap<(RouteKind, Key), Arc<RouteStatus>>;

/// Returns the routes whose statuses differ. What the two have in common costs nothing.
pub fn differing<'a>(
    before: &'a RouteStatuses,
    now: &'a RouteStatuses,
) -> impl Iterator<Item = &'a (RouteKind, Key)> {
    before.diff(now).map(|one| match one {
        DiffItem::Add(route, _)
        | DiffItem::Remove(route, _)
        | DiffItem::Update { new: (route, _), .. } => route,
    })
}

/// The status of all objects that Weir is responsible for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statuses {
    /// GatewayClasses.
    pub classes: BTreeMap<Key, ClassStatus>,
    /// Gateways.
    pub gateways: BTreeMap<Key, GatewayStatus>,
    /// ListenerSets.
    pub listener_sets: BTreeMap<Key, ListenerSetStatus>,
    /// Routes. A route whose parents are all managed by others has an entry without parents.
    pub routes: RouteStatuses,
    /// BackendTLSPolicies.
    pub policies: BTreeMap<Key, PolicyStatus>,
    /// ServicePolicies.
    pub service_policies: BTreeMap<Key, PolicyStatus>,
    /// RoutePolicies.
    pub route_policies: BTreeMap<Key, PolicyStatus>,
    /// Ingresses.
    pub ingresses: BTreeMap<Key, IngressStatus>,
}

/// The status of a GatewayClass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassStatus {
    /// The generation that was read.
    pub generation: i64,
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// The features of the Gateway API that Weir supports, sorted.
    pub supported_features: Vec<String>,
}

/// The status of a Gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayStatus {
    /// The generation that was read.
    pub generation: i64,
    /// Its addresses.
    pub addresses: Vec<Address>,
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// Its own listeners.
    pub listeners: Vec<ListenerStatus>,
    /// How many ListenerSets add listeners.
    pub attached_listener_sets: u32,
}

/// The status of a ListenerSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerSetStatus {
    /// The generation that was read.
    pub generation: i64,
    /// Its conditions.
    pub conditions: Vec<Condition>,
    /// Its listeners. Empty if it is not attached.
    pub listeners: Vec<ListenerStatus>,
}

/// The status of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerStatus {
    /// The listener.
    pub name: Arc<str>,
    /// The kinds of routes that may attach.
    pub supported_kinds: Vec<RouteKind>,
    /// How many accepted routes are attached.
    pub attached_routes: u32,
    /// Its conditions.
    pub conditions: Vec<Condition>,
}

/// The status of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteStatus {
    /// The generation that was read.
    pub generation: i64,
    /// Its parents that Weir manages.
    pub parents: Vec<ParentStatus>,
}

/// The status of a route at one of its parents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentStatus {
    /// The parent, as the route states it.
    pub parent_ref: ParentRef,
    /// Weir's name.
    pub controller_name: Arc<str>,
    /// Its conditions.
    pub conditions: Vec<Condition>,
}

/// The status of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyStatus {
    /// The generation that was read.
    pub generation: i64,
    /// The Gateways that use the policy.
    pub ancestors: Vec<AncestorStatus>,
}

/// The status of a policy at one Gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AncestorStatus {
    /// The Gateway.
    pub ancestor: ParentRef,
    /// Weir's name.
    pub controller_name: Arc<str>,
    /// Its conditions.
    pub conditions: Vec<Condition>,
}

/// The status of an Ingress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressStatus {
    /// The generation that was read.
    pub generation: i64,
    /// What its class implies among Gateways.
    pub gateway: Key,
    /// The addresses at which it is served.
    pub addresses: Vec<Address>,
    /// The ports.
    pub ports: Vec<u16>,
}

/// What a user should know about an object that has no conditions: an event on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The kind of the object.
    pub kind: &'static str,
    /// The object.
    pub key: Key,
    /// Its UID.
    pub uid: Arc<str>,
    /// One word for programs.
    pub reason: &'static str,
    /// What Weir does, and what to do. At most [`Notice::MESSAGE_MAX_BYTES`].
    pub message: String,
}

impl Notice {
    /// The API's limit for the message of an event.
    pub const MESSAGE_MAX_BYTES: usize = 1024;

    /// Creates a notice. A message that is too long is cut, and control characters become spaces.
    pub fn new(kind: &'static str, metadata: &Meta, problem: Problem) -> Notice {
        let Problem { reason, message } = problem;
        let mut message = message.replace(char::is_control, " ");
        if message.len() > Self::MESSAGE_MAX_BYTES {
            message.truncate(message.floor_char_boundary(Self::MESSAGE_MAX_BYTES - 3));
            message.push_str("...");
        }
        Notice { kind, key: metadata.key(), uid: Arc::clone(&metadata.uid), reason, message }
    }
}
