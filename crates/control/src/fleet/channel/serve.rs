//! The side that answers.

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tls::MemberTls;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::{CONNECTION_MAX, NOT_OF_A_MEMBER, Shared, certificates, lock, wire};

/// Connections at once.
const CONNECTIONS_MAX: usize = 64;
/// Of one IP address: what others send must not keep members away. Several members may have one address.
const CONNECTIONS_OF_ONE_MAX: usize = 4;
const CONNECTIONS_OF_ONE_MEMBER_MAX: usize = 16;
/// When there are so many, only members may connect.
const CONNECTIONS_OF_ALL_MAX: usize = 8;
/// The pause after the address could not be listened on, or no connection could be accepted.
const AGAIN: Duration = Duration::from_millis(250);
/// An address that is in use for longer than an upgrade takes is not the predecessor's.
const IN_USE_MAX: Duration = Duration::from_secs(30);

/// Listens, and answers one request on each connection.
pub(super) async fn run(address: SocketAddr, tls: watch::Receiver<MemberTls>, shared: Arc<Shared>) {
    let listener = listen(address, &shared).await;
    shared.is_listening.store(true, Relaxed);
    let open: Rc<RefCell<Vec<IpAddr>>> = Rc::default();
    let mut is_failing = false;
    loop {
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                if !std::mem::replace(&mut is_failing, true) {
                    tracing::warn!(%error, "cannot accept connections of other members; retrying every 250 ms");
                }
                tokio::time::sleep(AGAIN).await;
                continue;
            }
        };
        is_failing = false;
        let from = from.ip().to_canonical();
        if !may_connect(&open.borrow(), from, || shared.is_member(from)) {
            shared.refused.fetch_add(1, Relaxed);
            continue;
        }
        open.borrow_mut().push(from);
        let (tls, shared, open) = (tls.borrow().clone(), Arc::clone(&shared), Rc::clone(&open));
        tokio::task::spawn_local(async move {
            let answered = tokio::time::timeout(CONNECTION_MAX, answer(stream, &tls, &shared));
            let why = match answered.await {
                Ok(Ok(())) => None,
                Ok(Err(why)) => Some(why),
                Err(_) => Some("it took too long".to_owned()),
            };
            if let Some(why) = why {
                shared.refused.fetch_add(1, Relaxed);
                tracing::debug!(%from, why, "no answer to a connection to the fleet's port");
            }
            let mut open = open.borrow_mut();
            if let Some(at) = open.iter().position(|one| *one == from) {
                open.swap_remove(at);
            }
        });
    }
}

/// Returns whether a further connection is answered; `open`: the addresses of those that are open.
fn may_connect(open: &[IpAddr], from: IpAddr, is_member: impl FnOnce() -> bool) -> bool {
    let of_one = open.iter().filter(|one| **one == from).count();
    if open.len() < CONNECTIONS_OF_ALL_MAX && of_one < CONNECTIONS_OF_ONE_MAX {
        return true;
    }
    open.len() < CONNECTIONS_MAX && of_one < CONNECTIONS_OF_ONE_MEMBER_MAX && is_member()
}

/// Listens on the address as soon as it is free: before an upgrade is over, the process before this one has it.
async fn listen(address: SocketAddr, shared: &Shared) -> TcpListener {
    let begun = os::clock::now();
    let mut is_logged = false;
    loop {
        let error = match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(error) => error,
        };
        let is_early =
            error.kind() == io::ErrorKind::AddrInUse && os::clock::now().since(begun) < IN_USE_MAX;
        if !is_early && !std::mem::replace(&mut is_logged, true) {
            tracing::error!(%error, "cannot listen on TCP {address}: session ticket keys and certificates are not shared, and after a minute this member orders its certificates by itself; retrying every 250 ms");
        }
        shared.set_obstacle(format!("cannot listen on TCP {address}: {error}"));
        tokio::time::sleep(AGAIN).await;
    }
}

async fn answer(stream: TcpStream, tls: &MemberTls, shared: &Shared) -> Result<(), String> {
    let stream = TlsAcceptor::from(Arc::clone(&tls.server)).accept(stream).await;
    let mut stream = stream.map_err(|error| error.to_string())?;
    if !tls.has_member_name(stream.get_ref().1.peer_certificates()) {
        return Err(NOT_OF_A_MEMBER.to_owned());
    }
    let mut request = [0; wire::REQUEST_BYTES];
    stream.read_exact(&mut request).await.map_err(|error| error.to_string())?;
    match request {
        wire::TICKET_KEYS => {
            let keys = lock(&shared.keys).clone();
            let answer = wire::answer(&keys, os::clock::now());
            stream.write_all(&answer).await.map_err(|error| error.to_string())?;
        }
        wire::CERTIFICATES => {
            let offer = Arc::clone(&lock(&shared.certificates));
            certificates::answer(&mut stream, &offer).await?;
        }
        _ => return Err(format!("an unknown request: {request:?}")),
    }
    stream.shutdown().await.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_others_do_not_keep_members_away() {
        let ip = |n: u8| IpAddr::from([10, 0, 0, n]);
        assert!(may_connect(&[], ip(1), || false));
        assert!(may_connect(&[ip(1); 3], ip(1), || false));
        assert!(!may_connect(&[ip(1); 4], ip(1), || false));
        assert!(may_connect(&[ip(1); 15], ip(1), || true));
        assert!(!may_connect(&[ip(1); 16], ip(1), || true));
        let strangers: Vec<IpAddr> = (10..18).map(ip).collect();
        assert!(!may_connect(&strangers, ip(1), || false));
        assert!(may_connect(&strangers, ip(1), || true));
        let all: Vec<IpAddr> = (10..74).map(ip).collect();
        assert!(!may_connect(&all, ip(1), || true));
    }
}
