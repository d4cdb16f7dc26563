//! Servers from lists of targets in the format of Prometheus: files, and a server that answers with them.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use e2e::rogue::Rogue;
use e2e::{Scene, Weir, wait};

use super::stage::{
    SOON, Server, Steady, config, server, source, wait_for_error, wait_for_recovery,
    wait_for_standings,
};

/// A list with one group: these hosts with this port, and these labels.
fn group(scene: &Scene, hosts: &[u8], port: u16, labels: &str) -> String {
    let targets: Vec<String> =
        hosts.iter().map(|&host| format!("\"{}\"", scene.address(host, port))).collect();
    format!("[{{\"targets\": [{}], \"labels\": {{{labels}}}}}]", targets.join(", "))
}

/// The folder with the lists, which are replaced as a whole.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new(scene: &Scene) -> Folder {
        let folder = Folder(scene.folder().join("targets"));
        std::fs::create_dir_all(&folder.0).unwrap();
        folder
    }

    pub(super) fn put(&self, name: &str, text: &str) {
        let new = self.0.join("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, self.0.join(name)).unwrap();
    }

    pub(super) fn remove(&self, name: &str) {
        std::fs::remove_file(self.0.join(name)).unwrap();
    }
}

#[test]
fn files_come_change_and_go() {
    let Some(scene) = Scene::new("discovery-files", &[]) else { return };
    let servers = [11, 12, 13].map(|host| Server::start(&scene, host));
    let folder = Folder::new(&scene);
    let list = |hosts: &[u8]| group(&scene, hosts, 8080, "");
    folder.put("a.json", &list(&[11]));
    let weir = Weir::start(&scene, &config(&scene, "", "file_sd = \"targets/*.json\"", ""));
    let steady = Steady::start(&weir);
    steady.only(&[11]);
    assert_eq!(server(&weir, servers[0].address())["listing"]["object"], "a.json");
    let labels =
        "\"weir_weight\": \"3\", \"zone\": \"there\", \"version\": \"2.1\", \"job\": \"web\"";
    folder.put("b.json", &group(&scene, &[12], 8080, labels));
    steady.only(&[11, 12]);
    let shown = server(&weir, servers[1].address());
    let values = ["zone", "version"].map(|key| shown[key].as_str().unwrap_or_default());
    assert_eq!((&shown["weight"], values), (&3.into(), ["there", "2.1"]));
    folder.put("a.json", &list(&[13]));
    steady.only(&[12, 13]);
    folder.remove("b.json");
    steady.only(&[13]);

    // A list that is written in place is incomplete, or empty, for a while.
    let cases = [("[{\"targets\": [", "EOF"), ("", "EOF"), ("[{\"tragets\": []}]", "tragets")];
    let path = folder.0.join("a.json");
    for ((broken, error), host) in cases.into_iter().zip(14..) {
        let _new = Server::start(&scene, host);
        std::fs::write(&path, broken).unwrap();
        println!("{}", wait_for_error(&weir, "app", &[&path.display().to_string(), error]));
        wait_for_standings(&weir, &[(&[13], "listed")]);
        // Another list that is good does not apply as long as one is missing.
        folder.put("b.json", &list(&[host]));
        steady.only(&[13]);
        std::fs::write(&path, list(&[13])).unwrap();
        steady.only(&[13, host]);
        wait_for_recovery(&weir, "app");
        folder.remove("b.json");
        steady.only(&[13]);
    }
    folder.remove("a.json");
    wait_for_error(&weir, "app", &["no such file", "targets"]);
    steady.only(&[13]);
    folder.put("c.json", &list(&[11]));
    steady.only(&[11]);
    wait_for_recovery(&weir, "app");
    steady.finish();
}

