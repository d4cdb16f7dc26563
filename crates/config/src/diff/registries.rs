//! What differs in how the registries of servers are reached.

use model::units::show_duration;
use model::{
    BlockingQueries, Consul, Etcd, HttpPeer, Nomad, Registries, RouteTagFormat, TagRoutes, Text,
};

use super::{Words, joined, or, time, yes_no};

pub(super) fn words(before: &Registries, after: &Registries, words: &mut Words) {
    let Registries { consul, nomad, etcd } = before;
    consul_words(consul.as_deref(), after.consul.as_deref(), words);
    nomad_words(nomad.as_deref(), after.nomad.as_deref(), words);
    etcd_words(etcd.as_deref(), after.etcd.as_deref(), words);
}

fn shown_routes(routes: &TagRoutes) -> String {
    let TagRoutes { hosts, formats, listeners, hold_max } = routes;
    let listeners = if listeners.is_empty() { "all".to_owned() } else { listeners.join(", ") };
    let hosts = hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let formats = formats.iter().map(RouteTagFormat::as_str).collect::<Vec<_>>().join(", ");
    format!(
        "{hosts} in tags of {formats}, listeners {listeners}, held for {}",
        show_duration(*hold_max)
    )
}

fn consul_words(before: Option<&Consul>, after: Option<&Consul>, words: &mut Words) {
    words.value("consul.address", &before, &after, |consul| {
        or(consul.map(|consul| &consul.peer.url), "not used")
    });
    let (Some(before), Some(after)) = (before, after) else { return };
    let Consul { peer, token, datacenters, queries, routes } = before;
    files("consul", Some(peer), Some(&after.peer), words);
    words.hidden("consul.token", token, &after.token);
    words.value("consul.datacenters", datacenters, &after.datacenters, |all| {
        if all.is_empty() { "the agent's".to_owned() } else { joined(all) }
    });
    queries_words("consul", queries, &after.queries, words);
    words.value("consul.routes", routes, &after.routes, |routes| {
        or(routes.as_ref().map(shown_routes), "none")
    });
}

fn nomad_words(before: Option<&Nomad>, after: Option<&Nomad>, words: &mut Words) {
    words.value("nomad.address", &before, &after, |nomad| {
        or(nomad.map(|nomad| &nomad.peer.url), "not used")
    });
    let (Some(before), Some(after)) = (before, after) else { return };
    let Nomad { peer, token, namespace, region, queries } = before;
    files("nomad", Some(peer), Some(&after.peer), words);
    words.hidden("nomad.token", token, &after.token);
    words.value("nomad.namespace", namespace, &after.namespace, |it| or(it.as_ref(), "default"));
    words.value("nomad.region", region, &after.region, |it| or(it.as_ref(), "the agent's"));
    queries_words("nomad", queries, &after.queries, words);
}

fn etcd_words(before: Option<&Etcd>, after: Option<&Etcd>, words: &mut Words) {
    words.value("etcd.endpoints", &before, &after, |etcd| match etcd {
        None => "not used".to_owned(),
        Some(etcd) => joined(&etcd.endpoints.iter().map(|peer| &peer.url).collect::<Vec<_>>()),
    });
    let (Some(before), Some(after)) = (before, after) else { return };
    let Etcd { endpoints, user } = before;
    files("etcd", endpoints.first(), after.endpoints.first(), words);
    let name = |user: &Option<(Text, Text)>| user.as_ref().map(|(name, _)| name.clone());
    words.value("etcd.user", &name(user), &name(&after.user), |name| {
        or(name.as_ref().map(Text::shown), "none")
    });
    let password =
        |user: &Option<(Text, Text)>| user.as_ref().map(|(_, password)| password.clone());
    words.hidden("etcd.password", &password(user), &password(&after.user));
}

fn files(table: &str, before: Option<&HttpPeer>, after: Option<&HttpPeer>, words: &mut Words) {
    let (Some(before), Some(after)) = (before, after) else { return };
    words.hidden(&format!("{table}.ca"), &before.ca, &after.ca);
    words.hidden(&format!("{table}.certificate"), &before.certificate, &after.certificate);
}

fn queries_words(
    table: &str,
    before: &BlockingQueries,
    after: &BlockingQueries,
    words: &mut Words,
) {
    let BlockingQueries { stale, wait, connections_max } = before;
    words.value(&format!("{table}.stale"), stale, &after.stale, yes_no);
    words.value(&format!("{table}.wait"), wait, &after.wait, time);
    let max = &after.connections_max;
    words.value(&format!("{table}.connections_max"), connections_max, max, u32::to_string);
}
