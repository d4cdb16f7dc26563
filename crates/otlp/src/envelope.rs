//! What is around the items of every message: the resource they are from, the scope, the bytes.

use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1;
use prost::Message;

use crate::attributes::Attributes;

/// The name of the instrumentation scope of all items.
pub const SCOPE: &str = "weir";

/// The process that the items are from. Empty texts are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// `service.name`, usually `weir`.
    pub service_name: String,
    /// `service.version`, also the scope's version.
    pub version: String,
    /// `service.instance.id`: unique among the instances of this service.
    pub instance: String,
    /// `host.name`.
    pub host: String,
    /// `process.pid`; 0 if unknown.
    pub pid: u32,
}

impl Resource {
    /// Returns it as a message.
    pub(crate) fn message(&self) -> v1::Resource {
        let mut attributes = Attributes::default();
        attributes.text("service.name", &self.service_name);
        attributes.text("service.version", &self.version);
        attributes.text("service.instance.id", &self.instance);
        attributes.text("host.name", &self.host);
        attributes.whole("process.pid", Some(self.pid).filter(|pid| *pid > 0));
        v1::Resource { attributes: attributes.into_messages(), ..v1::Resource::default() }
    }

    /// Returns the scope of the items.
    pub(crate) fn scope(&self) -> InstrumentationScope {
        InstrumentationScope {
            name: SCOPE.to_owned(),
            version: self.version.clone(),
            ..InstrumentationScope::default()
        }
    }
}

/// The body of a request to a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The message. Not worth sending if there are no items.
    pub body: Vec<u8>,
    /// Number of spans, log records or data points in it: what a collector counts as rejected.
    pub items: u64,
    /// Number of access lines that are not in it, because they could not be read or, for traces, have no
    /// trace.
    pub unreadable: u64,
}

impl Encoded {
    /// Encodes `message`, which has `items` items.
    pub(crate) fn new(message: &impl Message, items: usize, unreadable: u64) -> Encoded {
        Encoded { body: message.encode_to_vec(), items: items as u64, unreadable }
    }
}
