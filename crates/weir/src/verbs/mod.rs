//! One file per verb.

pub(crate) mod check;
pub(crate) mod demo;
pub(crate) mod explain;
pub(crate) mod schema;
pub(crate) mod serve;
