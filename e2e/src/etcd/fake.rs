//! An etcd inside the test: it answers range and watch of its JSON gateway with what the test sets, and it fails on
//! demand. It has no other call.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::{decode, encode};
use crate::rogue::{Peer, Rogue};

/// Between two looks at whether the peer of a watch has gone.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What goes wrong from now on. Watches that are open are closed when it begins and when it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Every call gets this status and body.
    Answer(u16, String),
    /// No call is answered.
    Hang,
    /// Connections are closed.
    Close,
    /// Range is answered with this body.
    Range(String),
    /// A watch says this line in place of `created`, and then no more.
    Line(String),
    /// A watch says this line behind `created`, and then no more.
    LaterLine(String),
    /// A watch says a line that has this many bytes and no end, in place of `created`.
    LongLine(usize),
    /// A watch ends at once, behind `created`.
    Ends,
}

impl Fault {
    /// The history that a watch needs is gone.
    pub fn compacted(revision: i64) -> Fault {
        let result = json!({ "header": { "revision": revision.to_string() }, "canceled": true,
            "compact_revision": revision.to_string(),
            "cancel_reason": "etcdserver: mvcc: required revision has been compacted" });
        Fault::LaterLine(json!({ "result": result }).to_string())
    }

    /// Whether watches meet it, and not range.
    fn is_of_watches(&self) -> bool {
        matches!(self, Fault::Line(_) | Fault::LaterLine(_) | Fault::LongLine(_) | Fault::Ends)
    }
}

#[derive(Default)]
struct State {
    revision: i64,
    keys: BTreeMap<String, (String, i64)>,
    /// Revision and event of each change.
    events: Vec<(i64, Value)>,
    fault: Option<Fault>,
    /// Changes when open connections must be closed.
    faults: u64,
    ranges: u64,
    watches: u64,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// A running one.
pub struct FakeEtcd {
    rogue: Rogue,
    shared: Arc<Shared>,
}

impl FakeEtcd {
    /// Starts one at `address`, without keys, at revision 1.
    pub fn start(address: SocketAddr) -> FakeEtcd {
        let shared = Arc::<Shared>::default();
        shared.lock().revision = 1;
        let serving = Arc::clone(&shared);
        let rogue = Rogue::start(address, move |peer| serving.serve(peer));
        FakeEtcd { rogue, shared }
    }

    /// Where clients reach it.
    pub fn url(&self) -> String {
        format!("http://{}", self.rogue.address())
    }

    /// Sets a key.
    pub fn put(&self, key: &str, value: &str) {
        self.shared.change(|state| {
            state.revision += 1;
            let revision = state.revision;
            state.keys.insert(key.to_owned(), (value.to_owned(), revision));
            state.events.push((revision, json!({ "kv": entry(key, value, revision) })));
        });
    }

    /// Deletes a key.
    pub fn delete(&self, key: &str) {
        self.shared.change(|state| {
            state.revision += 1;
            let revision = state.revision;
            state.keys.remove(key);
            let kv = json!({ "key": encode(key), "mod_revision": revision.to_string() });
            state.events.push((revision, json!({ "type": "DELETE", "kv": kv })));
        });
    }

    /// The keys that there are.
    pub fn keys(&self) -> Vec<String> {
        self.shared.lock().keys.keys().cloned().collect()
    }

    /// Sets what goes wrong from now on.
    pub fn set_fault(&self, fault: Option<Fault>) {
        self.shared.change(|state| {
            state.fault = fault;
            state.faults += 1;
        });
    }

