//! `weir bench serve`.

use crate::flags::{Common, Exit, bench::ServeArgs};

use super::failed;

pub(crate) fn run(_args: &ServeArgs, _common: Common) -> Exit {
    failed("`weir bench serve` is not built yet")
}
