//! `weir bench compare`.

use crate::flags::{Common, Exit, bench::CompareArgs};

use super::failed;

pub(crate) fn run(_args: &CompareArgs, _common: Common) -> Exit {
    failed("`weir bench compare` is not built yet")
}
