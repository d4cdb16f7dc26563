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
    let unit = read("packaging/weir.service")
        .replace("/usr/bin/weir", "/bin/true")
        .replace("Documentation=man:weir(1)\n", "");
    let file = scene.file("weir.service", unit);
    let verified =
        Command::new("systemd-analyze").arg("verify").arg(&file).output().expect("it runs");
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    let own: Vec<&str> = said.lines().filter(|line| line.contains("weir.service")).collect();
    assert!(verified.status.success() && own.is_empty(), "{said}");
}

/// The greatest exposure that `systemd-analyze security` may find, in tenths. What is left is what Weir does: it
/// listens, also on low ports, connects anywhere, and looks at the machine's network.
const EXPOSURE_MAX: &str = "15";

#[test]
fn the_unit_exposes_little() {
    let Some(scene) = Scene::new("packaging-exposure", &["systemd-analyze"]) else {
        return;
    };
    let file = scene.file("weir.service", read("packaging/weir.service"));
    let judged = Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--no-pager", "--threshold", EXPOSURE_MAX])
        .arg(&file)
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&judged.stdout);
    let faults: Vec<&str> = said.lines().filter(|line| line.starts_with('✗')).collect();
    assert!(judged.status.success(), "more than {EXPOSURE_MAX} tenths: {faults:#?}");
}

#[test]
fn the_user_of_the_unit_is_the_one_that_is_made() {
    let user = setting(&read("packaging/weir.service"), "User");
    let made = read("packaging/weir.sysusers");
    assert!(made.lines().any(|line| line.starts_with(&format!("u {user} "))), "{made}");
    let rotated = read("packaging/weir.logrotate");
    assert!(rotated.contains(&format!("su {user} {user}\n")), "{rotated}");
}

#[test]
fn check_accepts_the_packaged_configurations() {
    let Some(scene) = Scene::new("packaging-configurations", &[]) else {
        return;
    };
    for name in ["packaging/debian/weir.toml", "packaging/image.toml", "packaging/weir.toml"] {
        // The unit makes its folders.
        let folder = format!("{}/", scene.folder().display());
        let text = read(name).replace("/run/weir/", &folder).replace("/var/log/weir/", &folder);
        let file = scene.file("weir.toml", text);
        let finished = e2e::run(&scene, &["check", &file.to_string_lossy()]);
        assert_eq!(finished.code, Some(0), "{name}: {finished:?}");
    }
    // A package that is installed opens no port to others.
    let packaged = read("packaging/debian/weir.toml");
    let addresses = packaged.lines().filter(|line| line.starts_with("address = "));
    for line in addresses {
        assert!(line.contains("\"unix:/run/weir/") || line.contains("\"127.0.0.1:"), "{line}");
    }
}

/// dpkg runs them with /bin/sh, on machines without systemd, too.
#[test]
fn maintainer_scripts_are_shell() {
    for name in ["preinst", "postinst", "prerm", "postrm"] {
        let file = root().join("packaging/debian").join(name);
        let parsed = Command::new("sh").arg("-n").arg(&file).output().expect("a shell");
        assert!(parsed.status.success(), "{name}: {parsed:?}");
        let text = read(&format!("packaging/debian/{name}"));
        // Where systemd does not run, such as in a chroot, systemctl must not be called.
        let is_careful = !text.contains("systemctl") || text.contains("/run/systemd/system");
        assert!(is_careful && !text.contains("restart weir"), "{name}");
    }
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
