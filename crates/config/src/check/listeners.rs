//! Checks listeners against each other, the admin API and their services.

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};
use std::net::{IpAddr, SocketAddr};

use model::{Address, ServerTarget, UnixPath};

use crate::diagnostic::{At, Diagnostic, Problems};
use crate::raw::{Document, RawProtocol, RawServiceTls, SideListener};

pub(super) fn check(document: &Document, problems: &Problems) {
    if document.listeners.is_empty() && !document.listeners_meant && !document.kubernetes_meant {
        problems.report_absence(nothing_listens());
    }
    names(document, problems);
    clashes(document, problems);
    admin(document, problems);
    side_listeners(document, problems);
    metrics(document, problems);
    fleet(document, problems);
    limits(document, problems);
    idle_http(document, problems);
    tls(document, problems);
    own_servers(document, problems);
}

/// Reports duplicate names. A listener with an earlier one's address is one mistake, and is
/// reported by [`clashes`]; one without a readable address may have no name.
fn names(document: &Document, problems: &Problems) {
    let mut addresses = HashSet::new();
    let named = document.listeners.iter().filter(|listener| {
        let repeated = listener
            .address
            .as_ref()
            .is_some_and(|at| !at.value.is_any_port() && !addresses.insert(at.value));
        !repeated && !listener.name.value.is_empty()
    });
    super::twice("listener", named.map(|listener| &listener.name), problems);
}

fn nothing_listens() -> Diagnostic {
    Diagnostic::error("nothing listens", 0..0, "no [[listener]]")
        .help("write [[listener]] and below it address = \"0.0.0.0:8080\"")
}

/// Returns whether a socket bound to `one` prevents binding `other`.
fn overlap(one: Address, other: Address) -> bool {
    let (Address::Ip(one), Address::Ip(other)) = (one, other) else { return one == other };
    let any = |a: SocketAddr| a.ip().is_unspecified();
    one.port() != 0
        && one.port() == other.port()
        && one.is_ipv4() == other.is_ipv4()
        && (one.ip() == other.ip() || any(one) || any(other))
}

