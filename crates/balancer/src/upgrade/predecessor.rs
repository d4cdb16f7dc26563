//! The new process's side of an upgrade.

use std::io::{PipeWriter, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use admin_api::changes::Change;
use admin_api::handover::{self, FORM, Manifest, Message, Opening};
use model::AffinityKey;

use crate::departing::Departing;
use crate::server_states::ServerStates;
use crate::sockets::{Handed, HandedGroup};

/// Environment variable with the number of the descriptor from which the manifest is read.
pub(super) const VARIABLE: &str = "WEIR_HANDOVER";

/// Maximum size of the manifest: about 100,000 servers.
const MANIFEST_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Maximum size of the history of traffic. With the default bound it is less than a tenth of that.
const HISTORY_MAX_BYTES: u64 = 1024 * 1024 * 1024;

/// The process from which this one takes over.
pub(crate) struct Predecessor {
    says: PipeWriter,
    handed: Handed,
    servers: ServerStates,
    maintenance: Vec<handover::Maintenance>,
    orders: Vec<handover::FleetOrder>,
    changes: Vec<Change>,
    history: Option<Vec<u8>>,
    identity: Option<proxy::Identity>,
    affinity_key: Option<AffinityKey>,
}

impl Predecessor {
    /// Reads what was handed over, if anything was. Call it once, before any descriptor is opened.
    pub(crate) fn find() -> Result<Option<Predecessor>, String> {
        let Some(number) = std::env::var_os(VARIABLE) else {
            return Ok(None);
        };
        let number = number.to_str().and_then(|number| number.parse().ok());
        let number = number.ok_or_else(|| format!("{VARIABLE} is not a number"))?;
        let text = os::handover::inherited(number)
            .and_then(|file| os::handover::read_memory_file(file, MANIFEST_MAX_BYTES))
            .map_err(|error| format!("its manifest cannot be read: {error}"))?;
        Predecessor::read(&text).map(Some)
    }

    fn read(text: &[u8]) -> Result<Predecessor, String> {
        let opening: Opening = serde_json::from_slice(text).map_err(|e| not_understood(&e))?;
        let says = opening.says.ok_or("its manifest names no pipe for the answer")?;
        let says = PipeWriter::from(descriptor(says)?);
        let mut predecessor = Predecessor {
            says,
            handed: Handed::default(),
            servers: ServerStates::default(),
            maintenance: Vec::new(),
            orders: Vec::new(),
            changes: Vec::new(),
            history: None,
            identity: None,
            affinity_key: None,
        };
        match predecessor.take(opening, text) {
            Ok(()) => Ok(predecessor),
            Err(why) => {
                predecessor.say_failed(&why);
                Err(why)
            }
        }
    }

    fn take(&mut self, opening: Opening, text: &[u8]) -> Result<(), String> {
        if opening.form != FORM {
            return Err(format!(
                "its manifest has form {}, but this version ({}) supports only form {FORM}: restart",
                opening.form,
                env!("CARGO_PKG_VERSION")
            ));
        }
        let manifest: Manifest = serde_json::from_slice(text).map_err(|e| not_understood(&e))?;
        for listener in manifest.listeners {
            let sockets = listener.sockets.into_iter();
            let sockets = sockets
                .map(|number| Ok(TcpListener::from(descriptor(number)?)))
                .collect::<Result<_, String>>()?;
            self.handed.groups.push(HandedGroup {
                name: Arc::from(listener.name),
                address: listener.address,
                sockets,
                file: listener.file,
            });
        }
        if let Some(admin) = manifest.admin {
            self.handed.admin = Some((admin.address, descriptor(admin.socket)?));
        }
        if let Some(metrics) = manifest.metrics {
            let listener = TcpListener::from(descriptor(metrics.socket)?);
            self.handed.metrics = Some((metrics.address, listener));
        }
        if let Some(keda) = manifest.keda {
            let listener = TcpListener::from(descriptor(keda.socket)?);
            self.handed.keda = Some((keda.address, listener));
        }
        if let Some(fleet) = manifest.fleet {
            self.handed.fleet = Some((fleet.address, UdpSocket::from(descriptor(fleet.socket)?)));
        }
        self.servers = ServerStates::from_handover(manifest.servers);
        self.maintenance = manifest.maintenance;
        self.orders = manifest.orders;
        self.changes = manifest.changes;
        // Older versions do not send it.
        self.history = manifest.history.and_then(|number| {
            let file = descriptor(number);
            let read = file.and_then(|file| {
                os::handover::read_memory_file(file, HISTORY_MAX_BYTES).map_err(|e| e.to_string())
            });
            read.inspect_err(|why| tracing::warn!("the history of traffic begins again: {why}"))
                .ok()
        });
        // Older versions do not send it.
        self.identity = manifest.instance.as_deref().and_then(proxy::Identity::from_id);
        // Older versions do not send it; nor do versions whose services need none.
        let key = manifest.affinity_key;
        self.affinity_key = key.and_then(|text| AffinityKey::parse(text.as_bytes()));
        Ok(())
    }

    /// Takes the sockets. Those that are not used are closed.
    pub(crate) fn take_sockets(&mut self) -> Handed {
        std::mem::take(&mut self.handed)
    }

    /// Takes the state of servers.
    pub(crate) fn take_servers(&mut self) -> ServerStates {
        std::mem::take(&mut self.servers)
    }

    /// Takes what operators have put into maintenance.
    pub(crate) fn take_maintenance(&mut self) -> Vec<handover::Maintenance> {
        std::mem::take(&mut self.maintenance)
    }

    /// Takes the states of servers that are set for the whole fleet.
    pub(crate) fn take_orders(&mut self) -> Vec<handover::FleetOrder> {
        std::mem::take(&mut self.orders)
    }

    /// Takes the latest changes.
    pub(crate) fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// Takes the history of traffic, if it sent one.
    pub(crate) fn take_history(&mut self) -> Option<Vec<u8>> {
        self.history.take()
    }

    /// Returns its id in `CDN-Loop`, if it sent one.
    pub(crate) fn take_identity(&mut self) -> Option<proxy::Identity> {
        self.identity.take()
    }

    /// Returns its own key for affinity cookies, if it had one.
    pub(crate) fn take_affinity_key(&mut self) -> Option<AffinityKey> {
        self.affinity_key.take()
    }

    /// Reports that this process serves; the other one may leave, and closes its end of the pipe when it has.
    pub(crate) fn say_ready(self) -> Departing {
        let version = Some(env!("CARGO_PKG_VERSION").to_owned());
        Departing::new(self.say(&Message::Ready { ready: std::process::id(), version }))
    }

    /// Reports that this process cannot serve.
    pub(crate) fn say_failed(self, why: &str) {
        drop(self.say(&Message::Failed { failed: why.to_owned() }));
    }

    fn say(mut self, message: &Message) -> PipeWriter {
        let line = serde_json::json!(message);
        // An error means that the other process has exited, which then does not need the message.
        let _ = self.says.write_all(format!("{line}\n").as_bytes());
        self.says
    }
}

fn not_understood(error: &serde_json::Error) -> String {
    format!("its manifest cannot be parsed: {error}")
}

fn descriptor(number: i32) -> Result<OwnedFd, String> {
    os::handover::inherited(number).map_err(|error| format!("descriptor {number}: {error}"))
}
