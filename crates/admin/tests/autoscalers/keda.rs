//! KEDA's calls, with another implementation of HTTP/2 as the client, and clients that do what they should not.

use std::net::SocketAddr;
use std::time::Duration;

use admin::keda::{Door, start};
use axum::http::{HeaderMap, Request};
use bytes::Bytes;
use h2::RecvStream;
use h2::client::SendRequest;
use model::AutoscalerListener;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::{Wanted, authority, client, listener};

const LONG: Duration = Duration::from_secs(30);

/// A message with its frame: a `ScaledObjectRef` with these metadata.
fn scaled_object(metadata: &[(&str, &str)]) -> Vec<u8> {
    let text = |tag: u8, bytes: &[u8]| [&[tag, u8::try_from(bytes.len()).unwrap()], bytes].concat();
    let entries = metadata.iter().flat_map(|(key, value)| {
        text(0x1a, &[text(0x0a, key.as_bytes()), text(0x12, value.as_bytes())].concat())
    });
    frame(&entries.collect::<Vec<u8>>())
}

fn frame(message: &[u8]) -> Vec<u8> {
    [&[0, 0, 0, 0, u8::try_from(message.len()).unwrap()], message].concat()
}

fn request(path: &str) -> axum::http::request::Builder {
    let uri = format!("http://weir.test/externalscaler.ExternalScaler/{path}");
    Request::post(uri).header("content-type", "application/grpc").header("te", "trailers")
}

async fn connect<T>(stream: T) -> SendRequest<Bytes>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        let _ = connection.await;
    });
    tasks.detach_all();
    client.ready().await.unwrap()
}

/// What a call came to: the status of HTTP, the body, and `grpc-status`.
async fn call(
    client: &mut SendRequest<Bytes>,
    head: axum::http::request::Builder,
    body: Vec<u8>,
) -> (u16, Vec<u8>, Option<String>) {
    let (response, mut stream) = client.send_request(head.body(()).unwrap(), false).unwrap();
    // The server may have answered before the body is complete.
    let _ = stream.send_data(body.into(), true);
    let response = timeout(LONG, response).await.unwrap().unwrap();
    let status = response.status().as_u16();
    let of = |fields: &HeaderMap| {
        fields.get("grpc-status").map(|value| value.to_str().unwrap().to_owned())
    };
    let in_head = of(response.headers());
    let mut body = response.into_body();
    let mut received = Vec::new();
    while let Some(data) = body.data().await {
        received.extend_from_slice(&data.unwrap());
    }
    let trailers = body.trailers().await.unwrap();
    (status, received, in_head.or_else(|| of(&trailers.unwrap_or_default())))
}

#[tokio::test]
async fn calls_are_answered_over_tls_and_in_clear_text() {
    let wanted = Wanted::default();
    let ca = authority("ca");
    let tls = listener(&ca);
    let clear = AutoscalerListener { tls: None, ..tls.clone() };
    for asked in [&tls, &clear] {
        let running = start(Door::open(asked, None).unwrap(), wanted.exposed()).unwrap();
        let stream = TcpStream::connect(running.address()).await.unwrap();
        let mut client = if asked.tls.is_some() {
            let config = client(&ca, None, &[b"h2"]);
            let connector = tokio_rustls::TlsConnector::from(config);
            let name = "weir.test".try_into().unwrap();
            connect(connector.connect(name, stream).await.unwrap()).await
        } else {
            connect(stream).await
        };
        let zero = Some("0".to_owned());
        let listings = scaled_object(&[("service", "listings")]);
        let answer = call(&mut client, request("IsActive"), listings.clone()).await;
        assert_eq!(answer, (200, frame(&[8, 1]), zero.clone()));
        let idle = scaled_object(&[("service", "idle")]);
        let answer = call(&mut client, request("IsActive"), idle).await;
        assert_eq!(answer, (200, frame(&[]), zero.clone()));
        let (_, spec, status) = call(&mut client, request("GetMetricSpec"), listings.clone()).await;
        assert_eq!(status, zero);
        assert!(spec.windows(27).any(|text| text == b"weir_service_wanted_servers"));
        for (service, code) in [("new", "14"), ("unlimited", "9"), ("other", "5")] {
            let message = scaled_object(&[("service", service)]);
            let answer = call(&mut client, request("IsActive"), message).await;
            assert_eq!(answer, (200, Vec::new(), Some(code.to_owned())), "{service}");
        }
        running.stop();
    }
}

