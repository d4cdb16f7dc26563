//! Parses the kernel's text files (/proc, /sys, /dev/kmsg) into facts. Pure: the caller passes the text.
//! Unexpected text is skipped or reported as missing; nothing here panics.

pub(crate) mod cgroup;
pub(crate) mod counters;
pub(crate) mod cpu;
pub(crate) mod interfaces;
pub(crate) mod kmsg;
pub(crate) mod process;
pub(crate) mod tables;
