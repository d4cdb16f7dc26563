//! A new process takes over from the one that started it: the new one's side.

use std::io::{PipeWriter, Write};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use admin_api::handover::{FORM, Manifest, Message, Opening};
use model::AffinityKey;

use crate::server_states::ServerStates;
use crate::sockets::Handed;

/// Names the descriptor of what is handed over.
pub(super) const VARIABLE: &str = "WEIR_HANDOVER";

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
        Predecessor::read(&text).map(Some)
    }

    fn read(text: &[u8]) -> Result<Predecessor, String> {
        let opening: Opening = serde_json::from_slice(text).map_err(|e| not_understood(&e))?;
        let says = opening.says.ok_or("what it hands over names no pipe to answer through")?;
        let says = PipeWriter::from(descriptor(says)?);
        let mut predecessor = Predecessor {
            says,
            handed: Handed::default(),
            servers: ServerStates::default(),
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
                "it hands over in form {}, and this version ({}) knows form {FORM} only: restart",
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
            self.handed.groups.push((Arc::from(listener.name), listener.address, sockets));
        }
        if let Some(admin) = manifest.admin {
            self.handed.admin = Some((admin.address, descriptor(admin.socket)?));
        }
        self.servers = ServerStates::from_handover(manifest.servers);
        // Versions before CDN-Loop have none.
        self.identity = manifest.instance.as_deref().and_then(proxy::Identity::from_id);
        // Absent from versions that did not hand it over, and where no service needs it.
        let key = manifest.affinity_key;
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
        let version = Some(env!("CARGO_PKG_VERSION").to_owned());
        self.say(&Message::Ready { ready: std::process::id(), version });
    }

    /// This process does not serve.
    pub(crate) fn say_failed(self, why: &str) {
        self.say(&Message::Failed { failed: why.to_owned() });
    }

    fn say(mut self, message: &Message) {
        let line = serde_json::json!(message);
        // If the other one has gone, nobody needs to know.
        let _ = self.says.write_all(format!("{line}\n").as_bytes());
    }
}

fn not_understood(error: &serde_json::Error) -> String {
    format!("what it hands over is not understood: {error}")
}

fn descriptor(number: i32) -> Result<OwnedFd, String> {
    os::handover::inherited(number).map_err(|error| format!("descriptor {number}: {error}"))
}
