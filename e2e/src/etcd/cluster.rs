//! Three members of an etcd cluster, which elect a leader.

use serde_json::json;

use super::{Etcd, Options, READY_WITHIN};
use crate::{Scene, wait};

/// Members of one cluster. They keep their data.
pub struct Cluster {
    members: Vec<Etcd>,
}

impl Cluster {
    /// Starts one at each of the scene's addresses `hosts` and waits until they have elected a leader.
    pub fn start(scene: &Scene, hosts: [u8; 3]) -> Cluster {
        let start = |host| Etcd::spawn(scene, host, Options::default(), &hosts);
        let mut cluster = Cluster { members: hosts.map(start).into() };
        cluster.members.iter_mut().for_each(Etcd::wait_until_ready);
        cluster
    }

    /// The members, in the order of their addresses as given.
    pub fn members(&mut self) -> &mut [Etcd] {
        &mut self.members
    }

    /// Waits until a member that runs says that it is the leader; returns its place among the members.
    pub fn leader(&mut self) -> usize {
        wait::until("a leader", READY_WITHIN, || {
            self.members.iter().position(|one| {
                let status = one.try_call("/v3/maintenance/status", &json!({}));
                let status = status.map(|answer| answer.json()).unwrap_or_default();
                status["leader"].is_string() && status["leader"] == status["header"]["member_id"]
            })
        })
    }

    /// Kills the leader (SIGKILL); returns its place. [`Cluster::leader`] waits for the next one.
    pub fn kill_leader(&mut self) -> usize {
        let leader = self.leader();
        self.members[leader].kill();
        leader
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::ETCD;

    #[test]
    fn a_cluster_elects_another_leader() {
        let Some(scene) = Scene::new("etcd-cluster", &[ETCD]) else { return };
        let mut cluster = Cluster::start(&scene, [20, 21, 22]);
        let first = cluster.kill_leader();
        let second = cluster.leader();
        assert_ne!(second, first);
        cluster.members()[second].put("/a", "written without the first one");
        let member = &mut cluster.members()[first];
        member.restart(&scene, true);
        member.wait_until_ready();
    }
}
