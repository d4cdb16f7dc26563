//! Changes of listeners.

use ipnet::IpNet;
use model::{
    ClientAddress, ClientHttp2, ClientTimeouts, ForwardFields, Listener, Protocol, Registration,
    Snapshot, SocketAccess, TcpBranch, TcpSplit, TlsMode,
};

use super::{Changes, Words, or, time, yes_no};
use model::units::show_size;

/// Listeners are matched by name.
pub(super) fn changes(before: &Snapshot, after: &Snapshot) -> Changes {
    let mut changes = Changes::default();
    for old in &before.listeners {
        match after.listeners.iter().find(|new| new.name == old.name) {
            Some(new) => changes.stays(&old.name, words((old, before), (new, after))),
            None => changes.removed.push(old.name.to_string()),
        }
    }
    let is_new = |new: &&Listener| before.listeners.iter().all(|old| old.name != new.name);
    changes.added.extend(after.listeners.iter().filter(is_new).map(|new| new.name.to_string()));
    changes
}

fn words((old, before): (&Listener, &Snapshot), (new, after): (&Listener, &Snapshot)) -> Words {
    let Listener {
        name: _,
        address,
        socket,
        protocol,
        backlog,
        connections_max,
        trusted,
        client_address,
        forward_fields,
        timeouts: ClientTimeouts { head, idle, body },
        head_max_bytes,
        body_max_bytes,
        proxy_status,
        error_pages,
        tls,
        http2,
        hosts,
        upgrade_protocols,
        proxy_protocol,
        register,
    } = old;
    let mut words = Words::default();
    words.value("address", address, &new.address, ToString::to_string);
    words.value("socket", socket, &new.socket, |SocketAccess { mode, group }| match group {
        Some(group) => format!("mode {mode:o}, group {group}"),
        None => format!("mode {mode:o}"),
    });
    let (protocol, new_protocol) =
        (protocol_name(protocol, before), protocol_name(&new.protocol, after));
    words.value("protocol", &protocol, &new_protocol, String::clone);
    words.value("backlog", backlog, &new.backlog, |n| or(n.as_ref(), "net.core.somaxconn"));
    words.value("connections_max", connections_max, &new.connections_max, u32::to_string);
    words.value("trusted", trusted, &new.trusted, |networks| networks_or_none(networks.iter()));
    words.value("client_address", client_address, &new.client_address, |rule| {
        let ClientAddress { field, hops } = rule;
        let hops = hops.map(|hops| format!(", {hops} from the right"));
        format!("{}{}", field.name(), hops.unwrap_or_default())
    });
    words.value("forward_fields", forward_fields, &new.forward_fields, fields);
    words.value("timeouts.head", head, &new.timeouts.head, time);
    words.value("timeouts.idle", idle, &new.timeouts.idle, time);
    words.value("timeouts.body", body, &new.timeouts.body, time);
    words.value("head_max", head_max_bytes, &new.head_max_bytes, |n| show_size(u64::from(*n)));
    words.value("body_max", body_max_bytes, &new.body_max_bytes, |n| {
        or(n.map(show_size), "no limit")
    });
    words.value("proxy_status", proxy_status, &new.proxy_status, yes_no);
    words.hidden("error_page", error_pages, &new.error_pages);
    super::tls::listener(tls.as_ref(), new.tls.as_ref(), &mut words);
    words.value("http2", http2, &new.http2, |http2| {
        or(http2.map(|ClientHttp2 { streams_max }| format!("{streams_max} streams")), "off")
    });
    words.value("hosts", hosts, &new.hosts, |hosts| {
        or(hosts.as_ref().map(|hosts| hosts.iter().collect::<Vec<_>>().join(" ")), "any")
    });
    words.value("upgrade_protocols", upgrade_protocols, &new.upgrade_protocols, |names| {
        if names.is_empty() { "none".to_owned() } else { names.join(" ") }
    });
    words.value("proxy_protocol", proxy_protocol, &new.proxy_protocol, |networks| {
        networks_or_none(networks.iter())
    });
    words.value("register", register, &new.register, |entry| {
        entry.as_deref().map_or_else(|| "no".to_owned(), registration)
    });
    words
}

/// Returns an entry in Consul as text: `edge at 10.0.0.5:443, tags a b, id c`.
fn registration(entry: &Registration) -> String {
    let tags = if entry.tags.is_empty() {
        String::new()
    } else {
        format!(", tags {}", entry.tags.join(" "))
    };
    let is_usual = entry.id == Registration::default_id(&entry.service, entry.port);
    let id = if is_usual { String::new() } else { format!(", id {}", entry.id) };
    format!("{} at {}{tags}{id}", entry.service, entry.shown_address())
}

fn networks_or_none<'a>(networks: impl Iterator<Item = &'a IpNet>) -> String {
    let networks: Vec<_> = networks.map(ToString::to_string).collect();
    if networks.is_empty() { "none".to_owned() } else { networks.join(" ") }
}

fn protocol_name(protocol: &Protocol, of: &Snapshot) -> String {
    match protocol {
        Protocol::Http => protocol.word().as_str().to_owned(),
        Protocol::Tcp(split) => format!("{} to {}", protocol.word().as_str(), target(split, of)),
        Protocol::Tls(names) => {
            let all = names.iter().map(|(name, mode)| {
                let name = if name == "*" { "others" } else { &name };
                match mode {
                    TlsMode::Passthrough(split) => format!("{name} to {}", target(split, of)),
                    TlsMode::Terminate(split) => {
                        format!("{name} decrypted to {}", target(split, of))
                    }
                    TlsMode::Http => format!("{name} to routes"),
                    TlsMode::Refuse => format!("{name} closed"),
                }
            });
            let all: Vec<_> = all.collect();
            format!("{} by server name: {}", protocol.word().as_str(), all.join(", "))
        }
    }
}

/// Returns where connections go, services by name.
fn target(split: &TcpSplit, of: &Snapshot) -> String {
    let name = |branch: &TcpBranch| {
        branch.to.map_or("nowhere".to_owned(), |id| of.service(id).name.to_string())
    };
    match split.branches.as_slice() {
        [only] => name(only),
        several => {
            let shares = several.iter().map(|branch| format!("{} {}", name(branch), branch.weight));
            shares.collect::<Vec<_>>().join(" and ")
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "shown as every other value is")]
fn fields(fields: &ForwardFields) -> String {
    let ForwardFields { x_forwarded, forwarded, request_id, traceparent, real_ip, via } = *fields;
    let names = [
        (x_forwarded, "x-forwarded"),
        (forwarded, "forwarded"),
        (request_id, "x-request-id"),
        (traceparent, "traceparent"),
        (real_ip, "x-real-ip"),
        (via, "via"),
    ];
    let names: Vec<_> = names.iter().filter(|(sent, _)| *sent).map(|(_, name)| *name).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(" ") }
}
