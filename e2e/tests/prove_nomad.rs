//! Weir follows a real Nomad 1.6.0 through jobs that grow and shrink, a killed agent and a revoked token, while a
//! steady client loses no request. Part of `make prove`; `scripts/install-nomad` builds it.

#[path = "discovery/proof.rs"]
#[allow(dead_code, reason = "prove_consul uses the rest")]
mod proof;
#[path = "discovery/stage.rs"]
#[allow(dead_code, reason = "discovery uses the rest")]
mod stage;

use std::net::SocketAddr;
use std::time::Instant;

use e2e::nomad::Nomad;
use e2e::{NOMAD, Scene, Weir, wait};
use proof::{Table, seen};
use stage::{
    SOON, Server, Steady, config, has_no_secret, nomad_at, server, source, wait_for_error,
    wait_for_recovery, wait_for_standings,
};

const DISCOVER: &str = "nomad = \"web\"";

/// Each server with these tags, for [`Nomad::run_web`].
fn tagged<'a>(servers: &[&Server], tags: &'a [&'a str]) -> Vec<(SocketAddr, &'a [&'a str])> {
    servers.iter().map(|server| (server.address(), tags)).collect()
}

#[test]
#[ignore = "needs a program that only `make prove` builds"]
fn a_job_grows_and_shrinks_and_its_agent_is_killed() {
    let Some(scene) = Scene::new("prove-nomad-job", &[NOMAD]) else { return };
    let servers = [11, 12, 13, 14].map(|host| Server::start(&scene, host));
    let [a, b, c, d] = &servers;
    let mut nomad = Nomad::start(&scene, 20, false);
    nomad.run_web(&tagged(&[a, b, c], &[]));
    let weir = Weir::start(&scene, &config(&scene, &nomad_at(&nomad.url()), DISCOVER, ""));
    wait_for_standings(&weir, &[(&[11, 12, 13], "listed")]);
    let mut table = Table::of(Steady::start(&weir));
    table.steady.only(&[11, 12, 13]);

    nomad.scale_web(c.address(), 0);
    let after = seen(&weir, &[(&[11, 12], "listed")]);
    table.steady.only(&[11, 12]);
    table.row("scaled down by one", "2 listed", after);
    nomad.scale_web(c.address(), 1);
    let after = seen(&weir, &[(&[11, 12, 13], "listed")]);
    table.steady.only(&[11, 12, 13]);
    table.row("scaled up by one", "3 listed", after);
    nomad.run_web(&tagged(&[a, b, c, d], &["weir.weight=3", "weir.zone=a"]));
    let updated = Instant::now();
    wait::until("the values of the tags", SOON, || {
        let shown = [a, b, c, d].map(|one| server(&weir, one.address()));
        let is_so = |one: &serde_json::Value| one["weight"] == 3 && one["zone"] == "a";
        shown.iter().all(is_so).then_some(())
    });
    let after = updated.elapsed();
    table.steady.only(&[11, 12, 13, 14]);
    table.row("the job gets tags and a fourth server", "4 listed", after);

    nomad.kill();
    let error = wait_for_error(&weir, "app", &["refused"]);
    table.steady.only(&[11, 12, 13, 14]);
    nomad.restart(&scene);
    let ready = Instant::now();
    wait_for_recovery(&weir, "app");
    // Before it has read its log again, it answers with an empty list.
    wait_for_standings(&weir, &[(&[11, 12, 13, 14], "listed")]);
    table.steady.only(&[11, 12, 13, 14]);
    table.row("agent killed and restarted (time since it is ready)", &error, ready.elapsed());
    nomad.scale_web(d.address(), 0);
    let after = seen(&weir, &[(&[11, 12, 13], "listed")]);
    table.steady.only(&[11, 12, 13]);
    table.row("scaled down by one", "3 listed", after);
    // Its tasks end one by one, so that only the last ones leave together with most others.
    nomad.stop_web();
    let stopped = Instant::now();
    wait::until("no registration", SOON, || (source(&weir, "app")["listed"] == 0).then_some(()));
    let after = stopped.elapsed();
    let held = source(&weir, "app")["held"].as_u64().unwrap_or_default();
    assert!(held > 0, "a service that had servers is empty");
    table.steady.next(200);
    table.row("the job is stopped", &format!("{held} held"), after);
    table.finish();
}

#[test]
#[ignore = "needs a program that only `make prove` builds"]
fn a_token_of_nomad_is_revoked_and_replaced() {
    let Some(scene) = Scene::new("prove-nomad-token", &[NOMAD]) else { return };
    let servers = [11, 12, 13].map(|host| Server::start(&scene, host));
    let [a, b, c] = &servers;
    let nomad = Nomad::start(&scene, 20, true);
    nomad.run_web(&tagged(&[a, b], &[]));
    let ((accessor, secret), (_, another)) = (nomad.token(), nomad.token());
    let file = scene.file("nomad.token", &secret);
    let of_nomad = format!("{}\ntoken = \"${{file:{}}}\"", nomad_at(&nomad.url()), file.display());
    let weir = Weir::start(&scene, &config(&scene, &of_nomad, DISCOVER, ""));
    wait_for_standings(&weir, &[(&[11, 12], "listed")]);
    let mut table = Table::of(Steady::start(&weir));
    table.steady.only(&[11, 12]);
    nomad.revoke(&accessor);
    let revoked = Instant::now();
    let error = wait_for_error(&weir, "app", &["403"]);
    let after = revoked.elapsed();
    table.steady.only(&[11, 12]);
    table.row("token revoked", &error, after);
    scene.file("nomad.token", &another);
    let answer = weir.ask("/api/v1/reload");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let reloaded = Instant::now();
    wait_for_recovery(&weir, "app");
    let after = reloaded.elapsed();
    nomad.run_web(&tagged(&[a, b, c], &[]));
    wait_for_standings(&weir, &[(&[11, 12, 13], "listed")]);
    table.steady.only(&[11, 12, 13]);
    table.row("reload: another token", "3 listed", after);
    has_no_secret(&[weir.log()], &[&secret, &another]);
    table.finish();
}
