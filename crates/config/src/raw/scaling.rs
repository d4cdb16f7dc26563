//! Reads `scaling` of a service.

use std::path::PathBuf;
use std::sync::Arc;

use model::{HttpPeer, HttpUrl, Scaling, ScalingAction, ScalingCall, ScalingWebhook};

use super::table::Table;
use super::{http, paths};
use crate::diagnostic::{At, Diagnostic, Wrong};

/// Longest list of a command and its arguments, and longest of these texts, in bytes.
const COMMAND_TEXTS_MAX: usize = 64;
const TEXT_MAX_BYTES: usize = 16 * 1024;

/// Where a webhook is: completed from its files.
#[derive(Debug)]
pub(crate) struct RawScalingWebhook {
    pub(crate) url: At<HttpUrl>,
    /// `None`: the system's.
    pub(crate) ca: Option<At<PathBuf>>,
    /// A field is secret.
    pub(crate) has_secret: bool,
}

/// Reads the table, whose webhook has no authorities yet. `has_limit`: the servers have a concurrency limit, or it was
/// meant to have one.
pub(super) fn read(mut table: Table<'_>, has_limit: bool) -> (Scaling, Option<RawScalingWebhook>) {
    let (servers_min, servers_max) =
        (table.integer::<u32>("servers_min"), table.integer::<u32>("servers_max"));
    let target = table.number_if("in_flight_target");
    if servers_min.value > servers_max.value && table.has_or_means("servers_max") {
        table.problems.report(
            Diagnostic::error(
                "`servers_min` is above `servers_max`",
                servers_min.span.clone(),
                "the least number",
            )
            .other(servers_max.span.clone(), "the highest number"),
        );
    }
    if !has_limit && target.is_none() && !table.means("in_flight_target") {
        table.problems.report_absence(
            Diagnostic::error(
                "`scaling` of servers without a concurrency limit",
                table.span.clone(),
                "how many requests may a server have?",
            )
            .help("write in_flight_max in the service, or in_flight_target here"),
        );
    }
    let (action, webhook) = action(&mut table);
    let scaling = Scaling {
        servers_min: servers_min.value,
        servers_max: servers_max.value,
        utilization: table.number("utilization").value,
        in_flight_target: target.map(|at| at.value),
        scale_in_after: table.duration("scale_in_after").value,
        idle_after: table.duration("idle_after").value,
        action: action.map(Arc::new),
    };
    table.finish();
    (scaling, webhook)
}

fn action(table: &mut Table<'_>) -> (Option<ScalingAction>, Option<RawScalingWebhook>) {
    const PACE: [&str; 4] = ["scale_out_cooldown", "scale_in_cooldown", "drain_max", "timeout"];
    let spans = ["webhook", "command"].map(|key| table.key_span(key));
    let webhook = table.table("webhook").and_then(webhook);
    let command = command(table);
    let [out_cooldown, in_cooldown, drain_max, timeout] = PACE.map(|key| table.duration(key).value);
    match spans {
        [Some(first), Some(second)] => table.problems.report(
            Diagnostic::error("either `webhook` or `command`", second, "and this")
                .other(first, "this")
                .help("leave one of them out"),
        ),
        [None, None] => {
            for key in PACE {
                let Some(span) = table.own_key_span(key) else { continue };
                let title = format!("`{key}` has no effect without `webhook` or `command`");
                let what = "nothing is called";
                table.problems.report_absence(Diagnostic::warning(title, span, what));
            }
        }
        [Some(_), None] | [None, Some(_)] => {}
    }
    let (call, raw) = match (webhook, command) {
        (Some((call, raw)), _) => (ScalingCall::Webhook(call), Some(raw)),
        (None, Some(command)) => (ScalingCall::Command(command), None),
        (None, None) => return (None, None),
    };
    (Some(ScalingAction { call, out_cooldown, in_cooldown, drain_max, timeout }), raw)
}

/// Returns `None` after a mistake in the URL, which is reported.
fn webhook(mut table: Table<'_>) -> Option<(ScalingWebhook, RawScalingWebhook)> {
    let url = table.text("url", |text| {
        text.parse::<HttpUrl>().map_err(|error| {
            Wrong::new(error.to_string()).help("write it as \"https://machines.internal/scale\"")
        })
    });
    let ca = table.text("ca", paths::file_path);
    let fields = table.map("header", http::changeable_field_name, http::field_value);
    let fields = table.problems.texts(fields);
    let body = table.text("body", bounded).map(|at| at.value);
    table.finish();
    let url = url?;
    let has_secret = fields.iter().any(|(_, value)| value.is_secret());
    let peer = HttpPeer { url: url.value.clone(), ca: None, certificate: None };
    let raw = RawScalingWebhook { url, ca, has_secret };
    Some((ScalingWebhook { peer, fields, body }, raw))
}

/// Returns `None` after a mistake, which is reported.
fn command(table: &mut Table<'_>) -> Option<Vec<String>> {
    let span = table.span_of("command");
    let command = table.texts("command", bounded)?;
    let wrong = match command.first() {
        None => "it names no program",
        Some(program) if program.value.is_empty() => "the program has no name",
        Some(_) if command.len() > COMMAND_TEXTS_MAX => "it has more than 64 texts",
        Some(_) => return Some(command.into_iter().map(|at| at.value).collect()),
    };
    let error = Diagnostic::error("`command` cannot be run", span, wrong);
    table.problems.report(error.help("write command = [\"/usr/local/bin/scale\", \"{servers}\"]"));
    None
}

fn bounded(text: &str) -> Result<String, Wrong> {
    if text.contains('\0') {
        return Err(Wrong::new("a zero byte ends the text for most programs"));
    }
    if text.len() > TEXT_MAX_BYTES {
        return Err(Wrong::new("longer than 16 KiB"));
    }
    Ok(text.to_owned())
}
