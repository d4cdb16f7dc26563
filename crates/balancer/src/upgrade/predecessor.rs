//! A new process takes over from the one that started it: the new one's side.

use std::io::{PipeWriter, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use model::AffinityKey;
use serde_json::{Value, json};

use crate::server_states::ServerStates;
use crate::sockets::Handed;

/// Names the descriptor of what is handed over.
pub(super) const VARIABLE: &str = "WEIR_HANDOVER";

/// Form of what is handed over; a program that knows only another one refuses to take over.
pub(super) const FORM: u64 = 1;

/// The largest description of what is handed over: some 100,000 servers.
const MANIFEST_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The process that started this one so that it takes over.
pub(crate) struct Predecessor {
    says: PipeWriter,
    handed: Handed,
    servers: ServerStates,
    identity: Option<proxy::Identity>,
    affinity_key: Option<AffinityKey>,
}

impl Predecessor {
    /// What was handed over, if anything was. To be asked before anything is opened, and once.
    pub(crate) fn find() -> Result<Option<Predecessor>, String> {
        let Some(number) = std::env::var_os(VARIABLE) else {
            return Ok(None);
        };
        let number = number.to_str().and_then(|number| number.parse().ok());
        let number = number.ok_or_else(|| format!("{VARIABLE} holds no number"))?;
        let text = os::handover::inherited(number)
            .and_then(|file| os::handover::read_memory_file(file, MANIFEST_MAX_BYTES))
            .map_err(|error| format!("what it hands over cannot be read: {error}"))?;
        let manifest: Value = serde_json::from_slice(&text)
            .map_err(|error| format!("what it hands over is not understood: {error}"))?;
        Predecessor::read(&manifest).map(Some)
    }

    fn read(manifest: &Value) -> Result<Predecessor, String> {
        let says = PipeWriter::from(descriptor(&manifest["says"])?);
        let mut predecessor = Predecessor {
            says,
            handed: Handed::default(),
            servers: ServerStates::default(),
            identity: None,
            affinity_key: None,
        };
        match predecessor.take(manifest) {
            Ok(()) => Ok(predecessor),
            Err(why) => {
                predecessor.say_failed(&why);
                Err(why)
            }
        }
    }

    fn take(&mut self, manifest: &Value) -> Result<(), String> {
        if manifest["form"] != json!(FORM) {
            return Err(format!(
                "it hands over in form {}, and this version ({}) knows form {FORM} only: restart",
                manifest["form"],
                env!("CARGO_PKG_VERSION")
            ));
        }
        for listener in list(&manifest["listeners"]) {
            let (name, address) = (listener["name"].as_str(), listener["address"].as_str());
            let address = address.and_then(|address| address.parse::<SocketAddr>().ok());
            let (Some(name), Some(address)) = (name, address) else {
                return Err("a listener without a name or an address".to_owned());
            };
            let sockets = list(&listener["sockets"])
                .map(|number| Ok(TcpListener::from(descriptor(number)?)))
                .collect::<Result<_, String>>()?;
            self.handed.groups.push((Arc::from(name), address, sockets));
        }
        let admin = &manifest["admin"];
        if let Some(address) = admin["address"].as_str() {
            self.handed.admin = Some((address.to_owned(), descriptor(&admin["socket"])?));
        }
        self.servers = ServerStates::from_json(&manifest["servers"]);
        // Versions before CDN-Loop have none.
        self.identity = manifest["instance"].as_str().and_then(proxy::Identity::from_id);
        // Absent from versions that did not hand it over, and where no service needs it.
        let key = manifest["affinity_key"].as_str();
        self.affinity_key = key.and_then(|text| AffinityKey::parse(text.as_bytes()));
        Ok(())
    }

    /// The sockets, to serve on. What is not taken up is closed.
    pub(crate) fn take_sockets(&mut self) -> Handed {
        std::mem::take(&mut self.handed)
    }

    /// What was known of servers.
    pub(crate) fn take_servers(&mut self) -> ServerStates {
        std::mem::take(&mut self.servers)
    }

    /// Who it was in `CDN-Loop`, if it said so.
    pub(crate) fn take_identity(&mut self) -> Option<proxy::Identity> {
        self.identity.take()
    }

    /// Its own key for affinity cookies, if it had one.
    pub(crate) fn take_affinity_key(&mut self) -> Option<AffinityKey> {
        self.affinity_key.take()
    }

    /// This process serves: the other one may leave.
    pub(crate) fn say_ready(self) {
        self.say(&json!({ "ready": std::process::id(), "version": env!("CARGO_PKG_VERSION") }));
    }

    /// This process does not serve.
    pub(crate) fn say_failed(self, why: &str) {
        self.say(&json!({ "failed": why }));
    }

    fn say(mut self, message: &Value) {
        // If the other one has gone, nobody needs to know.
        let _ = self.says.write_all(format!("{message}\n").as_bytes());
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn descriptor(number: &Value) -> Result<OwnedFd, String> {
    let number = number.as_i64().and_then(|number| i32::try_from(number).ok());
    let number = number.ok_or("a descriptor has no number")?;
    os::handover::inherited(number).map_err(|error| format!("descriptor {number}: {error}"))
}
