//! `/api/v1/stream`: answers of other paths, sent again as they change, as server-sent events
//! (<https://html.spec.whatwg.org/multipage/server-sent-events.html>). Each answer is made at most once a second
//! for all clients together.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{ConnectInfo, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body::Frame;
use model::UnknownWord;
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;

use super::{
    Api, blocking, changes, findings_of, not_written, reload, services, status, traffic,
    unreadable_query,
};
use crate::access::InSession;
use crate::bounded::{Seat, Working};
use crate::context::Context;
use crate::feed::{READ_BY, STREAMS_MAX, Topic};
use crate::problem::Problem;

/// A stream without events sends a comment after this time, so that its client can tell a quiet stream from
/// a broken connection.
const COMMENT_AFTER: Duration = Duration::from_secs(10);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// Separated by commas; all without it.
    topics: Option<String>,
}

pub(super) async fn stream(
    State(api): Api,
    seat: Option<Extension<ConnectInfo<Seat>>>,
    session: Option<Extension<InSession>>,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(Wanted { topics }) = wanted.map_err(unreadable_query)?;
    let topics = topics.map_or_else(|| Ok(Topic::ALL.to_vec()), |words| read_topics(&words))?;
    let place = api.feed.place().ok_or_else(too_many)?;
    // The response takes as long as its client wants: its connection is not idle meanwhile.
    let working = seat.map(|Extension(ConnectInfo(seat))| seat.request());
    // Of one event: a client that reads slowly skips seconds.
    let (sender, events) = mpsc::channel(1);
    #[expect(clippy::disallowed_methods, reason = "the API's runtime has one thread")]
    tokio::spawn(send(api, topics, session.map(|Extension(session)| session), sender));
    let body = Body::new(Events { next: events, _place: place, _working: working });
    Ok(([(header::CONTENT_TYPE, "text/event-stream")], body).into_response())
}

fn read_topics(words: &str) -> Result<Vec<Topic>, Problem> {
    let mut topics = Vec::new();
    for word in words.split(',').map(str::trim) {
        let topic = word.parse().map_err(|UnknownWord { known }| {
            let message = format!("there is no topic {word:?}; there are: {}", known.join(", "));
            Problem::new(StatusCode::BAD_REQUEST, "query_not_readable", message)
        })?;
        if !topics.contains(&topic) {
            topics.push(topic);
        }
    }
    Ok(topics)
}

fn too_many() -> Problem {
    let message = format!("{STREAMS_MAX} clients have a stream already; close one of them");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too_many_streams", message)
}

/// Sends the events of a stream until its client is gone, its session has ended, or the listener stops.
async fn send(
    api: Arc<Context>,
    topics: Vec<Topic>,
    session: Option<InSession>,
    sender: mpsc::Sender<Bytes>,
) {
    let mut stopped = api.stopped.clone();
    let mut sent = [0; Topic::ALL.len()];
    let mut last = Instant::now();
    loop {
        for &topic in &topics {
            let (version, event) = api.feed.latest(topic, || make(&api, topic)).await;
            if version != sent[topic as usize] {
                if sender.send(event).await.is_err() {
                    return;
                }
                (sent[topic as usize], last) = (version, Instant::now());
            }
        }
        if last.elapsed() >= COMMENT_AFTER {
            if sender.send(Bytes::from_static(b":\n\n")).await.is_err() {
                return;
            }
            last = Instant::now();
        }
        if session.as_ref().is_some_and(|session| !session.lasts()) {
            return;
        }
        let is_stopped = tokio::select! {
            () = tokio::time::sleep(until_next()) => false,
            () = sender.closed() => return,
            _ = stopped.wait_for(|stopped| *stopped) => true,
        };
        if is_stopped {
            // If the client is gone, it need not know.
            let _ = sender.send(Bytes::from_static(b"event: closing\ndata: {}\n\n")).await;
            return;
        }
    }
}

/// The time until the counters of the next second have been read.
fn until_next() -> Duration {
    let into_second = Duration::from_nanos(os::clock::since_boot().subsec_nanos().into());
    (Duration::from_secs(1) + READ_BY).saturating_sub(into_second)
}

/// Makes a topic's event now. An answer that cannot be given is an event, too.
async fn make(api: &Arc<Context>, topic: Topic) -> Bytes {
    let context = Arc::clone(api);
    let made = blocking(move || answer(&context, topic)).await;
    let (name, data) = match made.flatten() {
        Ok(json) => (topic.as_str(), json),
        Err(problem) => {
            let message = problem.message();
            (
                "unavailable",
                serde_json::json!({ "topic": topic.as_str(), "message": message }).to_string(),
            )
        }
    };
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

fn answer(api: &Context, topic: Topic) -> Result<String, Problem> {
    match topic {
        Topic::Traffic => json(&traffic::traffic(api, &traffic::NowWanted::default())?),
        Topic::Status => json(&status::of(api)),
        Topic::Services => json(&services::all_of(api)),
        Topic::Findings => json(&findings_of(api)?()),
        Topic::Reloads => json(&reload::reloads_of(api)?()),
        Topic::Changes => json(&changes::of(api, &changes::Wanted::default())?),
    }
}

fn json<T: Serialize>(answer: &T) -> Result<String, Problem> {
    serde_json::to_string(answer).map_err(|error| not_written(&error))
}

/// The body of a stream.
struct Events {
    next: mpsc::Receiver<Bytes>,
    _place: OwnedSemaphorePermit,
    _working: Option<Working>,
}

impl http_body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.next.poll_recv(cx).map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}
