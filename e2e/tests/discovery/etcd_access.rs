//! How Weir reaches etcd: as a user, with a certificate, and at another endpoint.

use e2e::etcd::{ETCD, Etcd, Options};
use e2e::{Authority, Scene, Weir, run};

use super::reload::reload;
use super::stage::{
    ETCD_PREFIX, Server, Steady, WATCH_ETCD, all_shown, config, etcd_at, has_no_secret, key, put,
    wait_for_error, wait_for_recovery, wait_for_standings,
};

const PASSWORD: &str = "pa55-0b50e7e1";

#[test]
fn an_expired_or_revoked_token_is_renewed_and_the_password_is_not_shown() {
    let Some(scene) = Scene::new("discovery-etcd-auth", &[ETCD]) else { return };
    let servers = [11, 12, 13, 14, 15].map(|host| Server::start(&scene, host));
    let servers = servers.each_ref();
    let options = Options { token_ttl_s: Some(1), ..Options::default() };
    let mut etcd = Etcd::start_with(&scene, 20, options);
    put(&etcd, &servers[..2]);
    etcd.enable_auth("weir", PASSWORD, ETCD_PREFIX);
    let secret = scene.file("etcd.password", PASSWORD);
    let table = format!(
        "{}\nuser = \"weir\"\npassword = \"${{file:{}}}\"",
        etcd_at(&[&etcd.url()]),
        secret.display()
    );
    let text = config(&scene, &table, WATCH_ETCD, "");
    let place = scene.file("weir.toml", &text).display().to_string();
    let checked = [&["check", &place][..], &["check", "--json", &place]];
    let checked = checked.map(|words| run(&scene, words));
    let weir = Weir::start(&scene, &text);
    let steady = Steady::start(&weir);
    steady.only(&[11, 12]);
    put(&etcd, &[servers[2]]);
    steady.only(&[11, 12, 13]);
    // Its tokens are in its memory, so they are gone.
    etcd.restart(&scene, true);
    put(&etcd, &[servers[3]]);
    steady.only(&[11, 12, 13, 14]);
    wait_for_recovery(&weir, "app");

    etcd.change_password("weir", "another");
    etcd.restart(&scene, true);
    println!("{}", wait_for_error(&weir, "app", &["authentication failed"]));
    let mut shown = all_shown(&scene, &weir);
    put(&etcd, &[servers[4]]);
    steady.only(&[11, 12, 13, 14]);
    etcd.change_password("weir", PASSWORD);
    steady.only(&[11, 12, 13, 14, 15]);
    wait_for_recovery(&weir, "app");

    // A user who may not read the prefix.
    reload(&scene, &weir, &text.replace(ETCD_PREFIX, "/private/"));
    println!("{}", wait_for_error(&weir, "app", &["permission denied"]));
    shown.extend(all_shown(&scene, &weir));
    shown.extend(checked.into_iter().flat_map(|one| [one.stdout, one.stderr]));
    has_no_secret(&shown, &[PASSWORD]);
    assert!(shown.iter().any(|text| text.contains(&etcd.url())), "the configuration is shown");
}

#[test]
fn etcd_wants_a_certificate() {
    let Some(scene) = Scene::new("discovery-etcd-tls", &[ETCD]) else { return };
    let servers = [11, 12, 13].map(|host| Server::start(&scene, host));
    let [a, b, c] = &servers;
    let authority = Authority::new(&scene, "etcd CA");
    let pair = authority.issue("etcd", &[&scene.ip(20).to_string()]);
    let client = authority.issue("client", &["weir"]);
    let mutual_tls = Some((pair, authority.pem().to_owned()));
    let etcd = Etcd::start_with(&scene, 20, Options { mutual_tls, ..Options::default() });
    put(&etcd, &[a, b]);
    let without = format!("{}\n{}", etcd_at(&[&etcd.url()]), authority.ca());
    let with = format!("{without}\ncertificate = {}", client.table());
    let weir = Weir::start(&scene, &config(&scene, &without, WATCH_ETCD, ""));
    println!("{}", wait_for_error(&weir, "app", &["certificate"]));
    wait_for_standings(&weir, &[]);
    reload(&scene, &weir, &config(&scene, &with, WATCH_ETCD, ""));
    wait_for_standings(&weir, &[(&[11, 12], "listed")]);
    wait_for_recovery(&weir, "app");
    let steady = Steady::start(&weir);
    steady.only(&[11, 12]);
    put(&etcd, &[c]);
    steady.only(&[11, 12, 13]);
    etcd.delete(&key(a));
    steady.only(&[12, 13]);
    steady.finish();
}

#[test]
fn another_endpoint_is_asked_when_one_is_dead() {
    let Some(scene) = Scene::new("discovery-etcd-endpoints", &[ETCD]) else { return };
    let servers = [11, 12, 13].map(|host| Server::start(&scene, host));
    let [a, b, c] = &servers;
    let etcd = Etcd::start(&scene, 20);
    put(&etcd, &[a, b]);
    let dead = format!("http://{}", scene.address(21, 2379));
    for endpoints in [[&*dead, &etcd.url()], [&*etcd.url(), &dead]] {
        let weir = Weir::start(&scene, &config(&scene, &etcd_at(&endpoints), WATCH_ETCD, ""));
        let steady = Steady::start(&weir);
        steady.only(&[11, 12]);
        wait_for_recovery(&weir, "app");
        put(&etcd, &[c]);
        steady.only(&[11, 12, 13]);
        etcd.delete(&key(c));
        steady.only(&[11, 12]);
        steady.finish();
    }
}
