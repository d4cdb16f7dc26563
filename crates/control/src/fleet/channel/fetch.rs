//! The side that asks.

use std::net::SocketAddr;
use std::sync::Arc;

use tls::MemberTls;
use tls::rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use zeroize::Zeroizing;

use super::{
    ASKS_MAX, Ask, CONNECTION_MAX, Contents, Fetched, NOT_OF_A_MEMBER, SecretKey, Want,
    certificates, wire,
};

/// Fetches, a few at once, until the sender of requests is dropped.
pub(super) async fn run(
    tls: watch::Receiver<MemberTls>,
    mut asked: mpsc::Receiver<Ask>,
    answers: mpsc::Sender<Fetched>,
    news: Arc<Notify>,
) {
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = running.join_next() => {}
            ask = asked.recv(), if running.len() < ASKS_MAX => {
                let Some(ask) = ask else { return };
                let (tls, answers, news) = (tls.borrow().clone(), answers.clone(), Arc::clone(&news));
                running.spawn_local(async move {
                    // Fails only if the receiver has been dropped.
                    let _ = answers.send(fetched(ask, &tls).await).await;
                    news.notify_one();
                });
            }
        }
    }
}

async fn fetched(Ask { member, address, want }: Ask, tls: &MemberTls) -> Fetched {
    let kind = want.kind();
    let contents = match tokio::time::timeout(CONNECTION_MAX, contents(address, tls, &want)).await {
        Ok(contents) => contents,
        Err(_) => Err(format!("no answer within {} s", CONNECTION_MAX.as_secs())),
    };
    Fetched { from: member, address, kind, contents }
}

async fn contents(address: SocketAddr, tls: &MemberTls, want: &Want) -> Result<Contents, String> {
    let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    let name = ServerName::IpAddress(address.ip().into());
    let stream = TlsConnector::from(Arc::clone(&tls.client)).connect(name, stream).await;
    let mut stream = stream.map_err(|error| error.to_string())?;
    if !tls.has_member_name(stream.get_ref().1.peer_certificates()) {
        return Err(NOT_OF_A_MEMBER.to_owned());
    }
    match want {
        Want::TicketKeys => keys(&mut stream).await.map(Contents::TicketKeys),
        Want::Certificates(wanted) => {
            certificates::fetch(&mut stream, wanted).await.map(Contents::Certificates)
        }
    }
}

async fn keys(stream: &mut TlsStream<TcpStream>) -> Result<Vec<SecretKey>, String> {
    stream.write_all(&wire::TICKET_KEYS).await.map_err(|error| error.to_string())?;
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
