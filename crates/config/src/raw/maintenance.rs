//! Reads `maintenance` of a route or a service.

use model::Maintenance;
use toml::de::DeValue;

use super::table::Table;

pub(super) fn read(table: &mut Table<'_>) -> Option<Maintenance> {
    match table.peek("maintenance") {
        None | Some(DeValue::Boolean(false)) => return None,
        Some(DeValue::Boolean(true)) => return Some(Maintenance::default()),
        Some(_) => {}
    }
    let mut table = table.table("maintenance")?;
    let retry_after = table.duration_if("retry_after").map(|at| at.value);
    table.finish();
    Some(Maintenance { retry_after })
}
