//! The configuration with what Gateways of Kubernetes serve. The files are not read again when that changes:
//! unfinished work in them must not come into force.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use config::Addition;
use control::load::Input;
use gateway::objects::Key;
use gateway::parts::{self, Joined, Joiner, Templates};
use gateway::served::{InForce, Served};
use model::{Listener, Material, Moment, Service, Snapshot};

use super::{APPLY_RETRY, REPLACED_PER_DOUBLING, ROUTES_RESOLVE_MAX, apply, receipt};
use crate::instance::{Applied, Balancer};

/// Shortest time between two changes of what Gateways serve.
const EVERY_MIN: Duration = Duration::from_millis(10);
/// That pause doubles as that of routes does, up to 640 ms.
const DOUBLINGS_MAX: usize = 6;

/// Names of tables that are in no file, and in no configuration that comes into force.
const LISTENER: &str = "kubernetes/defaults";
const SERVICE: &str = "kubernetes/defaults";
const ENCRYPTED: &str = "kubernetes/defaults-tls";

/// What Gateways serve, and what of it is in force.
#[derive(Default)]
pub(super) struct Gateways {
    /// `None`: Weir is not connected to Kubernetes.
    pub(super) defaults: Option<Defaults>,
    joiner: Joiner,
    /// What is in force.
    served: Arc<Served>,
    /// When that may change next.
    due: Moment,
    /// The generation that could not be applied last, and when it is tried again.
    failed: Option<(u64, Moment)>,
    /// Ports that cannot be opened.
    unopened: Unopened,
}

/// Ports of Gateways that the system does not let Weir open: another program listens on them, for example.
#[derive(Debug, Default)]
struct Unopened {
    /// With the address and the reason.
    ports: BTreeMap<(Key, u16), (SocketAddr, Arc<str>)>,
    /// When they are tried again.
    retry_at: Moment,
}

impl Gateways {
    /// Returns when [`Gateways::follow`] may apply the next change.
    pub(super) fn due(&self) -> Moment {
        self.due
    }

    /// Sets what Gateways take from new files, and returns what they took. Whether Weir is connected to Kubernetes, only
    /// a new process changes: until then, its Gateways stay.
    pub(super) fn set_defaults(
        &mut self,
        of_files: Option<Defaults>,
        balancer: &Balancer,
    ) -> Option<Defaults> {
        let before = self.defaults.clone();
        self.defaults = match balancer.gateways() {
            Some(_) => of_files.or_else(|| before.clone()),
            None => None,
        };
        before
    }

    /// Applies files with what Gateways serve that is in force.
    ///
    /// # Errors
    /// They cannot be applied, one line per reason. Nothing has changed.
    pub(super) fn apply_files(
        &mut self,
        files: &Arc<Snapshot>,
        balancer: &mut Balancer,
        resolve_max: Duration,
    ) -> Result<Option<Applied>, String> {
        let served = Arc::clone(&self.served);
        self.apply(files, &served, balancer, resolve_max)
    }

    /// Applies what Gateways serve now, if that has changed and the last time was not just now. If it cannot be applied,
    /// what was served before stays, and it is tried again later.
    pub(super) fn follow(&mut self, files: &Arc<Snapshot>, balancer: &mut Balancer) {
        let began = os::clock::now();
        if self.defaults.is_none() {
            return;
        }
        let Some(served) = balancer.served().filter(|served| served.is_complete) else { return };
        let is_behind = !self.served.is_complete
            || served.generation != self.served.generation
            || self.unopened.is_due(began);
        // What failed is tried again later; a newer one may be right.
        let is_put_off =
            |(generation, until): (u64, Moment)| generation == served.generation && began < until;
        if !is_behind || began < self.due || self.failed.is_some_and(is_put_off) {
            return;
        }
        let outcome = self.apply(files, &served, balancer, ROUTES_RESOLVE_MAX);
        let took = os::clock::now().since(began);
        // Long connections keep a configuration in memory that has been replaced.
        let in_use = balancer.replaced_configurations() / REPLACED_PER_DOUBLING;
        let pause = EVERY_MIN * (1 << in_use.min(DOUBLINGS_MAX));
        self.due = os::clock::now() + pause.max(took);
        self.failed = None;
        let took_ms = (took.as_secs_f64() * 1e6).round() / 1e3;
        match outcome {
            Ok(applied) => {
                self.served = served;
                if let Some(Applied { diff, generation, .. }) = applied {
                    let changes = receipt::line(&diff);
                    tracing::info!(generation, took_ms, changes, "Gateways have changed");
                }
            }
            Err(problem) => {
                self.failed = Some((served.generation, began + APPLY_RETRY));
                tracing::error!("what Gateways serve cannot be applied: {problem}");
            }
        }
    }

