//! The checks that a configuration of Weir asks for.

use model::{CheckKind, ServerTarget, Snapshot};

use super::{CHECKS_MAX, Check, Checks};

/// The checks of `snapshot`: one for each service and server, though Weir runs equal ones once.
/// Servers given by name count as one endpoint each.
pub fn of_snapshot(snapshot: &Snapshot) -> Checks {
    let mut checks = Checks { processes: 1, is_shared: true, ..Checks::default() };
    let mut left_out = 0_u64;
    for service in &snapshot.services {
        let Some(check) = &service.check else { continue };
        for server in &service.servers {
            if checks.checks.len() >= CHECKS_MAX {
                left_out += 1;
                continue;
            }
            let name = server.target.to_string();
            let (endpoint, spec) = match &server.target {
                ServerTarget::Address(address) => match service.probe(&name, *address) {
                    Some(identity) => (identity.address.to_string(), Some(identity.spec)),
                    None => continue,
                },
                ServerTarget::Name { host, port } => (
                    format!("{host}:{}", check.port.unwrap_or(*port)),
                    service.probe_by_name(&name),
                ),
            };
            let Some(spec) = spec else { continue };
            let mut kind = describe(&spec.kind);
            // Whatever else tells probes apart; not for people to read in full.
            if spec.tls.is_some() {
                kind.push_str(" over TLS");
            }
            if spec.send_proxy.is_some() {
                kind.push_str(" with a PROXY header");
            }
            checks.checks.push(Check {
                service: service.name.to_string(),
                endpoint,
                kind,
                interval_ms: u64::try_from(check.interval.as_millis()).unwrap_or(u64::MAX).max(1),
            });
        }
    }
    if left_out > 0 {
        let left_out = crate::words::plural(left_out, "check");
        checks.notes.push(format!("{left_out} beyond the first {CHECKS_MAX} are left out."));
    }
    checks
}

fn describe(kind: &CheckKind) -> String {
    match kind {
        CheckKind::Tcp => "connect".to_owned(),
        CheckKind::Http { method, path, host, fields, expect, body, .. } => {
            let host = host.as_deref().unwrap_or_default();
            let expect: Vec<String> =
                expect.0.iter().map(|(low, high)| format!("{low}-{high}")).collect();
            let expect = expect.join(",");
            format!("{method} {path}, Host {host}, {fields:?}, expects {expect} {body:?}")
        }
        CheckKind::Grpc { service, host } => {
            format!("grpc.health `{service}`, {}", host.as_deref().unwrap_or_default())
        }
    }
}