#[tokio::test]
async fn what_is_no_call_gets_a_status_and_the_next_call_an_answer() {
    let wanted = Wanted::default();
    let clear = AutoscalerListener { tls: None, ..listener(&authority("ca")) };
    let running = start(Door::open(&clear, None).unwrap(), wanted.exposed()).unwrap();
    let mut client = connect(TcpStream::connect(running.address()).await.unwrap()).await;
    let right = scaled_object(&[("service", "listings")]);
    let plain = |kind: &str| {
        Request::post("http://weir.test/externalscaler.ExternalScaler/IsActive")
            .header("content-type", kind)
    };
    let compressed = [&[1][..], &right[1..]].concat();
    for (head, body, status, grpc) in [
        (request("StreamMetricSpec"), right.clone(), 200, Some("12")),
        (request("IsActive"), Vec::new(), 200, Some("3")),
        (request("IsActive"), right[..4].to_vec(), 200, Some("3")),
        (request("IsActive"), [right.clone(), right.clone()].concat(), 200, Some("3")),
        (request("IsActive"), frame(b"\xff\xff\xff"), 200, Some("3")),
        (request("IsActive"), compressed, 200, Some("12")),
        (request("IsActive").header("grpc-encoding", "gzip"), right.clone(), 200, Some("12")),
        (request("IsActive"), vec![0, 0xff, 0xff, 0xff, 0xff], 200, Some("8")),
        (request("GetMetrics"), right.clone(), 200, Some("5")),
        (plain("application/json"), right.clone(), 415, None),
        (plain("application/grpc-web"), right.clone(), 415, None),
        (request("IsActive").method("GET"), right.clone(), 405, None),
    ] {
        let shown = format!("{head:?} {body:?}");
        let (code, received, trailer) = call(&mut client, head, body).await;
        assert_eq!((code, received.len(), trailer.as_deref()), (status, 0, grpc), "{shown}");
        client = client.ready().await.unwrap();
    }
    let (_, _, status) = call(&mut client, request("IsActive"), right).await;
    assert_eq!(status.as_deref(), Some("0"));
    // Neither HTTP/2 nor anything else.
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 64], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nxxxx"]
    {
        let mut stream = TcpStream::connect(running.address()).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        let mut rest = Vec::new();
        // It is closed, with or without a reset.
        let _ = timeout(LONG, stream.read_to_end(&mut rest)).await.unwrap();
    }
    running.stop();
}

async fn next(body: &mut RecvStream) -> Option<Vec<u8>> {
    let data = timeout(LONG, body.data()).await.unwrap()?.unwrap();
    body.flow_control().release_capacity(data.len()).unwrap();
    Some(data.to_vec())
}

async fn follow(address: SocketAddr, service: &str) -> RecvStream {
    let mut client = connect(TcpStream::connect(address).await.unwrap()).await;
    let head = request("StreamIsActive").body(()).unwrap();
    let (response, mut stream) = client.send_request(head, false).unwrap();
    stream.send_data(scaled_object(&[("service", service)]).into(), true).unwrap();
    timeout(LONG, response).await.unwrap().unwrap().into_body()
}

#[tokio::test]
async fn a_stream_has_every_change_and_ends_with_the_listener() {
    let wanted = Wanted::default();
    let clear = AutoscalerListener { tls: None, ..listener(&authority("ca")) };
    let running = start(Door::open(&clear, None).unwrap(), wanted.exposed()).unwrap();
    let mut listings = follow(running.address(), "listings").await;
    let mut new = follow(running.address(), "new").await;
    assert_eq!(next(&mut listings).await, Some(frame(&[8, 1])));
    wanted.set("listings", Some(0));
    assert_eq!(next(&mut listings).await, Some(frame(&[])));
    // Another number of servers is no change.
    wanted.set("listings", Some(1));
    assert_eq!(next(&mut listings).await, Some(frame(&[8, 1])));
    wanted.set("listings", Some(9));
    wanted.set("new", Some(3));
    assert_eq!(next(&mut new).await, Some(frame(&[8, 1])));
    tokio::task::spawn_blocking(move || running.stop()).await.unwrap();
    for mut stream in [listings, new] {
        assert_eq!(next(&mut stream).await, None);
        let trailers = stream.trailers().await.unwrap().unwrap();
        assert_eq!(trailers["grpc-status"], "14");
    }
}

#[tokio::test]
async fn numbers_are_read_on_a_connection_whose_followed_streams_are_at_the_limit() {
    const FOLLOWED_MAX: usize = 512;
    let wanted = Wanted::default();
    let clear = AutoscalerListener { tls: None, ..listener(&authority("ca")) };
    let running = start(Door::open(&clear, None).unwrap(), wanted.exposed()).unwrap();
    let mut client = connect(TcpStream::connect(running.address()).await.unwrap()).await;
    let listings = scaled_object(&[("service", "listings")]);
    let mut followed = Vec::new();
    for _ in 0..FOLLOWED_MAX {
        client = client.ready().await.unwrap();
        let head = request("StreamIsActive").body(()).unwrap();
        let (response, mut stream) = client.send_request(head, false).unwrap();
        stream.send_data(listings.clone().into(), true).unwrap();
        let mut body = timeout(LONG, response).await.unwrap().unwrap().into_body();
        assert_eq!(next(&mut body).await, Some(frame(&[8, 1])));
        followed.push(body);
    }
    client = client.ready().await.unwrap();
    let answer = call(&mut client, request("StreamIsActive"), listings.clone()).await;
    assert_eq!(answer, (200, Vec::new(), Some("8".to_owned())), "one too many");
    let text = |tag: u8, bytes: &[u8]| [&[tag, u8::try_from(bytes.len()).unwrap()], bytes].concat();
    let name = text(0x12, b"weir_service_wanted_servers");
    let message = [text(0x0a, &listings[5..]), name].concat();
    client = client.ready().await.unwrap();
    let (_, body, status) = call(&mut client, request("GetMetrics"), frame(&message)).await;
    assert_eq!(status.as_deref(), Some("0"));
    assert!(body.len() > 5, "{body:?}");
    // Another connection has its own limit.
    let mut other = follow(running.address(), "listings").await;
    assert_eq!(next(&mut other).await, Some(frame(&[8, 1])));
    drop(followed);
    running.stop();
}
