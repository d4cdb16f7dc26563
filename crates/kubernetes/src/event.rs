//! What is reported to logs.

use std::fmt;
use std::sync::Arc;

/// Something that an operator needs to know. Displays as one line without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The API server answers, after a failure or for the first time.
    Connected,
    /// The API server cannot be used.
    Disconnected {
        /// Why.
        error: Arc<str>,
    },
    /// All objects have been read: Weir serves.
    Complete,
    /// The start has waited for a while.
    Awaited {
        /// What has not been read: the first few.
        what: Vec<String>,
        /// How many others there are.
        others: usize,
    },
    /// The start does not wait for a namespace any more that Weir may not read. Nothing in it is served.
    Skipped {
        /// The namespace.
        namespace: Arc<str>,
    },
    /// A namespace that was skipped has been read completely and is served.
    Included {
        /// The namespace.
        namespace: Arc<str>,
    },
    /// Something has not been read or followed for a while, although the API server answers.
    Failing {
        /// What: `httproutes`.
        what: String,
        /// Why.
        error: Arc<str>,
    },
    /// What was failing is read and followed again.
    Followed {
        /// What.
        what: String,
    },
    /// The Lease has not been read or written for a while, although the API server answers.
    LeaseFailing {
        /// Why.
        error: Arc<str>,
    },
    /// The Lease is read and written again.
    LeaseFollowed,
    /// A request is forbidden.
    Forbidden {
        /// The request: `list httproutes`.
        what: String,
        /// The API server's message.
        error: Arc<str>,
    },
    /// A request that was forbidden is permitted.
    Permitted {
        /// The request.
        what: String,
    },
    /// The kinds of the Gateway API that are not installed have changed.
    Absent {
        /// The kinds.
        kinds: Vec<&'static str>,
    },
    /// An object cannot be read.
    Unreadable {
        /// The object: `HTTPRoute namespace/name`.
        object: String,
        /// Whether it is treated as absent. What happens otherwise is in `error`.
        is_ignored: bool,
        /// Why.
        error: Arc<str>,
    },
    /// This instance starts or stops writing statuses and Services.
    Leading {
        /// Whether it holds the Lease.
        is_leading: bool,
    },
    /// A write failed in a way that a repetition does not change.
    Refused {
        /// The write: `write the status of HTTPRoute namespace/name`.
        what: String,
        /// The API server's message.
        error: Arc<str>,
    },
    /// A status has no room for all of Weir's entries.
    LeftOut {
        /// The object.
        object: String,
        /// How many entries are not written.
        count: usize,
    },
    /// A Gateway or the Ingresses of a class have no address or port.
    NotExposed {
        /// `Gateway namespace/name` or `IngressClass name`.
        what: String,
        /// Why, and what to do.
        why: &'static str,
    },
    /// Further events of the same kind are not reported for a while.
    More {
        /// The latest one, as it displays.
        latest: String,
    },
    /// More objects of a kind are referred to than Weir reads.
    TooManyReferences {
        /// The kind: `ConfigMap`.
        kind: &'static str,
        /// How many are read.
        count_max: usize,
        /// How many of one namespace are read.
        namespace_count_max: usize,
        /// How many are not read.
        refused: usize,
    },
    /// ServicePolicies permit limits of Pods in more namespaces than Weir watches Pods of.
    TooManyPodNamespaces {
        /// In how many Pods are watched.
        count_max: usize,
        /// In how many they are not.
        refused: usize,
    },
}