#[test]
fn a_list_in_yaml_names_the_ports_of_metrics() {
    let Some(scene) = Scene::new("discovery-yaml", &[]) else { return };
    let _servers = [11, 12, 13].map(|host| Server::start(&scene, host));
    let folder = Folder::new(&scene);
    let (one, two) = (scene.address(11, 9100), scene.ip(12));
    folder.put("web.yml", &format!("- targets:\n  - {one}\n  - {two}\n  labels:\n    zone: a\n"));
    // Not of the pattern.
    folder.put("other.yaml", &format!("- targets: ['{}']\n", scene.address(13, 9100)));
    let discover = "file_sd = \"targets/web*.yml\", port = 8080";
    let weir = Weir::start(&scene, &config(&scene, "", discover, ""));
    let steady = Steady::start(&weir);
    steady.only(&[11, 12]);
    folder.put("web.yml", "- targets: [\n");
    wait_for_error(&weir, "app", &["web.yml"]);
    folder
        .put("web-2.yml", &format!("- targets: ['{}', '{one}']\n- targets: [x:y]\n", scene.ip(13)));
    folder.put("web.yml", "[]");
    steady.only(&[11, 13]);
    wait_for_recovery(&weir, "app");
    let source = source(&weir, "app");
    assert_eq!(source["refused"], 1, "{source:#}");
    assert_eq!(source["refused_examples"][0]["object"], "web-2.yml", "{source:#}");
    steady.finish();
}

#[test]
fn a_server_is_asked_for_its_list_at_an_interval() {
    let Some(scene) = Scene::new("discovery-http", &[]) else { return };
    let _servers = [11, 12, 13].map(|host| Server::start(&scene, host));
    let list = |hosts: &[u8]| (200, group(&scene, hosts, 8080, ""));
    let answer = Arc::new(Mutex::new(list(&[11, 12])));
    let (answers, asked) = (Arc::clone(&answer), Arc::<Mutex<Vec<String>>>::default());
    let heads = Arc::clone(&asked);
    let _lister = Rogue::start(scene.address(41, 9000), move |peer| {
        while let Some(head) = peer.request() {
            heads.lock().unwrap().push(head);
            let (status, body) = answers.lock().unwrap().clone();
            let length = body.len();
            peer.say(format!("HTTP/1.1 {status} Some\r\nContent-Length: {length}\r\n\r\n{body}"));
        }
    });
    let url = format!("http://{}/targets?key=s3cret", scene.address(41, 9000));
    let discover = format!("http_sd = \"{url}\", interval = \"1s\"");
    let weir = Weir::start(&scene, &config(&scene, "", &discover, ""));
    let set = |new: (u16, String)| *answer.lock().unwrap() = new;
    let steady = Steady::start(&weir);
    steady.only(&[11, 12]);
    set(list(&[12, 13]));
    steady.only(&[12, 13]);
    for (status, body, error) in [
        (500, "down", "500"),
        (404, "", "404"),
        (302, "", "302"),
        (200, "<html>", "expected value"),
        (200, "", "EOF"),
        (200, "{}", "map"),
    ] {
        set((status, body.to_owned()));
        println!("{}", wait_for_error(&weir, "app", &[error]));
        steady.only(&[12, 13]);
    }
    set(list(&[11, 12, 13]));
    steady.only(&[11, 12, 13]);
    wait_for_recovery(&weir, "app");
    set((200, "[]".to_owned()));
    wait_for_standings(&weir, &[(&[11, 12, 13], "held")]);
    steady.only(&[11, 12, 13]);
    set(list(&[11]));
    steady.only(&[11]);
    steady.finish();

    let count = asked.lock().unwrap().len();
    wait::until("two more questions", SOON, || {
        (asked.lock().unwrap().len() > count + 1).then_some(())
    });
    let head = asked.lock().unwrap()[0].clone();
    assert!(head.starts_with("GET /targets?key=s3cret HTTP/1.1\r\n"), "{head}");
    let view = weir.api("/api/v1/services").to_string();
    assert!(view.contains("/targets") && !view.contains("s3cret"), "{view}");
    assert!(!weir.log().contains("s3cret"), "{}", weir.log());
}
