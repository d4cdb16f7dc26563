//! The files that a run's figures go into.

use load::report::{Named, Run, page};

use crate::flags::bench::http::ReportArgs;

/// Whether what was asked for can be written: before a run that would be in vain without. What the
/// files hold is left.
///
/// # Errors
/// Which file cannot be written, and why.
pub(crate) fn can_write(args: &ReportArgs) -> Result<(), String> {
    for path in [&args.json, &args.html].into_iter().flatten() {
        let is_new = !path.exists();
        let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
        opened.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        if is_new {
            // A run that fails leaves no empty file behind. That it cannot go is no reason to fail.
            let _ = std::fs::remove_file(path);
        }
    }
    Ok(())
}

/// Writes what was asked for.
///
/// # Errors
/// Which file could not be written, and why.
pub(crate) fn write(run: &Run, args: &ReportArgs) -> Result<(), String> {
    if let Some(path) = &args.json {
        std::fs::write(path, run.to_json())
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    if let Some(path) = &args.html {
        let name = run.targets.first().map_or("run", |target| target.url.as_str()).to_owned();
        let page = page(&[Named { name, run: run.clone() }]);
        std::fs::write(path, page)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(())
}
