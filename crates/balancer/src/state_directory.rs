//! The directory for state that must survive a restart.

use std::env;
use std::path::PathBuf;

use model::Snapshot;

/// The directory if neither the configuration nor the environment names one.
const DIRECTORY: &str = "/var/lib/weir";

/// The file in it with the servers and the routes that sources listed last.
const SERVERS_FILE: &str = "servers.json";

/// Returns the file with the servers and the routes that sources listed last.
pub(crate) fn servers_file(snapshot: &Snapshot) -> PathBuf {
    of(snapshot).join(SERVERS_FILE)
}

/// Returns the configuration's state directory, or else that of the environment, or the usual one.
pub(crate) fn of(snapshot: &Snapshot) -> PathBuf {
    // systemd may pass several, separated by colons (systemd.exec(5)).
    let from_environment = || {
        let value = env::var_os("STATE_DIRECTORY")?;
        let first = env::split_paths(&value).next()?;
        first.is_absolute().then_some(first)
    };
    let configured = snapshot.state_directory.clone();
    configured.or_else(from_environment).unwrap_or_else(|| PathBuf::from(DIRECTORY))
}
