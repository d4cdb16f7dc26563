//! `weir doctor checks`: the load of health checks that a configuration makes.

use crate::flags::{ChecksArgs, Common, Exit};

pub(super) fn run(_args: &ChecksArgs, _common: Common) -> Exit {
    Exit::Failed
}
