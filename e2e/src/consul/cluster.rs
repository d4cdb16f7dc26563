//! Three Consul servers that elect a leader.

use std::time::Duration;

use super::{Consul, Options};
use crate::{Scene, wait};

/// An election takes a few seconds; a busy machine needs longer.
const ELECTED_WITHIN: Duration = Duration::from_mins(1);

/// Servers of one data center. They keep their data on disk.
pub struct Cluster {
    servers: Vec<Consul>,
}

impl Cluster {
    /// Starts one at each of the scene's addresses `hosts` and waits until they have elected a leader.
    pub fn start(scene: &Scene, hosts: [u8; 3], options: &Options) -> Cluster {
        let options = Options { durable: true, ..options.clone() };
        let all = hosts.map(|host| scene.ip(host)).to_vec();
        let start = |host| Consul::spawn(scene, host, options.clone(), all.clone());
        let mut cluster = Cluster { servers: hosts.map(start).into() };
        for server in &mut cluster.servers {
            server.wait_until_ready();
        }
        cluster
    }

    /// The servers, in the order of their addresses as given.
    pub fn servers(&mut self) -> &mut [Consul] {
        &mut self.servers
    }

    /// Waits until all servers that run name the same leader, which runs; returns its place among them.
    pub fn leader(&mut self) -> usize {
        let servers = &mut self.servers;
        wait::until("a leader", ELECTED_WITHIN, || {
            let running: Vec<_> = servers.iter_mut().map(|one| one.process.is_running()).collect();
            let mut named = Vec::new();
            for server in
                servers.iter().zip(&running).filter(|(_, runs)| **runs).map(|(one, _)| one)
            {
                let answer = server.try_request("GET", "/v1/status/leader", b"").ok()?.json();
                let ip = answer.as_str()?.rsplit_once(':')?.0.to_owned();
                named.push(servers.iter().position(|one| one.ip.to_string() == ip)?);
            }
            let leader = *named.first()?;
            let all_agree = named.iter().all(|one| *one == leader);
            (all_agree && running[leader]).then_some(leader)
        })
    }

    /// Kills the leader (SIGKILL); returns its place. [`Cluster::leader`] waits for the next one.
    pub fn kill_leader(&mut self) -> usize {
        let leader = self.leader();
        self.servers[leader].kill();
        leader
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CONSUL;

    #[test]
    #[ignore = "needs a program that only `make prove` builds"]
    fn a_cluster_elects_another_leader() {
        let Some(scene) = Scene::new("consul-cluster", &[CONSUL]) else { return };
        let mut cluster = Cluster::start(&scene, [20, 21, 22], &Options::default());
        let first = cluster.kill_leader();
        assert_ne!(cluster.leader(), first);
        let server = &mut cluster.servers()[first];
        server.restart(&scene, true);
        server.wait_until_ready();
        cluster.leader();
    }
}
