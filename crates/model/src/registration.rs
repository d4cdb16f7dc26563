//! How Weir registers a listener in Consul.

use std::sync::Arc;

/// The entry of one listener in Consul.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Its ID, which identifies it at an agent. A new process that takes over has the same.
    pub id: Box<str>,
    /// The name of the service there.
    pub service: Arc<str>,
    /// Its tags.
    pub tags: Vec<Box<str>>,
    /// An IP address or a host name; `None`: Consul uses the node's.
    pub address: Option<Box<str>>,
    /// Its port.
    pub port: u16,
}

impl Registration {
    /// Returns the ID of an entry whose configuration has none: `weir-NAME-PORT`.
    pub fn default_id(service: &str, port: u16) -> Box<str> {
        format!("weir-{service}-{port}").into()
    }

    /// Returns where clients find it, for people.
    pub fn shown_address(&self) -> String {
        match self.address.as_deref() {
            Some(ip) if ip.contains(':') => format!("[{ip}]:{}", self.port),
            Some(host) => format!("{host}:{}", self.port),
            None => format!("the node's address, port {}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_an_id_and_an_address() {
        let at = |address: Option<&str>| Registration {
            id: Registration::default_id("edge", 443),
            service: "edge".into(),
            tags: Vec::new(),
            address: address.map(Into::into),
            port: 443,
        };
        assert_eq!(&*at(None).id, "weir-edge-443");
        assert_eq!(at(Some("10.0.0.5")).shown_address(), "10.0.0.5:443");
        assert_eq!(at(Some("2001:db8::1")).shown_address(), "[2001:db8::1]:443");
        assert_eq!(at(None).shown_address(), "the node's address, port 443");
    }
}
