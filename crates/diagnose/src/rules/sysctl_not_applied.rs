//! A sysctl file sets a kernel parameter, but the kernel runs with another value.
//!
//! **When.** The last sysctl file that sets a network parameter gives it another value than the
//! running kernel has. The rule applies to the machine itself, not to containers, which have their
//! own parameters.
//!
//! **Why.** The configured value is not in effect: the file was never loaded, a later program or
//! `sysctl -w` changed the value, or the module that owns the parameter (connection tracking) was
//! loaded after the files were read. After the next boot, the other value may apply.
//!
//! **What to do.** Decide which value is right, then load the files or correct them.

use std::collections::BTreeMap;

use crate::facts::Facts;
use crate::finding::{Certainty, Evidence, Severity};
use crate::sysctl::{Line, lines};
use crate::view::Out;

pub(super) fn check(facts: &Facts, out: &mut Out) {
    let Some(files) = out.want("files of kernel settings", &facts.host.sysctl_files) else {
        return;
    };
    let Some(own) = facts.namespaces.iter().find(|namespace| namespace.is_own) else { return };
    if own.is_first.get() != Some(&true) {
        return;
    }
    let Some(settings) = out.want("kernel settings", &own.settings) else { return };
    let mut last: BTreeMap<String, (String, Line)> = BTreeMap::new();
    for file in files {
        for line in lines(&file.text) {
            last.insert(line.name.clone(), (file.path.clone(), line));
        }
    }
    for (name, (path, line)) in last {
        let Some(value) = settings.values.get(&name) else { continue };
        if same(value, &line.value) {
            continue;
        }
        out.push(
            out.finding(
                name.clone(),
                Severity::Advice,
                Certainty::Certain,
                format!("{name} is `{}`, though {path} sets `{}`.", flat(value), flat(&line.value)),
            )
            .evidence(Evidence::text("in force", flat(value)))
            .evidence(Evidence::text(format!("{path}:{}", line.number), flat(&line.value)))
            .why("The file's setting is not in effect, but may be after the next boot.")
            .remedy(
                "If the file is right, load it",
                &[&format!("sysctl -p {path}")],
                "all of its settings take effect",
            )
            .remedy("If the running value is right, correct the file", &[], "none")
            .verify(format!("sysctl {name} prints the value in the file"))
            .source(&["/etc/sysctl.conf", "/etc/sysctl.d", "/proc/sys/net"]),
        );
    }
}

fn same(one: &str, other: &str) -> bool {
    one.split_ascii_whitespace().eq(other.split_ascii_whitespace())
}

fn flat(value: &str) -> String {
    value.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}
