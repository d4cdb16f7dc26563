//! One file per verb.

pub(crate) mod bench;
pub(crate) mod bundle;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod init;
pub(crate) mod lab;
pub(crate) mod maintenance;
pub(crate) mod man;
pub(crate) mod reload;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod server_state;
pub(crate) mod status;
pub(crate) mod top;
pub(crate) mod trace;
pub(crate) mod upgrade;
