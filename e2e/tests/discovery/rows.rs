//! Servers from TOML files with `[[server]]` tables, which are watched.

use e2e::{Scene, Weir, wait};

use super::stage::{
    SOON, Server, Steady, config, server, source, wait_for_error, wait_for_recovery,
    wait_for_standings,
};
use super::targets::Folder;

/// A file with a table for each host, with these further keys.
fn rows(scene: &Scene, hosts: &[u8], keys: &str) -> String {
    let row =
        |&host: &u8| format!("[[server]]\naddress = \"{}\"\n{keys}\n", scene.address(host, 8080));
    hosts.iter().map(row).collect()
}

#[test]
fn files_of_tables_come_change_and_go() {
    let Some(scene) = Scene::new("discovery-rows", &[]) else { return };
    let servers = [11, 12, 13, 14, 15, 16].map(|host| Server::start(&scene, host));
    let folder = Folder::new(&scene);
    let rows = |hosts: &[u8], keys: &str| rows(&scene, hosts, keys);
    folder.put("web-a.toml", &rows(&[11], ""));
    folder.put("other.toml", &rows(&[16], ""));
    let weir = Weir::start(&scene, &config(&scene, "", "files = \"targets/web-*.toml\"", ""));
    let steady = Steady::start(&weir);
    steady.only(&[11]);
    assert_eq!(server(&weir, servers[0].address())["listing"]["object"], "web-a.toml");
    folder.put("web-b.toml", &rows(&[12], "weight = 3\nzone = \"there\"\nin_flight_max = 4"));
    steady.only(&[11, 12]);
    let shown = server(&weir, servers[1].address());
    assert_eq!((&shown["weight"], &shown["zone"]), (&3.into(), &"there".into()));
    assert_eq!(shown["in_flight_max"], 4);
    folder.put("web-b.toml", &rows(&[12], "backup = true\nversion = \"2.1\""));
    steady.only(&[11]);
    assert_eq!(server(&weir, servers[1].address())["version"], "2.1");
    folder.remove("web-b.toml");
    wait_for_standings(&weir, &[(&[11], "listed")]);

    // A file that is written in place is incomplete, or empty, for a while.
    let place = scene.folder().join("targets/web-a.toml");
    for (broken, host) in ["[[server]\naddr", "", "[[sevrer]]\naddress = \"\""].iter().zip(12..) {
        std::fs::write(&place, broken).unwrap();
        println!("{}", wait_for_error(&weir, "app", &[&place.display().to_string()]));
        wait_for_standings(&weir, &[(&[11], "listed")]);
        steady.only(&[11]);
        std::fs::write(&place, rows(&[11, host], "")).unwrap();
        steady.only(&[11, host]);
        wait_for_recovery(&weir, "app");
        folder.put("web-a.toml", &rows(&[11], ""));
        steady.only(&[11]);
    }

    // One row is wrong; the others count.
    let good = rows(&[11, 15], "");
    folder.put("web-a.toml", &format!("{good}{}", rows(&[16], "wieght = 2")));
    steady.only(&[11, 15]);
    wait::until("the refusal", SOON, || (source(&weir, "app")["refused"] == 1).then_some(()));
    let example = source(&weir, "app")["refused_examples"][0].clone();
    assert_eq!(example["object"], "web-a.toml", "{example}");
    assert!(example.to_string().contains("wieght"), "{example}");
    folder.put("web-a.toml", "server = []\n");
    wait_for_standings(&weir, &[(&[11, 15], "held")]);
    steady.only(&[11, 15]);
    folder.put("web-a.toml", &rows(&[11], ""));
    steady.only(&[11]);
    steady.finish();
}
