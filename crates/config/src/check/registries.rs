//! Checks `[consul]`, `[nomad]` and `[etcd]` against the services that use them.

use model::ServerSourceWord;

use crate::diagnostic::{Diagnostic, Problems};
use crate::raw::{Document, RawAction, RawDiscover, RawRegistry, RawRoute};

pub(super) fn check(document: &Document, problems: &Problems) {
    let registries = &document.registries;
    let (consul, nomad, etcd) = (&registries.consul, &registries.nomad, &registries.etcd);
    bypassed(document, problems);
    one(document, problems, consul.as_ref(), ("Consul", "NAME"));
    one(document, problems, nomad.as_ref(), ("Nomad", "NAME"));
    one(document, problems, etcd.as_ref(), ("etcd", "/services/NAME/"));
    kubernetes(document, problems);
}

/// Reports a service that takes its servers from Kubernetes, to which Weir is not connected.
fn kubernetes(document: &Document, problems: &Problems) {
    let discover = document.services.iter().filter_map(|raw| raw.discover.as_ref());
    let is_it = |raw: &&RawDiscover| {
        raw.source.as_ref().is_some_and(|source| source.kind() == ServerSourceWord::Kubernetes)
    };
    if let Some(raw) = discover.into_iter().find(is_it)
        && !document.kubernetes_meant
    {
        let title = "Weir is not connected to Kubernetes";
        let error = Diagnostic::error(title, raw.span.clone(), "takes its servers from there");
        problems.report(error.help("write a table [kubernetes], which may be empty"));
    }
}

/// Reports a rule without a host that protects something: published routes, which have a host, come before it.
fn bypassed(document: &Document, problems: &Problems) {
    let Some(raw) = &document.registries.consul else { return };
    let Some(routes) = raw.settings.routes.as_ref() else { return };
    let published = |name: &str| {
        routes.listeners.is_empty() || routes.listeners.iter().any(|one| **one == *name)
    };
    let protects = |route: &&RawRoute| {
        let is_answered = matches!(route.action, RawAction::Redirect(_) | RawAction::Deny(_));
        let is_seen = route.listeners.is_empty()
            || route.listeners.iter().any(|listener| published(&listener.value));
        // Published routes have the priority 0.
        is_seen
            && route.priority == 0
            && route.hosts.iter().any(|host| host.value.is_none())
            && (is_answered || route.authenticate.is_some())
    };
    if let Some(route) = document.routes.iter().find(protects)
        && !routes.hosts.is_empty()
    {
        let title = "a rule without a host does not apply to hosts that services publish";
        let warning = Diagnostic::warning(title, route.span.clone(), "published routes come first");
        problems.report(warning.help("write priority = 1, or write it with the hosts, or in [defaults.route], or write `listener` in `routes` of [consul] without the listeners of this rule"));
    }
}

fn one<T>(
    document: &Document,
    problems: &Problems,
    raw: Option<&RawRegistry<T>>,
    (name, example): (&str, &str),
) {
    let Some(raw) = raw else { return };
    let Some(first) = raw.urls.first() else { return };
    if raw.is_stated && !document.uses(raw.kind) && document.services_known {
        let title = if raw.kind == ServerSourceWord::Consul {
            "no service takes its servers from Consul, and no listener registers there".to_owned()
        } else {
            format!("no service takes its servers from {name}")
        };
        let mut help = format!(
            "write discover = {{ {} = \"{example}\" }} in a [service.NAME]",
            raw.kind.as_str()
        );
        if raw.kind == ServerSourceWord::Consul {
            help.push_str(", or register = { consul = \"NAME\" } in a [[listener]]");
        }
        problems
            .report_absence(Diagnostic::warning(title, first.span.clone(), "not used").help(help));
    }
    let what = if raw.kind == ServerSourceWord::Etcd { "password" } else { "token" };
    let seen = raw.urls.iter().find(|at| raw.has_secret && super::is_in_clear_text(&at.value));
    if let Some(url) = seen {
        super::secret_in_clear_text(url, &format!("the {what} of {name}"), problems);
    }
}
