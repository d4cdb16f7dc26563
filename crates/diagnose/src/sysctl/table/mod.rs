//! The settings that are known: what each counts, its default, and its page.

use super::judge::{Judgement, Value};
use super::{Kernel, Machine, Unit};
use crate::page::Page;

/// Makes a part of the table. A setting's comment is its page: a sentence, then paragraphs.
macro_rules! settings {
    ($(
        $(#[doc = $doc:literal])+
        $name:literal, $unit:expr, $default:expr, $judge:expr $(, gone $since:expr, $why:literal)?;
    )+) => {
        pub(super) const SETTINGS: &[$crate::sysctl::table::Setting] = &[$(
            $crate::sysctl::table::Setting {
                name: $name,
                unit: $unit,
                default: $default,
                judge: $judge,
                gone: $crate::sysctl::table::settings!(@gone $($since, $why)?),
                page: concat!($($doc, "\n"),+),
            },
        )+];
    };
    (@gone) => { None };
    (@gone $since:expr, $why:literal) => { Some(($since, $why)) };
}
use settings;

mod core;
mod netfilter;
mod other;
mod tcp;
mod tcp_buffers;

/// A setting that is known.
pub struct Setting {
    /// With dots: `net.ipv4.tcp_rmem`.
    pub name: &'static str,
    /// What its numbers count.
    pub unit: Unit,
    /// The default on a machine, numbers between single spaces; `None` where it depends on what is
    /// not known.
    pub(super) default: fn(&Machine) -> Option<String>,
    pub(super) judge: fn(&Value<'_>) -> Judgement,
    /// Since when it is gone, and why.
    pub(super) gone: Option<(Kernel, &'static str)>,
    page: &'static str,
}

impl Setting {
    /// Every setting that is known, in order of the table.
    pub fn all() -> impl Iterator<Item = &'static Setting> {
        [core::SETTINGS, tcp_buffers::SETTINGS, tcp::SETTINGS, other::SETTINGS, netfilter::SETTINGS]
            .into_iter()
            .flatten()
    }

    /// The setting of that name. Settings per interface or per protocol family are found under
    /// `all`, `default` and `ipv4`.
    pub fn by_name(name: &str) -> Option<&'static Setting> {
        let exact = Setting::all().find(|setting| setting.name == name);
        exact.or_else(|| {
            let name = general(name);
            Setting::all().find(|setting| setting.name == name)
        })
    }

    /// The name that was probably meant: the nearest of all, or the last part of one (`somaxconn`).
    pub fn nearest(name: &str) -> Option<&'static str> {
        let is_end = |known: &&Setting| known.name.rsplit('.').next() == Some(name);
        if let Some(setting) = Setting::all().find(is_end) {
            return Some(setting.name);
        }
        crate::spelling::nearest(name, Setting::all().map(|setting| setting.name))
    }

    /// The default on `machine`; `None` where it depends on what is not known.
    pub fn default_on(&self, machine: &Machine) -> Option<String> {
        (self.default)(machine)
    }

    /// Its page.
    pub fn page(&self) -> Page {
        let lines: Vec<String> = self.page.lines().map(|line| format!("//!{line}")).collect();
        Page::of(&lines.join("\n"))
    }
}

impl std::fmt::Debug for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setting").field("name", &self.name).finish_non_exhaustive()
    }
}

/// `net.ipv6.neigh.eth0.gc_thresh1` → `net.ipv4.neigh.default.gc_thresh1`; others as they are.
fn general(name: &str) -> String {
    let parts: Vec<&str> = name.split('.').collect();
    match parts[..] {
        ["net", "ipv4" | "ipv6", "neigh", _, last] => format!("net.ipv4.neigh.default.{last}"),
        ["net", "ipv4" | "ipv6", "conf", _, last] => format!("net.ipv4.conf.all.{last}"),
        _ => name.to_owned(),
    }
}

/// A default that is the same everywhere.
macro_rules! always {
    ($value:literal) => {
        |_| Some($value.to_owned())
    };
}
use always;

/// A default that moved: the newer value from a kernel on, the older before.
macro_rules! since {
    ($major:literal, $minor:literal, $new:literal, before $old:literal) => {
        |machine| {
            let is_new = machine.kernel >= $crate::sysctl::Kernel($major, $minor);
            Some(if is_new { $new } else { $old }.to_owned())
        }
    };
}
use since;

#[cfg(test)]
mod tests {
    use super::Setting;

    #[test]
    fn every_setting_has_a_page_of_sentences() {
        for setting in Setting::all() {
            let (name, page) = (setting.name, setting.page());
            assert!(page.summary.ends_with('.'), "{name}: {}", page.summary);
            assert!((20..=140).contains(&page.summary.len()), "{name}: {}", page.summary);
            assert!(!page.sections.is_empty(), "{name}");
            for section in &page.sections {
                assert!(section.text.ends_with('.'), "{name}: {}", section.text);
                assert!(section.title.is_empty(), "{name}: {}", section.title);
                assert_eq!(section.text.matches('`').count() % 2, 0, "{name}: {}", section.text);
            }
        }
    }

    #[test]
    fn names_are_unique_and_lead_to_their_setting() {
        let mut names: Vec<_> = Setting::all().map(|setting| setting.name).collect();
        for name in &names {
            assert_eq!(Setting::by_name(name).map(|one| one.name), Some(*name));
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn what_was_meant_is_found() {
        assert_eq!(Setting::nearest("net.core.somaxcon"), Some("net.core.somaxconn"));
        assert_eq!(Setting::nearest("somaxconn"), Some("net.core.somaxconn"));
        assert_eq!(Setting::nearest("net.ipv4.tcp_tw_recyle"), Some("net.ipv4.tcp_tw_recycle"));
        assert_eq!(Setting::nearest("kernel.panic"), None);
        let neigh = Setting::by_name("net.ipv6.neigh.default.gc_thresh3");
        assert_eq!(neigh.map(|one| one.name), Some("net.ipv4.neigh.default.gc_thresh3"));
    }
}
