//! The demo's configuration, as text.

use std::fmt::Write as _;
use std::net::SocketAddr;

/// Concurrent requests that one sample server can handle.
pub(super) const IN_FLIGHT_MAX: u32 = 4;

/// A service of the demo and where its servers listen.
pub(super) struct Service {
    pub(super) name: &'static str,
    /// What its servers do, in words.
    pub(super) what: &'static str,
    /// Address and zone of each.
    pub(super) servers: Vec<(SocketAddr, &'static str)>,
}

/// A configuration file for `services`, balancing from `zone`.
pub(super) fn text(
    zone: &str,
    public: SocketAddr,
    admin: SocketAddr,
    services: &[Service],
) -> String {
    let mut text = format!(
        "# What `weir demo` runs. `weir check` on this file explains it.\n\
         zone = \"{zone}\"\n\
         connections_max = 2000\n\
         drain_max = \"2s\"\n\
         \n\
         [admin]\n\
         address = \"{admin}\"\n\
         \n\
         [log]\n\
         access = \"off\"\n\
         \n\
         [[listener]]\n\
         name = \"public\"\n\
         address = \"{public}\"\n"
    );
    for service in services {
        write_service(&mut text, service);
    }
    text
}

fn write_service(text: &mut String, service: &Service) {
    let Service { name, what, servers } = service;
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "\n\
         # {what}\n\
         [[route]]\n\
         path = \"/{name}\"\n\
         service = \"{name}\"\n\
         \n\
         [service.{name}]\n\
         balance = \"least-connections\"\n\
         in_flight_max = {IN_FLIGHT_MAX}\n\
         queue = {{ length_max = 200, wait_max = \"5s\" }}\n\
         check = {{ kind = \"http\", path = \"/status\", interval = \"2s\", timeout = \"1s\" }}\n"
    );
    for (address, zone) in servers {
        let _ = write!(
            text,
            "[[service.{name}.server]]\n\
             address = \"{address}\"\n\
             zone = \"{zone}\"\n"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn services() -> Vec<Service> {
        let server = |port, zone| (SocketAddr::from(([127, 0, 0, 1], port)), zone);
        let servers = |first| vec![server(first, "eu-west-1a"), server(first + 1, "eu-west-1b")];
        vec![
            Service { name: "catalog", what: "slow", servers: servers(5000) },
            Service { name: "listings", what: "fast", servers: servers(6000) },
        ]
    }

    #[test]
    fn it_is_a_valid_configuration() {
        let public = SocketAddr::from(([127, 0, 0, 1], 8080));
        let admin = SocketAddr::from(([127, 0, 0, 1], 9900));
        let text = text("eu-west-1a", public, admin, &services());
        let checked = match config::check(&text, "demo.toml", &()) {
            Ok(checked) => checked,
            Err(report) => panic!("{}", report.render(false)),
        };
        assert!(checked.report.found.is_empty());
        let snapshot = checked.snapshot;
        assert_eq!(snapshot.services.len(), 2);
        assert_eq!(snapshot.routes.len(), 2);
        assert_eq!(snapshot.services[0].in_flight_max, Some(IN_FLIGHT_MAX));
        assert_eq!(snapshot.services[1].servers.len(), 2);
        assert_eq!(snapshot.admin.unwrap().address, admin.into());
    }
}