impl Event {
    /// Returns whether an operator should act.
    pub fn is_warning(&self) -> bool {
        match self {
            Event::Connected
            | Event::Complete
            | Event::Included { .. }
            | Event::Followed { .. }
            | Event::LeaseFollowed
            | Event::Permitted { .. }
            | Event::Leading { .. } => false,
            Event::Absent { kinds } => !kinds.is_empty(),
            Event::Disconnected { .. }
            | Event::Awaited { .. }
            | Event::Skipped { .. }
            | Event::Failing { .. }
            | Event::LeaseFailing { .. }
            | Event::Forbidden { .. }
            | Event::Unreadable { .. }
            | Event::Refused { .. }
            | Event::LeftOut { .. }
            | Event::NotExposed { .. }
            | Event::More { .. }
            | Event::TooManyReferences { .. }
            | Event::TooManyPodNamespaces { .. } => true,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Connected => f.write_str("connected to the Kubernetes API server"),
            Event::Disconnected { error } => write!(
                f,
                "the Kubernetes API server cannot be used: {error}; traffic is served as before, \
                 changes to the cluster are seen once it answers"
            ),
            Event::Complete => f.write_str("all Kubernetes objects have been read"),
            Event::Awaited { what, others } => write_awaited(f, what, *others),
            Event::Skipped { namespace } => write!(
                f,
                "namespace {namespace} cannot be read completely, so nothing in it is served. \
                 Create it, or its Role and RoleBinding, or remove it from the list of namespaces"
            ),
            Event::Included { namespace } => {
                write!(f, "namespace {namespace} has been read completely and is served")
            }
            Event::Failing { what, error } => write!(
                f,
                "{what} could not be read or followed for a minute: {error}; what is known stays in \
                 use"
            ),
            Event::Followed { what } => write!(f, "{what} can be read and followed again"),
            Event::LeaseFailing { error } => write!(
                f,
                "the Lease could not be read or written for a minute: {error}; this instance \
                 serves, but cannot become the one that writes statuses and Services. Check its \
                 Role in its own namespace"
            ),
            Event::LeaseFollowed => f.write_str("the Lease can be read and written again"),
            Event::Forbidden { what, error } => write!(
                f,
                "Weir's ServiceAccount may not {what}: {error}; what is known stays in use. Check \
                 the ClusterRole"
            ),
            Event::Permitted { what } => write!(f, "Weir's ServiceAccount may {what} again"),
            Event::Absent { kinds } => write_absent(f, kinds),
            Event::Unreadable { object, is_ignored, error } => {
                let ignored = if *is_ignored { " and is ignored" } else { "" };
                write!(f, "{object} cannot be read{ignored}: {error}")
            }
            Event::Leading { is_leading: true } => {
                f.write_str("this instance writes the statuses of Kubernetes objects")
            }
            Event::Leading { is_leading: false } => {
                f.write_str("this instance no longer writes the statuses of Kubernetes objects")
            }
            Event::Refused { what, error } => {
                write!(f, "the Kubernetes API server refused to {what}: {error}")
            }
            Event::LeftOut { object, count } => write!(
                f,
                "the status of {object} is full: {count} entries of Weir are not written, because \
                 other controllers have entries in it"
            ),
            Event::NotExposed { what, why } => write!(f, "{what} is not served: {why}"),
            Event::More { latest } => {
                write!(f, "{latest}; further messages like this are not logged for a minute")
            }
            Event::TooManyReferences { kind, count_max, namespace_count_max, refused } => write!(
                f,
                "more than {count_max} objects of the kind {kind} are referred to, or more than \
                 {namespace_count_max} of a namespace; those in use stay, {refused} are not read"
            ),
            Event::TooManyPodNamespaces { count_max, refused } => write!(
                f,
                "ServicePolicies permit Pods to state limits in more than {count_max} namespaces; \
                 in {refused} of them, Pods are not read and their limits do not count"
            ),
        }
    }
}

fn write_awaited(f: &mut fmt::Formatter<'_>, what: &[String], others: usize) -> fmt::Result {
    write!(f, "no Gateway is served until these have been read: {}", what.join(", "))?;
    if others > 0 {
        write!(f, " and {others} others")?;
    }
    f.write_str(". weir status shows why they cannot be read")
}

fn write_absent(f: &mut fmt::Formatter<'_>, kinds: &[&str]) -> fmt::Result {
    if kinds.is_empty() {
        return f.write_str("all kinds of the Gateway API are installed");
    }
    write!(
        f,
        "these kinds of the Gateway API are not installed: {}; Weir works without them. To use \
         them, install the CRDs",
        kinds.join(", ")
    )
}