    /// How many range calls and watches have come.
    pub fn calls(&self) -> (u64, u64) {
        let state = self.shared.lock();
        (state.ranges, state.watches)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn serve(&self, peer: &mut Peer) {
        while let Some((head, body)) = peer.message() {
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            let is_watch = head.starts_with("POST /v3/watch ");
            let (fault, faults) = {
                let mut state = self.lock();
                *(if is_watch { &mut state.watches } else { &mut state.ranges }) += 1;
                (state.fault.clone().filter(|one| is_watch || !one.is_of_watches()), state.faults)
            };
            match fault {
                Some(Fault::Answer(status, text)) => answer(peer, status, &text),
                Some(Fault::Hang) => return self.wait_for_the_next_fault(faults),
                Some(Fault::Close) => return,
                Some(Fault::Range(text)) if !is_watch => answer(peer, 200, &text),
                fault if is_watch => {
                    return self.watch(peer, &body["create_request"], fault, faults);
                }
                _ => answer(peer, 200, &self.range(&body)),
            }
        }
    }

    fn range(&self, body: &Value) -> String {
        let state = self.lock();
        let prefix = String::from_utf8_lossy(&decode(&body["key"])).into_owned();
        let listed = state.keys.iter().filter(|(key, _)| key.starts_with(&prefix));
        let kvs: Vec<Value> =
            listed.map(|(key, (value, revision))| entry(key, value, *revision)).collect();
        let mut answer = json!({ "header": { "revision": state.revision.to_string() } });
        // The gateway leaves out what is zero or empty.
        if !kvs.is_empty() {
            answer["count"] = kvs.len().to_string().into();
            answer["kvs"] = kvs.into();
        }
        answer.to_string()
    }

    /// Sends the events until the peer has gone or the fault changes.
    fn watch(&self, peer: &mut Peer, asked: &Value, fault: Option<Fault>, faults: u64) {
        peer.say("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
        match &fault {
            Some(Fault::Line(text)) => line(peer, text),
            Some(Fault::LongLine(bytes)) => chunk(peer, &" ".repeat(*bytes)),
            _ => {
                let header = json!({ "revision": self.lock().revision.to_string() });
                let created = json!({ "result": { "header": header, "created": true } });
                line(peer, &created.to_string());
            }
        }
        match fault {
            Some(Fault::Line(_) | Fault::LongLine(_)) => {}
            Some(Fault::LaterLine(text)) => line(peer, &text),
            Some(Fault::Ends) => return peer.say("0\r\n\r\n"),
            _ => return self.send_events(peer, asked, faults),
        }
        self.wait_for_the_next_fault(faults);
    }

    fn send_events(&self, peer: &mut Peer, asked: &Value, faults: u64) {
        let prefix = decode(&asked["key"]);
        let mut state = self.lock();
        let from = asked["start_revision"].as_str().and_then(|text| text.parse().ok());
        let mut next = from.unwrap_or(state.revision + 1);
        loop {
            let new = state.events.iter().filter(|(revision, event)| {
                *revision >= next && decode(&event["kv"]["key"]).starts_with(&prefix)
            });
            let events: Vec<Value> = new.map(|(_, event)| event.clone()).collect();
            let header = json!({ "revision": state.revision.to_string() });
            next = next.max(state.revision + 1);
            if !events.is_empty() {
                drop(state);
                let result = json!({ "header": header, "events": events });
                line(peer, &json!({ "result": result }).to_string());
                state = self.lock();
                continue;
            }
            if state.faults != faults {
                drop(state);
                return peer.say("0\r\n\r\n");
            }
            let waited = self.changed.wait_timeout(state, LOOK_EVERY);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if has_gone(peer) {
                return;
            }
        }
    }

    fn wait_for_the_next_fault(&self, faults: u64) {
        let state = self.changed.wait_while(self.lock(), |state| state.faults == faults);
        drop(state.unwrap_or_else(PoisonError::into_inner));
    }
}

fn entry(key: &str, value: &str, revision: i64) -> Value {
    let revision = revision.to_string();
    json!({ "key": encode(key), "value": encode(value), "create_revision": revision,
        "mod_revision": revision, "version": "1" })
}

fn answer(peer: &mut Peer, status: u16, text: &str) {
    let length = text.len();
    peer.say(format!(
        "HTTP/1.1 {status} Some\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{text}"
    ));
}

fn line(peer: &mut Peer, text: &str) {
    chunk(peer, &format!("{text}\n"));
}

fn chunk(peer: &mut Peer, text: &str) {
    peer.say(format!("{:x}\r\n{text}\r\n", text.len()));
}

/// Whether the peer has closed the connection; a client sends nothing more on a watch.
fn has_gone(peer: &Peer) -> bool {
    peer.stream.set_nonblocking(true).expect("a socket");
    let has_gone = peer.stream.peek(&mut [0; 1]).is_ok_and(|count| count == 0);
    peer.stream.set_nonblocking(false).expect("a socket");
    has_gone
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::{post, range_body};
    use crate::http::Connection;

    #[test]
    fn a_watch_has_all_events_from_its_revision_on() {
        let scene = crate::Scene::new("etcd-fake", &[]).expect("it needs no program");
        let fake = FakeEtcd::start(scene.address(40, 2379));
        fake.put("/a/1", "one");
        fake.put("/b/1", "other");
        let address = scene.address(40, 2379);
        let mut connection = Connection::open(address).unwrap();
        let listed = post(&mut connection, "/v3/kv/range", &[], &range_body("/a/")).unwrap().json();
        assert_eq!((&listed["count"], &listed["header"]["revision"]), (&"1".into(), &"3".into()));
        let mut create = range_body("/a/");
        create["start_revision"] = "2".into();
        fake.delete("/a/1");
        let watch = std::thread::spawn(move || {
            post(&mut connection, "/v3/watch", &[], &json!({ "create_request": create }))
        });
        crate::wait::until("the watch", Duration::from_secs(20), || {
            (fake.calls().1 == 1).then_some(())
        });
        fake.set_fault(Some(Fault::Answer(500, "{}".to_owned())));
        let text = watch.join().unwrap().unwrap().text();
        let events: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
            .flat_map(|line| line["result"]["events"].as_array().cloned().unwrap_or_default())
            .collect();
        assert_eq!(events.len(), 2, "{text}");
        assert_eq!(
            (&events[0]["kv"]["value"], &events[1]["type"]),
            (&encode("one").into(), &"DELETE".into())
        );
        let mut connection = Connection::open(address).unwrap();
        assert_eq!(post(&mut connection, "/v3/kv/range", &[], &json!({})).unwrap().status, 500);
    }
}
