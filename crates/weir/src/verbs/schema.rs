//! `weir schema`.

use crate::flags::Exit;

pub(crate) fn run() -> Exit {
    Exit::Failed
}