    /// Applies files with what Gateways serve, and reports that it is in force. A port of a Gateway that cannot be
    /// opened is left out, so that it does not hold the others back.
    fn apply(
        &mut self,
        files: &Arc<Snapshot>,
        served: &Served,
        balancer: &mut Balancer,
        resolve_max: Duration,
    ) -> Result<Option<Applied>, String> {
        let Some(defaults) = self.defaults.as_ref().filter(|_| served.is_complete) else {
            return apply(Arc::clone(files), balancer, resolve_max).map_err(|why| why.to_string());
        };
        let (bindings, now) = (&served.bindings, os::clock::now());
        let mut unopened = self.unopened.at(now, bindings);
        // Each time at least one more port is left out.
        loop {
            let Joined { snapshot, ports, left_out } =
                defaults.with(files, served, &unopened, &mut self.joiner);
            let why = match apply(Arc::new(snapshot), balancer, resolve_max) {
                Ok(applied) => {
                    unopened.log(&self.unopened);
                    let mut not_bound = left_out;
                    not_bound.extend(unopened.reasons());
                    balancer.serves_gateways(InForce { generation: served.generation, not_bound });
                    self.unopened = unopened;
                    return Ok(applied);
                }
                Err(why) => why,
            };
            let of_gateways =
                why.listeners.iter().map(|(name, line)| Some((ports.get(name)?, line)));
            let of_gateways = of_gateways.collect::<Option<Vec<_>>>();
            let Some(of_gateways) = of_gateways.filter(|all| !all.is_empty()) else {
                self.unopened.retry_at = unopened.retry_at;
                return Err(why.to_string());
            };
            for (port, line) in of_gateways {
                unopened.add(port, bindings, line);
            }
        }
    }
}

impl Unopened {
    fn is_due(&self, now: Moment) -> bool {
        !self.ports.is_empty() && now >= self.retry_at
    }

    /// Returns the ports that are not tried now: neither those whose time has come nor those with another address.
    fn at(&self, now: Moment, bindings: &parts::Bindings) -> Unopened {
        if now >= self.retry_at {
            return Unopened { ports: BTreeMap::new(), retry_at: now + APPLY_RETRY };
        }
        let is_same = |port: &(Key, u16), address: &SocketAddr| bindings.get(port) == Some(address);
        let ports = self.ports.iter().filter(|(port, (address, _))| is_same(port, address));
        let ports = ports.map(|(port, known)| (port.clone(), known.clone())).collect();
        Unopened { ports, retry_at: self.retry_at }
    }

    fn add(&mut self, port: &(Key, u16), bindings: &parts::Bindings, line: &str) {
        if let Some(address) = bindings.get(port) {
            self.ports.insert(port.clone(), (*address, line.into()));
        }
    }

    /// Logs what is new.
    fn log(&self, before: &Unopened) {
        for (port, known) in &self.ports {
            if before.ports.get(port) != Some(known) {
                let ((gateway, port), (_, why)) = (port, known);
                tracing::error!("port {port} of Gateway {gateway} is not served: {why}");
            }
        }
    }

    fn reasons(&self) -> impl Iterator<Item = ((Key, u16), Arc<str>)> + '_ {
        self.ports.iter().map(|(port, (_, why))| (port.clone(), Arc::clone(why)))
    }
}

/// Returns what Gateways take from the files; `None`: Weir is not to be connected to Kubernetes.
///
/// # Errors
/// The defaults of the files do not suit Gateways, in one line.
pub(super) fn defaults(file: &Snapshot, input: Option<&Input>) -> Result<Option<Defaults>, String> {
    let input = input.filter(|_| file.kubernetes.is_some());
    input.map(Defaults::of).transpose().map_err(|why| format!("kubernetes: {why}"))
}

