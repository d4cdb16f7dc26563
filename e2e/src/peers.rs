//! The programs before and behind Weir, and what happens if one is not installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// A need that is no program: the right to make network namespaces (root).
pub const NAMESPACES: &str = "namespaces";
/// A Python that has grpcio, h2, websockets and wsproto, which `make peers` puts together. A need
/// with a slash is a file of the workspace.
pub const PYTHON_PEERS: &str = "target/peers/python/bin/python3";
/// h2spec, which `make peers` builds where there is Go.
pub const H2SPEC: &str = "target/peers/bin/h2spec";
/// versitygw, a server of S3 on a folder, which `make peers` builds where there is Go.
pub const VERSITYGW: &str = "target/peers/bin/versitygw";

/// A Consul agent, which `make consul` builds.
pub const CONSUL: &str = "weir-peers/consul-v1.14.11/consul";
/// A Nomad agent, which `make nomad` builds.
pub const NOMAD: &str = "weir-peers/nomad-v1.6.0/nomad";
/// oauth2-proxy, which `make oauth2-proxy` builds.
pub const OAUTH2_PROXY: &str = "weir-peers/oauth2-proxy-v7.15.6/oauth2-proxy";
/// KEDA's client of external scalers, which `make keda-client` builds.
pub const KEDA_CLIENT: &str = "weir-peers/keda-client-v2.21.0-1/keda-client";
/// An OpenTelemetry Collector, which `make otel-collector` builds.
pub const OTEL_COLLECTOR: &str = "weir-peers/otel-collector-v0.161.0/otel-collector";
/// Pebble, an ACME server, which `make pebble` builds.
pub const PEBBLE: &str = "weir-peers/pebble-v2.10.1/pebble";
/// Its DNS server, built with it.
pub const PEBBLE_DNS: &str = "weir-peers/pebble-v2.10.1/pebble-challtestsrv";

/// Where programs are whose building takes minutes: in the user's cache, for every clone.
const CACHED: &str = "weir-peers/";

/// Where `command` is. Debian's own folders come first, so that a wrapper in a person's PATH
/// does not stand between a process and its pid.
pub fn find(command: &str) -> Option<PathBuf> {
    if command.starts_with(CACHED) {
        let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
        return cache.map(|cache| cache.join(command)).filter(|path| path.is_file());
    }
    if command.contains('/') {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(command);
        return path.is_file().then_some(path);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    ["/usr/bin", "/usr/sbin", "/bin", "/sbin"]
        .iter()
        .map(PathBuf::from)
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(command))
        .find(|candidate| candidate.is_file())
}

/// Whether a test that needs all of `needs` can run. In CI a need that is not met fails the
/// test; elsewhere it is said, and the test is left out.
pub(crate) fn are_there(test: &str, needs: &[&str]) -> bool {
    let missing: Vec<&str> = needs.iter().copied().filter(|need| !is_there(need)).collect();
    if missing.is_empty() {
        return true;
    }
    let missing = missing.join(", ");
    let in_ci = std::env::var("CI").is_ok_and(|value| !value.is_empty() && value != "false");
    assert!(!in_ci, "{test}: not there: {missing}; in CI a test that cannot run is a failure");
    eprintln!(
        "{test}: SKIPPED, not there: {missing} (`make test` installs what tests need, `make prove` the rest)"
    );
    false
}

fn is_there(need: &str) -> bool {
    if need == NAMESPACES {
        static MAY: OnceLock<bool> = OnceLock::new();
        return *MAY.get_or_init(may_make_namespaces);
    }
    find(need).is_some()
}

fn may_make_namespaces() -> bool {
    let quiet = |program: &Path, words: &[&str]| {
        Command::new(program)
            .args(words)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    let (Some(ip), Some(nft)) = (find("ip"), find("nft")) else {
        return false;
    };
    let name = format!("weir-may-{}", std::process::id());
    let made = quiet(&ip, &["netns", "add", &name]);
    let nft = nft.to_string_lossy();
    let filters = made && quiet(&ip, &["netns", "exec", &name, &nft, "list", "ruleset"]);
    made && quiet(&ip, &["netns", "del", &name]) && filters
}
