//! A preview is what the change then does.

use model::{Administrative, Health};

use super::*;
use crate::{ServerChange, ServiceView};

fn signature(view: &ServiceView) -> String {
    let servers = view.endpoints.iter().map(|one| {
        let (state, weight) = (one.administrative.as_str(), one.weight);
        format!("{} {} {state} {weight}", one.address, one.eligible)
    });
    format!("{:?} {:?} {:?}", view.tier, view.reason, servers.collect::<Vec<_>>())
}

/// A random series of changes and of servers that go down, with the hysteresis of zones.
#[test]
fn a_preview_is_what_the_change_then_does() {
    let mut rng = fastrand::Rng::with_seed(18);
    let mut spec = service("app", &[1, 2, 3, 4, 5, 6], 0, 0);
    for (index, server) in spec.servers.iter_mut().enumerate() {
        server.zone = Some(if index < 3 { "near" } else { "far" }.into());
        server.backup = index == 5;
    }
    spec.when_all_down = WhenAllDown::TryAll;
    let registry = Registry::with_seed(0);
    let snapshot =
        Snapshot { services: vec![Arc::new(spec)], zone: Some("near".into()), ..Snapshot::empty() };
    let live = Arc::clone(&registry.publish(Arc::new(snapshot), NOW).services[0]);
    for step in 0..2_000 {
        let endpoint = Arc::clone(&live.endpoints().all[rng.usize(..6)]);
        if rng.u8(..3) == 0 {
            let health = if rng.bool() { Health::Down } else { Health::Up };
            endpoint.state.set_health(health, NOW);
            live.refresh(NOW);
            continue;
        }
        let change = match rng.u8(..3) {
            0 => ServerChange::Weight(Some(rng.u16(..3)).filter(|_| rng.bool())),
            _ => ServerChange::State(Administrative::ALL[rng.usize(..Administrative::ALL.len())]),
        };
        let before = signature(&live.view(NOW));
        let preview = signature(&live.preview(&[endpoint.row.address], change, NOW));
        assert_eq!(signature(&live.view(NOW)), before, "a preview changes nothing");
        change.make(&endpoint);
        live.refresh(NOW);
        assert_eq!(signature(&live.view(NOW)), preview, "step {step}: {change:?}");
    }
}
