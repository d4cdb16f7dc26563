//! Checks for `weir check` what `weir serve` needs besides a valid file: everything but binding
//! addresses and switching users. Creates, writes and binds nothing.

use model::{AccessLog, Snapshot};

use crate::{affinity_key, certificates, sockets};

/// Returns what would keep `snapshot` from being served by this user on this host, one line each,
/// in the words of `weir serve`.
pub fn obstacles(snapshot: &Snapshot) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(snapshot.listeners.iter().filter_map(sockets::obstacle));
    if let Some(asked) = &snapshot.admin
        && let Err(errors) = admin::Door::check(asked)
    {
        lines.extend(errors.iter().map(|error| format!("admin: {error}")));
    }
    if let Some(asked) = &snapshot.metrics.listener
        && let Err(error) = admin::scrape::Door::check(asked)
    {
        lines.push(format!("metrics: {error}"));
    }
    if let Some(asked) = &snapshot.keda
        && let Err(error) = admin::keda::Door::check(asked)
    {
        lines.push(format!("keda: {error}"));
    }
    if let Some(asked) = &snapshot.external_metrics
        && let Err(error) = admin::external_metrics::Door::check(asked)
    {
        lines.push(format!("external_metrics: {error}"));
    }
    if let AccessLog::File(path) = &snapshot.log.access
        && let Err(error) = os::log_file::check(path, sockets::owner(snapshot))
    {
        lines.push(access_log_error(path, &error));
    }
    if let Some(file) = &snapshot.log.explain_token_file
        && let Err(error) = admin::Token::read(file)
    {
        lines.push(error.to_string());
    }
    lines.extend(affinity_key::obstacle(snapshot));
    lines.extend(certificates::obstacle(snapshot));
    if let Some((user, group)) = &snapshot.run_as
        && let Err(error) = os::privileges::ids(user, group.as_deref())
    {
        lines.push(error.to_string());
    }
    lines
}

/// Returns the error that the access log cannot be written to `path`, with the remedy.
pub(crate) fn access_log_error(path: &std::path::Path, error: &std::io::Error) -> String {
    let said = format!("cannot write the access log to {}: {error}", path.display());
    match (error.kind(), path.parent()) {
        (std::io::ErrorKind::NotFound, Some(folder)) => {
            format!("{said}; make the directory {}", folder.display())
        }
        (std::io::ErrorKind::PermissionDenied, Some(folder)) => {
            format!("{said}; this user must be able to write to {}", folder.display())
        }
        _ => said,
    }
}
