//! Runs many commands of iproute2 at once.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Runs `ip` with these lines, in a namespace if one is given.
///
/// # Errors
/// Its output.
pub(super) fn run(lines: &[String], namespace: Option<&str>) -> Result<(), String> {
    if lines.is_empty() {
        return Ok(());
    }
    let mut command = Command::new("ip");
    if let Some(namespace) = namespace {
        command.args(["-n", namespace]);
    }
    command.args(["-batch", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    // A terminal's Ctrl-C is for this program, which then removes what it has made: half of a batch
    // would leave unrecorded remains.
    command.process_group(0);
    let started = command.spawn();
    let mut child = started.map_err(|error| format!("cannot start ip, of iproute2: {error}"))?;
    if let Some(mut input) = child.stdin.take() {
        // What it does not read, it has complained about.
        let _ = input.write_all((lines.join("\n") + "\n").as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().unwrap_or("ip failed").to_owned();
    let help = if said.contains("not permitted") || said.contains("Permission denied") {
        "; making networks takes root"
    } else {
        ""
    };
    Err(format!("{said}{help}"))
}