/// The listeners of one port, in IPv4 or in IPv6, that come earlier in the file, with their place.
#[derive(Default)]
struct Earlier<'a> {
    first: Option<(usize, &'a At<Address>)>,
    on_every_address: Option<(usize, &'a At<Address>)>,
    by_ip: HashMap<IpAddr, (usize, &'a At<Address>)>,
}

impl<'a> Earlier<'a> {
    /// Returns the first that [`overlap`]s with one on `ip`.
    fn in_the_way(&self, ip: IpAddr) -> Option<&'a At<Address>> {
        let found = if ip.is_unspecified() {
            self.first
        } else {
            let same = self.by_ip.get(&ip).copied();
            self.on_every_address.into_iter().chain(same).min_by_key(|(index, _)| *index)
        };
        found.map(|(_, at)| at)
    }

    fn add(&mut self, index: usize, ip: IpAddr, address: &'a At<Address>) {
        self.first.get_or_insert((index, address));
        if ip.is_unspecified() {
            self.on_every_address.get_or_insert((index, address));
        }
        self.by_ip.entry(ip).or_insert((index, address));
    }
}

fn clashes(document: &Document, problems: &Problems) {
    let mut ports: HashMap<(bool, u16), Earlier<'_>> = HashMap::new();
    let mut paths: HashMap<UnixPath, &At<Address>> = HashMap::new();
    let addresses = document.listeners.iter().filter_map(|listener| listener.address.as_ref());
    for (index, address) in addresses.enumerate().filter(|(_, at)| !at.value.is_any_port()) {
        let first = match address.value {
            Address::Ip(own) => {
                let earlier = ports.entry((own.is_ipv4(), own.port())).or_default();
                let first = earlier.in_the_way(own.ip());
                earlier.add(index, own.ip(), address);
                first
            }
            Address::Unix(path) => match paths.entry(path) {
                Entry::Occupied(first) => Some(*first.get()),
                Entry::Vacant(free) => {
                    free.insert(address);
                    None
                }
            },
        };
        let Some(first) = first else { continue };
        let (title, label) = if first.value == address.value {
            ("two listeners on one address", "taken by this one")
        } else if first.value.ip().is_some_and(|first| first.ip().is_unspecified()) {
            ("two listeners overlap", "this one takes the port on every address")
        } else {
            ("two listeners overlap", "part of it is taken by this one")
        };
        problems.report(
            Diagnostic::error(title, address.span.clone(), "taken already")
                .other(first.span.clone(), label),
        );
    }
}

/// Reports listeners for metrics and autoscalers whose addresses are taken.
fn side_listeners(document: &Document, problems: &Problems) {
    let admin = document.admin.as_ref().map(|admin| &admin.address);
    for (index, SideListener { what, address: own, .. }) in document.side_listeners().enumerate() {
        let own_address = Address::from(own.value);
        let listeners = document.listeners.iter().filter_map(|listener| listener.address.as_ref());
        let taken = listeners.chain(admin).filter(|at| overlap(at.value, own_address));
        let earlier = document.side_listeners().take(index).map(|other| other.address);
        let earlier = earlier.filter(|at| overlap(at.value.into(), own_address));
        let spans = taken.map(|at| &at.span).chain(earlier.map(|at| &at.span));
        for span in spans.cloned() {
            let title = format!("{what} are on an address that is taken");
            let clash = Diagnostic::error(title, own.span.clone(), "taken already");
            problems.report(if span == (0..0) {
                clash.help("the admin API is there by default: choose another port")
            } else {
                clash.other(span, "by this one")
            });
        }
    }
}

/// Warns of a token that others can read.
fn metrics(document: &Document, problems: &Problems) {
    let Some(listener) = &document.metrics.listener else { return };
    let own = &listener.address;
    let Some(token) = &listener.token_file else { return };
    if listener.tls.is_none() && !own.value.ip().to_canonical().is_loopback() {
        let title = format!("the token in {} crosses the network in clear text", token.display());
        problems.report(
            Diagnostic::warning(title, own.span.clone(), "without TLS")
                .help("write tls = { certificates = [{ chain = \"…\", key = \"…\" }] } beside it"),
        );
    }
}

/// Reports what takes the TCP port of the connections between members of a fleet.
fn fleet(document: &Document, problems: &Problems) {
    let Some(fleet) = document.fleet.as_ref().filter(|raw| raw.tls.is_some()) else { return };
    let Some(own) = fleet.fleet.as_ref().map(|fleet| fleet.address) else { return };
    let listeners = document.listeners.iter().filter_map(|listener| listener.address.as_ref());
    let taken = listeners.filter(|at| overlap(at.value, own.into()));
    let others = document.side_listeners().map(|listener| listener.address);
    let others = others.filter(|at| overlap(at.value.into(), own.into()));
    let spans = taken.map(|at| &at.span).chain(others.map(|at| &at.span));
    for span in spans {
        let title = "a listener is on the TCP port of the fleet";
        problems.report(Diagnostic::error(title, span.clone(), "taken already").help(format!(
            "with `tls` in [fleet], members connect to {own} over TCP: choose another port"
        )));
    }
}

fn admin(document: &Document, problems: &Problems) {
    let Some(admin) = &document.admin else { return };
    let own = admin.address.value;
    let span = &admin.address.span;
    let in_file = *span != (0..0);
    for address in document.listeners.iter().filter_map(|listener| listener.address.as_ref()) {
        if !overlap(own, address.value) {
            continue;
        }
        let title = "a listener stands where the admin API is";
        let clash = Diagnostic::error(title, address.span.clone(), "taken already");
        problems.report(if in_file {
            clash.other(span.clone(), "by the admin API")
        } else {
            clash.help(format!(
                "the admin API is on {own} by default: write [admin] with another address, or \"off\""
            ))
        });
    }
    if let Some(port) = own.port()
        && !own.is_local()
    {
        let why = if admin.token_file.is_some() {
            "its token would cross the network in plain text, since the admin API does not speak TLS yet"
        } else {
            "anyone who reaches it can drain servers; that needs a token and TLS, which the admin API does not speak yet"
        };
        problems.report(
            Diagnostic::error(
                "the admin API could be reached from other machines",
                span.clone(),
                "not loopback",
            )
            .help(format!(
                "{why}: write \"127.0.0.1:{port}\" or \"unix:/run/weir/admin.sock\", and reach it through an SSH tunnel"
            )),
        );
    }
}

fn limits(document: &Document, problems: &Problems) {
    let all = &document.connections_max;
    for listener in &document.listeners {
        if let Some(own) = &listener.connections_max
            && own.value > all.value
        {
            let warning = Diagnostic::warning(
                "a listener may hold more connections than all listeners together",
                own.span.clone(),
                "never reached",
            );
            problems.report(if all.span == (0..0) {
                warning.help(format!("the top level's connections_max is {} by default", all.value))
            } else {
                warning.other(all.span.clone(), "all together")
            });
        }
    }
}

/// Reports TLS settings that the rest of the listener cannot use.
fn tls(document: &Document, problems: &Problems) {
    for listener in &document.listeners {
        let Some(tls) = &listener.tls else { continue };
        if let Some(hsts) = &tls.hsts
            && !matches!(listener.protocol, RawProtocol::Http)
        {
            problems.report(
                Diagnostic::error(
                    "`hsts` is a field of HTTP responses",
                    hsts.span.clone(),
                    "this listener is tcp",
                )
                .help("leave it out, or write protocol = \"http\""),
            );
        }
    }
    let encrypted: HashMap<&str, &RawServiceTls> = document
        .services
        .iter()
        .filter_map(|raw| Some((raw.service.name.as_ref(), raw.tls.as_ref()?)))
        .collect();
    for listener in &document.listeners {
        if !matches!(listener.protocol, RawProtocol::Tls { .. }) || listener.tls.is_some() {
            continue;
        }
        for name in listener.protocol.services() {
            if let Some(tls) = encrypted.get(name.value.as_ref()) {
                problems.report(
                    Diagnostic::warning("TLS within TLS", name.span.clone(), "passed through")
                        .other(tls.span.clone(), "and encrypted once more")
                        .help("what clients send is TLS already: leave the service's `tls` out"),
                );
            }
        }
    }
}

/// Reports servers that are this balancer itself: their requests come back, possibly in an endless
/// loop.
fn own_servers(document: &Document, problems: &Problems) {
    let listeners = document.listeners.iter().filter_map(|listener| listener.address.as_ref());
    let mut by_port: HashMap<Option<u16>, Vec<_>> = HashMap::new();
    for address in listeners {
        by_port.entry(address.value.port()).or_default().push(address);
    }
    for raw in &document.services {
        for (server, spans) in raw.service.servers.iter().zip(&raw.servers) {
            let ServerTarget::Address(target) = server.target else { continue };
            let candidates = by_port.get(&target.port()).map_or(&[][..], Vec::as_slice);
            let Some(own) = candidates.iter().find(|own| reaches(target, own.value)) else {
                continue;
            };
            problems.report(
                Diagnostic::warning(
                    format!("a server of service \"{}\" is one of Weir's own listeners", raw.service.name),
                    spans.address.clone(),
                    "its requests come back",
                )
                .other(own.span.clone(), "to this listener")
                .help("a request that passes this balancer for the sixth time is answered 508; bytes of a tcp listener are not counted. Write the address of the server behind it"),
            );
        }
    }
}

/// Returns whether a connection to `target` certainly reaches a socket bound to `listener`, as far
/// as the two addresses tell: this machine's addresses are unknown here.
fn reaches(target: Address, listener: Address) -> bool {
    let (Address::Ip(target), Address::Ip(listener)) = (target, listener) else {
        return target == listener;
    };
    let ip = target.ip().to_canonical();
    target.port() != 0
        && target.port() == listener.port()
        && (ip == listener.ip().to_canonical()
            || (listener.ip().is_unspecified() && ip.is_loopback()
                // A socket on [::] takes IPv4 too.
                && (ip.is_ipv4() || listener.is_ipv6())))
}

/// Reports an http listener for which no route can match.
fn idle_http(document: &Document, problems: &Problems) {
    let general = document.has_published_routes()
        || document.routes.iter().any(|route| route.listeners.is_empty());
    let names = document.routes.iter().flat_map(|route| &route.listeners);
    let named: HashSet<&str> = names.map(|name| name.value.as_ref()).collect();
    for listener in &document.listeners {
        let http = matches!(listener.protocol, RawProtocol::Http);
        let name = listener.name.value.as_ref();
        // A listener whose address could not be read may be the one that was meant.
        let routed = general || named.contains(name) || (name.is_empty() && !named.is_empty());
        if http && !routed && !problems.broken.get() {
            problems.report(
                Diagnostic::warning(
                    "an http listener without a route",
                    listener.address.as_ref().map_or(listener.span.clone(), |at| at.span.clone()),
                    "every request here is answered 404",
                )
                .help("write [[route]] with service = \"…\""),
            );
        }
    }
}
