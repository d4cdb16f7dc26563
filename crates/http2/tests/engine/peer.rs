//! The `h2` crate as the peer in both roles.

use std::collections::HashMap;

use bytes::Bytes;
use http2::{Config, Connection, Event, Role, Scratch, StreamKey};
use model::Moment;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::rig::CONFIG;

const CONNECTION: Config = Config { connection_window_bytes: 16 << 20, ..CONFIG };

/// An engine that echoes requests, or sends requests and collects responses.
struct Echo {
    connection: Connection,
    scratch: Scratch,
    io: DuplexStream,
    /// Unsent content, and whether trailers follow.
    unsent: HashMap<StreamKey, (Vec<u8>, bool)>,
    /// Received head, content and trailers, and whether the message is complete.
    arrived: HashMap<StreamKey, (String, Vec<u8>, String, bool)>,
    now: u64,
}

impl Echo {
    fn new(role: Role, io: DuplexStream) -> Echo {
        let connection = Connection::new(role, CONNECTION, Moment::ZERO);
        Echo {
            connection,
            scratch: Scratch::default(),
            io,
            unsent: HashMap::new(),
            arrived: HashMap::new(),
            now: 0,
        }
    }

    /// Sends pending output, then processes input; returns false at its end.
    async fn turn(&mut self) -> bool {
        self.send().await;
        let mut buffer = vec![0; 50_000];
        let Ok(count @ 1..) = self.io.read(&mut buffer).await else { return false };
        self.now += 1;
        let mut rest = &buffer[..count];
        loop {
            let now = Moment::from_millis(self.now);
            let (taken, event) = self.connection.receive(rest, &mut self.scratch, now);
            rest = &rest[taken..];
            let text = String::from_utf8_lossy(self.scratch.text()).into_owned();
            match event {
                None => return true,
                Some(Event::Request { stream, ended } | Event::Response { stream, ended }) => {
                    self.arrived.insert(stream, (text, Vec::new(), String::new(), ended));
                }
                Some(Event::Data { stream, data, ended }) => {
                    let arrived = self.arrived.get_mut(&stream).unwrap();
                    arrived.1.extend_from_slice(data);
                    arrived.3 = ended;
                    self.connection.consumed(stream, data.len(), now);
                }
                Some(Event::Trailers { stream }) => {
                    let arrived = self.arrived.get_mut(&stream).unwrap();
                    (arrived.2, arrived.3) = (text, true);
                }
                Some(Event::Ended { stream, .. }) => {
                    self.connection.release(stream);
                    self.arrived.remove(&stream);
                    self.unsent.remove(&stream);
                }
                Some(other) => panic!("{other:?}"),
            }
        }
    }

    async fn send(&mut self) {
        loop {
            while self.connection.next_writable().is_some() {}
            let now = Moment::from_millis(self.now);
            for (&key, (content, trailers)) in &mut self.unsent {
                if let Ok(taken) = self.connection.send_data(key, content, !*trailers, now) {
                    content.drain(..taken);
                }
            }
            let done: Vec<StreamKey> =
                self.unsent.iter().filter(|(_, it)| it.0.is_empty()).map(|(key, _)| *key).collect();
            for key in done {
                if let Some((_, true)) = self.unsent.remove(&key) {
                    let _ = self.connection.send_trailers(key, b"X-Sum: 7\r\n");
                }
            }
            let bytes = self.connection.output().concat();
            if bytes.is_empty() {
                return;
            }
            self.io.write_all(&bytes).await.unwrap();
            self.connection.sent(bytes.len());
        }
    }

    /// Answers requests until the client disconnects.
    async fn serve(mut self) {
        while self.turn().await {
            let whole: Vec<StreamKey> =
                self.arrived.iter().filter(|(_, it)| it.3).map(|(key, _)| *key).collect();
            for key in whole {
                let (head, content, trailers, _) = self.arrived.remove(&key).unwrap();
                let line = head.lines().next().unwrap();
                let text = format!(
                    "HTTP/1.1 200 OK\r\nServer: engine\r\nX-Line: {line}\r\nX-Trailers: {}\r\n\r\n",
                    trailers.trim()
                );
                self.connection.send_head(key, text.as_bytes(), false).unwrap();
                self.unsent.insert(key, (content, !trailers.is_empty()));
            }
        }
    }
}

fn lengths() -> Vec<usize> {
    vec![0, 1, 100, 16_384, 65_535, 65_536, 300_000, 1_000_000]
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let minute = std::time::Duration::from_secs(60);
        tokio::time::timeout(minute, test).await.expect("within a minute");
    });
}

