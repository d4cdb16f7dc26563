//! What Consul says about the instances of a service, as the fake one says it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// What the checks of an instance say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Health {
    /// All pass.
    #[default]
    Passing,
    /// One warns.
    Warning,
    /// One fails.
    Critical,
    /// The service is in maintenance mode.
    ServiceMaintenance,
    /// The node is.
    NodeMaintenance,
}

/// An instance of a service.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// Its ID, unique on its node.
    pub id: String,
    /// The node's name.
    pub node: String,
    /// The node's address.
    pub node_address: String,
    /// The node's metadata.
    pub node_meta: BTreeMap<String, String>,
    /// Its own address; empty if it is the node's.
    pub address: String,
    /// Its port; 0 if it has none.
    pub port: u16,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its metadata.
    pub meta: BTreeMap<String, String>,
    /// Weights while it passes and while it warns.
    pub weights: (u32, u32),
    /// What its checks say.
    pub health: Health,
}

impl Instance {
    /// One that passes, on the node `node1`, without metadata.
    pub fn new(id: &str, address: std::net::SocketAddr) -> Instance {
        Instance {
            id: id.to_owned(),
            node: "node1".to_owned(),
            node_address: "127.0.0.1".to_owned(),
            node_meta: BTreeMap::new(),
            address: address.ip().to_string(),
            port: address.port(),
            tags: Vec::new(),
            meta: BTreeMap::new(),
            weights: (1, 1),
            health: Health::Passing,
        }
    }

    /// The same, with another health.
    #[must_use]
    pub fn health(mut self, health: Health) -> Instance {
        self.health = health;
        self
    }

    /// The same, with one more entry of metadata.
    #[must_use]
    pub fn meta(mut self, key: &str, value: &str) -> Instance {
        self.meta.insert(key.to_owned(), value.to_owned());
        self
    }

    /// The same, with one more tag.
    #[must_use]
    pub fn tag(mut self, tag: &str) -> Instance {
        self.tags.push(tag.to_owned());
        self
    }

    /// Whether `?passing` lists it.
    pub(super) fn is_passing(&self) -> bool {
        self.health == Health::Passing
    }

    /// Its entry in the answer about `service`, last changed at `index`.
    pub(super) fn entry(&self, service: &str, index: u64) -> Value {
        let mut entry = json!({
            "Node": {
                "ID": "00000000-0000-4000-8000-000000000000", "Node": self.node,
                "Address": self.node_address, "Datacenter": "dc1",
                "TaggedAddresses": { "lan": self.node_address, "wan": self.node_address },
                "Meta": self.node_meta, "CreateIndex": 1, "ModifyIndex": 1,
            },
            "Service": {
                "ID": self.id, "Service": service, "Tags": self.tags, "Address": self.address,
                "Meta": self.meta, "Port": self.port,
                "Weights": { "Passing": self.weights.0, "Warning": self.weights.1 },
                "EnableTagOverride": false,
                "Proxy": { "Mode": "", "MeshGateway": {}, "Expose": {} }, "Connect": {},
                "PeerName": "", "CreateIndex": index, "ModifyIndex": index,
            },
            "Checks": self.checks(service, index),
        });
        // Consul leaves out a port of 0.
        if self.port == 0 {
            entry["Service"].as_object_mut().expect("an object").remove("Port");
        }
        entry
    }

    fn checks(&self, service: &str, index: u64) -> Vec<Value> {
        let check = |id: &str, status: &str, kind: &str, of_service: bool| {
            let (service_id, name) = if of_service { (&*self.id, service) } else { ("", "") };
            json!({
                "Node": self.node, "CheckID": id, "Name": id, "Status": status, "Notes": "",
                "Output": "", "ServiceID": service_id, "ServiceName": name, "ServiceTags": [],
                "Type": kind, "Interval": "", "Timeout": "", "ExposedPort": 0, "Definition": {},
                "CreateIndex": index, "ModifyIndex": index,
            })
        };
        let status = match self.health {
            Health::Warning => "warning",
            Health::Critical => "critical",
            Health::Passing | Health::ServiceMaintenance | Health::NodeMaintenance => "passing",
        };
        let mut all = vec![
            check("serfHealth", "passing", "", false),
            check(&format!("service:{}", self.id), status, "ttl", true),
        ];
        match self.health {
            Health::ServiceMaintenance => {
                let id = format!("_service_maintenance:{}", self.id);
                all.push(check(&id, "critical", "maintenance", true));
            }
            Health::NodeMaintenance => {
                all.push(check("_node_maintenance", "critical", "maintenance", false));
            }
            Health::Passing | Health::Warning | Health::Critical => {}
        }
        all
    }
}
