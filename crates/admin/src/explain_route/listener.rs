//! The listener that a request is assumed to come in on.

use std::net::IpAddr;

use admin_api::routes::ExplainedListener;
use model::{Address, Listener, ListenerId, visible};

use super::asked::RouteQuery;

/// A listener, and why it was chosen.
pub(super) struct Chosen<'a> {
    pub(super) id: ListenerId,
    pub(super) listener: &'a Listener,
    pub(super) explained: ExplainedListener,
}

/// How well a listener fits a URL; what counts most comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Fit {
    tls: bool,
    port: bool,
    address: bool,
}

/// Returns the listener that the question names, or the first of those that fit its URL best.
pub(super) fn choose<'a>(
    listeners: &'a [Listener],
    query: &RouteQuery,
) -> Result<Chosen<'a>, String> {
    // As many listeners as a configuration has: far below 2^32.
    let all = listeners.iter().zip(0..).map(|(listener, id)| (listener, ListenerId(id)));
    let is_http = |listener: &Listener| listener.protocol.has_requests();
    if let Some(asked) = &query.listener {
        // A name may look like an address.
        let by_name = all.clone().find(|(listener, _)| *listener.name == **asked);
        let is_at = |listener: &Listener| listener.address.to_string() == *asked;
        let found = by_name.or_else(|| all.clone().find(|(listener, _)| is_at(listener)));
        return match found {
            Some((listener, id)) if is_http(listener) => {
                Ok(chosen(listener, id, "it was named".to_owned(), Vec::new()))
            }
            Some((listener, _)) => {
                Err(format!("listener {} has no routes: its protocol is tcp", listener.name))
            }
            None => {
                let known: Vec<&str> = listeners.iter().map(|one| &*one.name).collect();
                let asked = visible(asked, 100);
                Err(format!("no listener is named \"{asked}\"; there are: {}", known.join(", ")))
            }
        };
    }
    let http: Vec<_> = all.filter(|(listener, _)| is_http(listener)).collect();
    let fits = http.iter().map(|(listener, _)| fit(listener, query));
    let best = fits.max().ok_or("no listener serves HTTP")?;
    let mut fitting = http.into_iter().filter(|(listener, _)| fit(listener, query) == best);
    let (listener, id) = fitting.next().ok_or("no listener serves HTTP")?;
    let others = fitting.map(|(other, _)| other.name.to_string()).collect();
    Ok(chosen(listener, id, why(best, query), others))
}

fn chosen(listener: &Listener, id: ListenerId, why: String, others: Vec<String>) -> Chosen<'_> {
    let explained = ExplainedListener {
        name: listener.name.to_string(),
        address: listener.address.to_string(),
        why,
        others,
    };
    Chosen { id, listener, explained }
}

fn fit(listener: &Listener, query: &RouteQuery) -> Fit {
    let url = &query.url;
    let tls = listener.tls.is_some() == url.is_https();
    match &listener.address {
        Address::Ip(address) => Fit {
            tls,
            port: address.port() == url.port(),
            address: url.host().parse().is_ok_and(|host: IpAddr| host == address.ip()),
        },
        Address::Unix(_) => Fit { tls, port: false, address: false },
    }
}

fn why(fit: Fit, query: &RouteQuery) -> String {
    let port = query.url.port();
    let with = |is_tls: bool| if is_tls { "with TLS" } else { "without TLS" };
    let is_https = query.url.is_https();
    match (fit.tls, fit.port) {
        (true, true) if fit.address => {
            format!("it listens on this address and port {port} {}", with(is_https))
        }
        (true, true) => format!("it listens on port {port} {}", with(is_https)),
        (true, false) => {
            let with = with(is_https);
            format!("no listener {with} has port {port}; it is the first {with}")
        }
        (false, true) => {
            format!("it listens on port {port}, but {}, unlike the URL", with(!is_https))
        }
        (false, false) => "no listener fits port and TLS of the URL; it is the first".to_owned(),
    }
}
