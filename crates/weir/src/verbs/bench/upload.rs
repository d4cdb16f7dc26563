//! `weir bench upload`.

use crate::flags::{Common, Exit, bench::UploadArgs};

use super::failed;

pub(crate) fn run(_args: &UploadArgs, _common: Common) -> Exit {
    failed("`weir bench upload` is not built yet")
}
