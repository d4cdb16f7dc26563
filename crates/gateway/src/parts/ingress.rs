//! What only Ingresses state, as settings of services.

use model::{Affinity, RouteRetries, Service};

use crate::ir::settings::ServiceSettings;

/// Sets what an Ingress states for a service.
pub(super) fn set(service: &mut Service, settings: Option<&ServiceSettings>) {
    let Some(settings) = settings else { return };
    let ServiceSettings {
        ingress: _,
        is_canary: _,
        protocol: _,
        balance,
        affinity,
        connect,
        response,
        idle,
        tunnel,
        retries,
        tls: _,
    } = settings;
    if let Some(balance) = balance {
        service.balance = balance.clone();
    }
    if let Some(affinity) = affinity {
        // Instances with the same key accept each other's cookies.
        let key_file = service.affinity.take().and_then(|of_defaults| of_defaults.key_file);
        service.affinity = Some(Affinity { key_file, ..affinity.clone() });
    }
    let timeouts = &mut service.timeouts;
    timeouts.connect = connect.unwrap_or(timeouts.connect);
    timeouts.response = response.unwrap_or(timeouts.response);
    timeouts.idle = idle.unwrap_or(timeouts.idle);
    timeouts.tunnel = tunnel.unwrap_or(timeouts.tunnel);
    let RouteRetries { attempts_max, statuses, backoff } = retries;
    let of_service = &mut service.retries;
    of_service.attempts_max = attempts_max.unwrap_or(of_service.attempts_max);
    of_service.backoff = backoff.unwrap_or(of_service.backoff);
    if let Some(statuses) = statuses {
        of_service.statuses = statuses.clone();
    }
}
