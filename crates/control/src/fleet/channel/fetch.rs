//! The side that asks.

use std::net::SocketAddr;
use std::sync::Arc;

use fleet::StartId;
use tls::MemberTls;
use tls::rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc, watch};
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

use super::{CONNECTION_MAX, Fetched, NOT_OF_A_MEMBER, SecretKey, wire};

/// Fetches from one member after the other, until the sender of requests is dropped.
pub(super) async fn run(
    tls: watch::Receiver<MemberTls>,
    mut asked: mpsc::Receiver<(StartId, SocketAddr)>,
    answers: mpsc::Sender<Fetched>,
    news: Arc<Notify>,
) {
    while let Some((from, address)) = asked.recv().await {
        let tls = tls.borrow().clone();
        let keys = match tokio::time::timeout(CONNECTION_MAX, keys(address, &tls)).await {
            Ok(keys) => keys,
            Err(_) => Err(format!("no answer within {} s", CONNECTION_MAX.as_secs())),
        };
        if answers.send(Fetched { from, address, keys }).await.is_err() {
            return;
        }
        news.notify_one();
    }
}

async fn keys(address: SocketAddr, tls: &MemberTls) -> Result<Vec<SecretKey>, String> {
    let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    let name = ServerName::IpAddress(address.ip().into());
    let stream = TlsConnector::from(Arc::clone(&tls.client)).connect(name, stream).await;
    let mut stream = stream.map_err(|error| error.to_string())?;
    if !tls.has_member_name(stream.get_ref().1.peer_certificates()) {
        return Err(NOT_OF_A_MEMBER.to_owned());
    }
    stream.write_all(&wire::REQUEST).await.map_err(|error| error.to_string())?;
    // Its length is fixed: growing would leave copies of secrets behind.
    let mut answer = Zeroizing::new(vec![0; wire::ANSWER_MAX_BYTES + 1]);
    let mut len = 0;
    while let Some(rest) = answer.get_mut(len..).filter(|rest| !rest.is_empty()) {
        // An end without close_notify is an error: the answer may be cut off.
        match stream.read(rest).await.map_err(|error| error.to_string())? {
            0 => break,
            read => len += read,
        }
    }
    let keys = answer.get(..len).and_then(|answer| wire::read(answer, os::clock::now()));
    keys.ok_or_else(|| "its answer is malformed".to_owned())
}
