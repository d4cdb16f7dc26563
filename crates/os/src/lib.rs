//! Safe wrappers over Linux system calls that `std` does not provide.
//!
//! The only crate that may contain `unsafe`; every block states why it is sound, and none is used
//! where `rustix` or `socket2` already offers a safe call. Nothing here decides anything: policies
//! (which limit, which option, when) belong to the callers.

pub mod accept;
mod accounts;
pub mod capture;
pub mod clock;
pub mod conntrack;
pub mod cpu;
pub mod ethtool;
pub mod folder;
pub mod handover;
pub mod kernel_log;
pub mod limits;
pub mod listen;
pub mod log_file;
pub mod memory;
pub mod namespace;
mod netlink;
pub mod notify;
pub mod plain_file;
pub mod poll;
pub mod privileges;
pub mod process;
pub mod secret_file;
pub mod sock_diag;
pub mod socket;
pub mod socket_activation;
pub mod splice;
pub mod tcp_info;
pub mod terminal;
pub mod threads;
pub mod timer;
pub mod tun;
pub mod unix_socket;