/// What Gateways serve takes from the files: the defaults of listeners and services.
#[derive(Clone)]
pub(super) struct Defaults {
    listener: Listener,
    service: Arc<Service>,
    /// The authorities that this machine trusts, if it has some.
    authorities: Material,
}

impl Defaults {
    /// Returns the defaults of a configuration.
    ///
    /// # Errors
    /// No listener or service can be made from them, in one line.
    fn of(input: &Input) -> Result<Defaults, String> {
        let tables = |text: String| Addition { name: "the defaults".to_owned(), text: text.into() };
        let plain = tables(format!(
            "[[listener]]\nname = \"{LISTENER}\"\naddress = \"127.0.0.1:1\"\n\
             [service.\"{SERVICE}\"]\nserver = [{{ address = \"127.0.0.1:2\" }}]\n"
        ));
        let encrypted = tables(format!(
            "[service.\"{ENCRYPTED}\"]\nserver = [{{ address = \"127.0.0.1:2\" }}]\ntls = {{}}\n"
        ));
        let with = input.with(&[plain]).map_err(|at_fault| {
            let why = at_fault.into_iter().next().map(|(_, why)| why);
            let why = why.unwrap_or_else(|| "the files have mistakes".to_owned());
            format!("[defaults.listener] or [defaults.service] do not suit Gateways: {why}")
        })?;
        let listener = with.listeners.iter().find(|one| *one.name == *LISTENER).cloned();
        let service = with.services.iter().find(|one| *one.name == *SERVICE).cloned();
        let (Some(listener), Some(service)) = (listener, service) else {
            return Err(format!(
                "a listener or service of the files is named {LISTENER}: give it another name"
            ));
        };
        // Without authorities, connections to servers whose certificates they would have to verify fail.
        let authorities = input.with(&[encrypted]).ok().and_then(|with| {
            let service = with.services.iter().find(|one| *one.name == *ENCRYPTED)?;
            Some(service.tls.as_ref()?.ca.clone())
        });
        let none = || Material { path: "none".into(), bytes: Arc::from([]) };
        Ok(Defaults { listener, service, authorities: authorities.unwrap_or_else(none) })
    }

    /// Returns the configuration of the files with what Gateways serve, without these ports.
    fn with(
        &self,
        files: &Arc<Snapshot>,
        served: &Served,
        without: &Unopened,
        joiner: &mut Joiner,
    ) -> Joined {
        let templates = Templates {
            listener: &self.listener,
            service: &self.service,
            authorities: &self.authorities,
        };
        let gateways = served.gateways.values().map(AsRef::as_ref);
        let mut bindings = Arc::clone(&served.bindings);
        if !without.ports.is_empty() {
            Arc::make_mut(&mut bindings).retain(|port, _| !without.ports.contains_key(port));
        }
        joiner.join(files, gateways, &bindings, templates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_cannot_be_opened_is_tried_again_later_or_at_another_address() {
        let port = |number| (Key::new("n", "g"), number);
        let at = |address: &str| address.parse::<SocketAddr>().unwrap();
        let bindings =
            parts::Bindings::from([(port(80), at("[::]:8080")), (port(81), at("[::]:8081"))]);
        let ports =
            |unopened: &Unopened| unopened.ports.keys().map(|(_, port)| *port).collect::<Vec<_>>();
        let start = Moment::from_millis(1_000_000);
        let mut one = Unopened::default().at(start, &bindings);
        one.add(&port(80), &bindings, "in use");
        one.add(&port(81), &bindings, "in use");
        one.add(&port(82), &bindings, "it has no address");
        assert_eq!(ports(&one), [80, 81]);

        let soon = start + APPLY_RETRY / 2;
        assert!(!one.is_due(soon));
        assert_eq!(ports(&one.at(soon, &bindings)), [80, 81]);
        let moved = parts::Bindings::from([(port(80), at("[::]:8080")), (port(81), at("[::]:9"))]);
        assert_eq!(ports(&one.at(soon, &moved)), [80]);

        let later = start + APPLY_RETRY;
        assert!(one.is_due(later));
        assert!(one.at(later, &bindings).ports.is_empty());
        assert_eq!(ports(&one), [80, 81], "they stay known until a change is in force");
    }
}
