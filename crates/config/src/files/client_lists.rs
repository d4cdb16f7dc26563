//! Lists of networks in files: conditions on clients that are too long for the configuration.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use model::{Condition, ConditionOn, Networks, Test};

use super::Reader;
use crate::Surroundings;
use crate::diagnostic::{At, Diagnostic, Problems, quote};
use crate::raw::{Document, net};
use crate::sources::Sources;

/// Of each list, this many mistakes are reported.
const LINES_REPORTED_MAX: usize = 3;

/// Reads the files that list networks, each once, and adds the networks to the conditions of the routes.
pub(crate) fn add_client_lists(
    document: &mut Document,
    sources: &Sources,
    surroundings: &dyn Surroundings,
    problems: &Problems,
) {
    let user = document.run_as.as_ref().map(|(user, _)| user.as_str());
    let reader = Reader { sources, surroundings, problems, user };
    let mut lists: HashMap<PathBuf, Option<Arc<Networks>>> = HashMap::new();
    for route in &mut document.routes {
        for (negated, at) in std::mem::take(&mut route.client_files) {
            let list = lists.entry(reader.path(&at)).or_insert_with(|| reader.networks(&at));
            let Some(list) = list else {
                // What it would match is unknown.
                route.certain = false;
                continue;
            };
            let is_it = |known: &&mut Condition| {
                known.on == ConditionOn::Client && known.negated == negated
            };
            let test = if let Some(Condition { test: Test::Among(networks), .. }) =
                route.conditions.iter_mut().find(is_it)
            {
                *networks = Arc::new(networks.union(list));
                networks
            } else {
                let test = Test::Among(Arc::clone(list));
                route.conditions.push(Condition { on: ConditionOn::Client, test, negated });
                list
            };
            if test.is_empty() && !negated {
                reader.report_no_networks(&at);
            }
        }
        route.conditions.sort_unstable();
    }
}

impl Reader<'_> {
    /// Returns the networks that a file lists.
    fn networks(&self, at: &At<PathBuf>) -> Option<Arc<Networks>> {
        let material = self.file(at)?;
        let text = String::from_utf8_lossy(&material.bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut networks = Vec::new();
        let mut wrong = 0;
        for (number, line) in (1..).zip(text.lines()) {
            let entry = line.split('#').next().unwrap_or_default().trim();
            if entry.is_empty() {
                continue;
            }
            match net::network(entry) {
                Ok(network) => networks.push(network),
                Err(error) if wrong < LINES_REPORTED_MAX => {
                    wrong += 1;
                    let title = format!("{}, line {number}: {}", at.value.display(), quote(entry));
                    self.problems.report(error.at(title, at.span.clone()).on_machine());
                }
                Err(_) => {}
            }
        }
        let name = at.value.to_string_lossy();
        (wrong == 0).then(|| Arc::new(Networks::of_file(&name, &networks)))
    }

    fn report_no_networks(&self, at: &At<PathBuf>) {
        let title = format!("no networks in {}", at.value.display());
        let diagnostic =
            Diagnostic::warning(title, at.span.clone(), "no client matches this route");
        let help = "write one network per line, such as 192.0.2.0/24";
        self.problems.report(diagnostic.help(help).on_machine());
    }
}
