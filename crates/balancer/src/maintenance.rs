//! The maintenance of services and routes that an upgrade hands to the new process.

use std::time::Duration;

use admin_api::handover;
use decide::Registry;
use model::{Maintained, Maintenance};

/// Returns what operators have switched on.
pub(crate) fn to_handover(registry: &Registry) -> Vec<handover::Maintenance> {
    let rows = registry.maintenance().rows().into_iter();
    let rows = rows.map(|(kind, name, Maintenance { retry_after })| handover::Maintenance {
        kind: kind.into(),
        name: name.to_string(),
        retry_after_ms: retry_after.map(|time| time.as_millis() as u64),
    });
    rows.collect()
}

/// Switches on again what the process before had switched on, as far as this configuration has it.
pub(crate) fn restore(registry: &Registry, rows: &[handover::Maintenance]) {
    let published = registry.load_full();
    let snapshot = &published.snapshot;
    for handover::Maintenance { kind, name, retry_after_ms } in rows {
        // One of a kind that only a newer version knows cannot be in this configuration.
        let Some(kind) = kind.known() else { continue };
        let is_there = match kind {
            Maintained::Service => snapshot.services.iter().any(|one| *one.name == **name),
            Maintained::Route => snapshot.routes.iter().any(|one| *one.name == **name),
        };
        if is_there {
            let retry_after = retry_after_ms.map(Duration::from_millis);
            let maintenance = Maintenance {
                retry_after: retry_after.map(|time| time.min(Maintenance::RETRY_AFTER_MAX)),
            };
            registry.maintenance().set(kind, name, Some(maintenance));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::Moment;

    use super::*;

    fn registry(text: &str) -> Registry {
        let checked = config::check(text, "test.toml", &()).unwrap();
        let registry = Registry::with_seed(1);
        registry.publish(Arc::new(checked.snapshot), Moment::ZERO);
        registry
    }

    #[test]
    fn the_next_process_switches_on_what_this_one_had_and_its_file_still_names() {
        let text = |name: &str| {
            format!(
                "admin = {{ address = \"off\" }}\n\
                 listener = [{{ address = \"127.0.0.1:8080\" }}]\n\
                 route = [{{ name = \"{name}\", service = \"app\" }}]\n\
                 service.app = {{ server = [{{ address = \"10.0.0.1:80\" }}] }}\n"
            )
        };
        let old = registry(&text("all"));
        let on = Maintenance { retry_after: Some(Duration::from_mins(10)) };
        old.maintenance().set(Maintained::Service, "app", Some(on));
        old.maintenance().set(Maintained::Route, "all", Some(Maintenance::default()));
        let mut rows = to_handover(&old);
        assert_eq!(rows.len(), 2);
        let unknown = r#"{"kind": "listener", "name": "app"}"#;
        rows.push(serde_json::from_str(unknown).unwrap());

        let same = registry(&text("all"));
        restore(&same, &rows);
        assert_eq!(same.maintenance().rows(), old.maintenance().rows());
        let renamed = registry(&text("other"));
        restore(&renamed, &rows);
        assert_eq!(renamed.maintenance().rows(), [(Maintained::Service, Arc::from("app"), on)]);
    }
}
