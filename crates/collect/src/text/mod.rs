//! The kernel's texts (/proc, /sys, /dev/kmsg) → facts. Pure: the text is handed in. What is not
//! as expected is left out or said to be missing; nothing here panics.

pub(crate) mod cgroup;
pub(crate) mod counters;
pub(crate) mod cpu;
pub(crate) mod interfaces;
pub(crate) mod kmsg;
pub(crate) mod process;
pub(crate) mod tables;
