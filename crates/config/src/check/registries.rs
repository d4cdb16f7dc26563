//! Checks `[consul]`, `[nomad]` and `[etcd]` against the services that use them.

use model::ServerSourceWord;

use crate::diagnostic::{Diagnostic, Problems};
use crate::raw::{Document, RawRegistry};

pub(super) fn check(document: &Document, problems: &Problems) {
    let registries = &document.registries;
    let (consul, nomad, etcd) = (&registries.consul, &registries.nomad, &registries.etcd);
    one(document, problems, consul.as_ref(), ("Consul", "NAME"));
    one(document, problems, nomad.as_ref(), ("Nomad", "NAME"));
    one(document, problems, etcd.as_ref(), ("etcd", "/services/NAME/"));
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
    let is_seen = |url: &model::HttpUrl| !url.is_https() && !url.is_of_this_machine();
    let Some(seen) = raw.urls.iter().find(|at| raw.has_secret && is_seen(&at.value)) else {
        return;
    };
    let what = if raw.kind == ServerSourceWord::Etcd { "password" } else { "token" };
    let title = format!("the {what} of {name} is sent in clear text");
    let label = "it can be read on the way";
    problems.report(Diagnostic::warning(title, seen.span.clone(), label).help("write https://"));
}