#[test]
fn an_h2_client_is_answered() {
    run(async {
        let (near, far) = tokio::io::duplex(70_000);
        tokio::task::spawn_local(Echo::new(Role::Server, far).serve());
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(100_000).header_table_size(300);
        let (send, connection) = builder.handshake::<_, Bytes>(near).await.unwrap();
        tokio::task::spawn_local(async move { connection.await.unwrap() });
        let tasks = (0..6).flat_map(|_| lengths()).enumerate().map(|(number, length)| {
            let mut send = send.clone();
            tokio::task::spawn_local(async move {
                let uri = format!("http://a.example/{}", number % 3);
                let request = http::Request::post(uri).header("user-agent", "h2").body(()).unwrap();
                ready(&mut send).await;
                let (response, mut body) = send.send_request(request, false).unwrap();
                let content = Bytes::from(vec![number as u8; length]);
                let has_trailers = number % 2 == 0;
                body.send_data(content.clone(), !has_trailers).unwrap();
                if has_trailers {
                    let mut trailers = http::HeaderMap::new();
                    trailers.insert("x-sum", "5".parse().unwrap());
                    body.send_trailers(trailers).unwrap();
                }
                let response = response.await.unwrap();
                assert_eq!(response.status(), 200);
                let line = format!("POST /{} HTTP/1.1", number % 3);
                assert_eq!(response.headers()["x-line"], line);
                assert_eq!(
                    response.headers()["x-trailers"],
                    if has_trailers { "x-sum: 5" } else { "" }
                );
                let (found, trailers) = whole(response.into_body()).await;
                assert!(found == content, "{number}: {} of {length}", found.len());
                assert_eq!(trailers.is_some(), has_trailers);
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
    });
}

async fn ready(send: &mut h2::client::SendRequest<Bytes>) {
    std::future::poll_fn(|cx| send.poll_ready(cx)).await.unwrap();
}

async fn whole(mut body: h2::RecvStream) -> (Vec<u8>, Option<http::HeaderMap>) {
    let mut found = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece.unwrap();
        body.flow_control().release_capacity(piece.len()).unwrap();
        found.extend_from_slice(&piece);
    }
    (found, body.trailers().await.unwrap())
}

#[test]
fn an_h2_server_answers() {
    run(async {
        let (near, far) = tokio::io::duplex(70_000);
        tokio::task::spawn_local(async move {
            let mut builder = h2::server::Builder::new();
            builder.initial_window_size(100_000).max_frame_size(20_000).max_concurrent_streams(100);
            let mut connection = builder.handshake::<_, Bytes>(far).await.unwrap();
            while let Some(accepted) = connection.accept().await {
                let (request, mut respond) = accepted.unwrap();
                tokio::task::spawn_local(async move {
                    let path = request.uri().path().to_owned();
                    assert_eq!(request.headers()["user-agent"], "the engine");
                    let (content, trailers) = whole(request.into_body()).await;
                    let response =
                        http::Response::builder().header("x-path", path).body(()).unwrap();
                    let mut body = respond.send_response(response, false).unwrap();
                    body.send_data(content.into(), trailers.is_none()).unwrap();
                    if let Some(trailers) = trailers {
                        body.send_trailers(trailers).unwrap();
                    }
                });
            }
        });
        let mut client = Echo::new(Role::Client { is_https: false }, near);
        while !client.connection.is_established() {
            assert!(client.turn().await);
        }
        let mut expected = HashMap::new();
        for (number, length) in (0..6).flat_map(|_| lengths()).enumerate() {
            let key = client.connection.open();
            let text = format!(
                "PUT /{number} HTTP/1.1\r\nHost: a.example\r\nUser-Agent: the engine\r\n\
                 Transfer-Encoding: chunked\r\n\r\n"
            );
            client.connection.send_head(key, text.as_bytes(), false).unwrap();
            let content = vec![number as u8; length];
            expected.insert(key, (number, content.clone(), number % 2 == 0));
            client.unsent.insert(key, (content, number % 2 == 0));
        }
        while client.arrived.values().filter(|arrived| arrived.3).count() < expected.len() {
            assert!(client.turn().await);
        }
        for (key, (number, content, has_trailers)) in expected {
            let (head, found, trailers, _) = &client.arrived[&key];
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
            assert!(head.contains(&format!("x-path: /{number}\r\n")), "{head}");
            assert!(*found == content);
            assert_eq!(trailers == "x-sum: 7\r\n", has_trailers);
            client.connection.release(key);
        }
        assert_eq!(client.connection.streams(), 0);
    });
}
