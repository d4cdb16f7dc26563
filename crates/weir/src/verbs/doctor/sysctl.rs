//! `weir doctor sysctl`: settings in use, or in a file, judged.

use crate::flags::{Common, Exit, SysctlArgs};

pub(super) fn run(_args: &SysctlArgs, _common: Common) -> Exit {
    Exit::Failed
}
