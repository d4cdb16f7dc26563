//! The engine as a server, for comparison.

use std::collections::BTreeMap;

use http2::{Connection, Ended, Event, Refusal, Role, Scratch, StreamKey};
use model::Moment;
use wire::http1::{HeadLimits, RequestHead, parse_request};

use crate::outcome::{CONFIG, Head, Outcome, lines, removed, sorted};

const LIMITS: HeadLimits =
    HeadLimits { head_max_bytes: 65_536, target_max_bytes: 65_536, fields_max: 1024 };

/// The engine as a server that answers each request when it is complete.
pub struct Engine {
    connection: Connection,
    scratch: Scratch,
    ids: BTreeMap<usize, u32>,
}

impl Engine {
    pub fn new() -> Engine {
        Engine {
            connection: Connection::new(Role::Server, CONFIG, Moment::ZERO),
            scratch: Scratch::default(),
            ids: BTreeMap::new(),
        }
    }

    /// Receives frames; requests that begin have the identifier `id`.
    pub fn receive(&mut self, bytes: &[u8], id: u32) -> Outcome {
        let now = Moment::ZERO;
        let mut outcome = Outcome::default();
        let mut rest = bytes;
        loop {
            let (taken, event) = self.connection.receive(rest, &mut self.scratch, now);
            rest = &rest[taken..];
            let ended = match event {
                None => break,
                Some(Event::Request { stream, ended }) => {
                    self.ids.insert(stream.slot(), id);
                    outcome.heads.insert(id, head_of(self.scratch.text(), ended));
                    let mut parsed = RequestHead::default();
                    outcome.notes.is_refused_later =
                        parse_request(self.scratch.text(), &LIMITS, &mut parsed).is_err();
                    ended.then_some(stream)
                }
                Some(Event::Data { stream, data, ended }) => {
                    let id = self.ids[&stream.slot()];
                    if !data.is_empty() {
                        outcome.content.entry(id).or_default().extend_from_slice(data);
                    }
                    self.connection.consumed(stream, data.len(), now);
                    ended.then_some(stream)
                }
                Some(Event::Trailers { stream }) => {
                    let fields = sorted(lines(self.scratch.text()));
                    outcome.trailers.insert(self.ids[&stream.slot()], fields);
                    Some(stream)
                }
                Some(Event::Ended { stream, why }) => {
                    let id = self.ids[&stream.slot()];
                    match why {
                        Ended::Violation(violation) => {
                            outcome.notes.rules.push(violation.rule);
                            outcome.refused.insert(id);
                        }
                        _ => drop(outcome.reset.insert(id)),
                    }
                    self.connection.release(stream);
                    None
                }
                Some(Event::Refused(refusal)) => {
                    if let Refusal::Malformed(rule) = refusal {
                        outcome.notes.rules.push(rule);
                    }
                    outcome.refused.insert(id);
                    None
                }
                Some(Event::Violation(violation)) => {
                    outcome.notes.rules.push(violation.rule);
                    outcome.failed = true;
                    None
                }
                Some(Event::GoingAway(_)) => None,
                Some(event) => panic!("{event:?}"),
            };
            if let Some(stream) = ended {
                outcome.ended.insert(self.ids[&stream.slot()]);
                self.answer(stream);
            }
        }
        let length = self.connection.output().concat().len();
        self.connection.sent(length);
        outcome
    }

    fn answer(&mut self, stream: StreamKey) {
        let sent = self.connection.send_head(stream, b"HTTP/1.1 200 OK\r\n\r\n", true);
        assert_eq!(sent, Ok(()));
        self.connection.release(stream);
    }
}

/// Reads the engine's text of a head, without the fields that it adds.
fn head_of(text: &[u8], ended: bool) -> Head {
    let end = text.windows(2).position(|two| two == b"\r\n").unwrap_or(text.len());
    let line = text[..end].escape_ascii().to_string();
    let mut words = line.split(' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    let (mut method, target) = (word(), word());
    let mut fields = lines(&text[end + 2..]);
    if removed(&mut fields, "upgrade").is_some() {
        // An extended CONNECT has become an Upgrade.
        removed(&mut fields, "connection");
        removed(&mut fields, "sec-websocket-key");
        method = "CONNECT".to_owned();
    } else if !ended && !fields.iter().any(|field| field.0 == "content-length") {
        assert_eq!(removed(&mut fields, "transfer-encoding").as_deref(), Some("chunked"));
    }
    let host = removed(&mut fields, "host");
    Head { method, target, host, fields: sorted(fields) }
}
