//! Checks `packaging/` and the pictures in `docs/`.

use std::path::{Path, PathBuf};
use std::process::Command;

use e2e::Scene;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).expect("a file of the repository")
}

fn setting(unit: &str, key: &str) -> String {
    let line = unit.lines().find_map(|line| line.strip_prefix(&format!("{key}=")));
    line.unwrap_or_else(|| panic!("no {key} in the unit")).to_owned()
}

#[test]
fn the_unit_allows_what_weir_uses() {
    let unit = read("packaging/weir.service");
    let families = setting(&unit, "RestrictAddressFamilies");
    for family in ["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK"] {
        assert!(families.split(' ').any(|one| one == family), "{family} is missing: {families}");
    }
    let socket = format!("unix:/run/{}/admin.sock", setting(&unit, "RuntimeDirectory"));
    assert!(read("docs/configuration.md").contains(&socket), "not the documented {socket}");
    let log = format!("/var/log/{}/access.log", setting(&unit, "LogsDirectory"));
    assert!(read("packaging/weir.toml").contains(&format!("access = \"{log}\"")), "{log}");
    assert!(read("packaging/weir.logrotate").contains(&format!("{log} {{")), "{log}");
}

#[test]
fn systemd_understands_the_unit() {
    let Some(scene) = Scene::new("packaging-unit", &["systemd-analyze"]) else {
        return;
    };
    // Its programs are not installed here; another that is stands for them.
    let unit = read("packaging/weir.service").replace("/usr/bin/weir", "/bin/true");
    let file = scene.file("weir.service", unit);
    let verified =
        Command::new("systemd-analyze").arg("verify").arg(&file).output().expect("it runs");
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    let own: Vec<&str> = said.lines().filter(|line| line.contains("weir.service")).collect();
    assert!(verified.status.success() && own.is_empty(), "{said}");
}

/// Columns are made of spaces, which Chromium keeps in a `text` by this property alone.
#[test]
fn pictures_of_terminals_keep_their_columns() {
    let Some(scene) = Scene::new("packaging-pictures", &["python3"]) else {
        return;
    };
    let printed = scene.file("printed", "ZONE  SERVER\na     10.0.0.1:80\n");
    let picture = scene.folder().join("picture.svg");
    let drawn = Command::new(root().join("scripts/terminal-svg"))
        .arg(&picture)
        .args(["--prompt", "weir status", "--input"])
        .arg(&printed)
        .output()
        .expect("the script runs");
    assert!(drawn.status.success(), "{drawn:?}");
    let own = std::fs::read_to_string(&picture).expect("a picture");
    for svg in [own, read("docs/status.svg"), read("docs/check.svg")] {
        assert!(
            svg.contains("<style>text{white-space:pre}</style>"),
            "columns collapse: {svg:.200}"
        );
    }
}
