//! `weir schema`: the configuration's JSON Schema, for editors.

use crate::flags::Exit;

pub(crate) fn run() -> Exit {
    super::check::print_json(&config::schema())
}
