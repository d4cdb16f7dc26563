//! How the faults are made.

use std::time::Duration;

use e2e::clients::Load;
use e2e::offloads_off;

use crate::stage::{NAME, Stage, ZONES};

/// The zone of the server that has the fault.
const ZONE: &str = ZONES[1];

/// Needs no preparation.
pub(crate) fn nothing(_: &mut Stage<'_>) {}

pub(crate) fn slow_server(stage: &mut Stage<'_>) {
    stage.faulty().set("work_ms=60");
}

pub(crate) fn half_open(stage: &mut Stage<'_>) {
    // Otherwise it would adopt connections in their middle.
    let strict = || std::fs::write("/proc/sys/net/netfilter/nf_conntrack_tcp_loose", "0");
    stage.zones.inside(ZONE, strict).expect("a firewall that takes no connection in the middle");
    // Connection tracking begins with this rule: it does not know the connections that exist.
    stage.zones.nft(
        ZONE,
        "add table inet firewall; \
         add chain inet firewall in { type filter hook input priority 0; }; \
         add rule inet firewall in ct state invalid drop",
    );
}

pub(crate) fn quick_500(stage: &mut Stage<'_>) {
    stage.faulty().set("status=500&work_ms=0");
}

pub(crate) fn flood(stage: &mut Stage<'_>) {
    let words = ["--source", "127.0.0.77"];
    let flood = Load::start_with(stage.scene, stage.weir.front(), "/", 12, &words);
    stage.loads.push(flood);
}

pub(crate) fn lossy_path(stage: &mut Stage<'_>) {
    // Single segments are lost, rather than bursts of them.
    offloads_off("zone2"); // The balancer's end of the link to the second zone.
    stage.zones.nft(
        ZONE,
        "add table inet loss; \
         add chain inet loss in { type filter hook input priority 0; }; \
         add rule inet loss in numgen random mod 100 < 5 drop",
    );
}

pub(crate) fn listen_queue(stage: &mut Stage<'_>) {
    stage
        .slow_accept
        .as_ref()
        .expect("a server that accepts slowly")
        .pause(Duration::from_millis(250));
}

pub(crate) fn saturated(stage: &mut Stage<'_>) {
    let more = Load::start(stage.scene, stage.weir.front(), "/", 16);
    stage.loads.push(more);
}

/// Drains the server and restarts it with a slower version.
pub(crate) fn drained_and_restarted(stage: &mut Stage<'_>) {
    let (scene, zones) = (stage.scene, stage.zones);
    command(stage, "drain");
    zones.inside(ZONE, || {
        stage.faulty().restart_with(scene, &["--work-ms", "60", "--version", "2.8.1"]);
    });
}

pub(crate) fn deployment(stage: &mut Stage<'_>) {
    command(stage, "ready");
}

/// Runs `weir NAME app SERVER`.
fn command(stage: &Stage<'_>, name: &str) {
    let (server, admin) = (stage.faulty_address().to_string(), stage.scene.admin().to_string());
    let ran = e2e::run(stage.scene, &[name, "app", &server, "--admin", &admin]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

pub(crate) fn certificate(stage: &mut Stage<'_>) {
    stage.authority.issue_ending("shop", &[NAME], Duration::from_hours(30));
}
