//! Writes a run's results to files.

use std::fs::OpenOptions;

use load_report::{Named, Run, page};

use crate::flags::bench::http::ReportArgs;

/// Whether what was asked for can be written: before a run that would be in vain without. What the
/// files hold is left.
///
/// # Errors
/// Which file cannot be written, and why.
pub(crate) fn can_write(args: &ReportArgs) -> Result<(), String> {
    for path in [&args.json, &args.html].into_iter().flatten() {
        let mut options = OpenOptions::new();
        options.append(true);
        if options.clone().create_new(true).open(path).is_ok() {
            // A run that fails leaves no empty file behind. That it cannot go is no reason to fail.
            let _ = std::fs::remove_file(path);
            continue;
        }
        // Something stands there, if only a link to what does not exist yet: it is not this
        // program's to remove.
        let opened = options.create(true).open(path);
        opened.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_files_can_be_written_is_seen_without_touching_what_is_there() {
        let folder = std::env::temp_dir().join(format!("weir-can-write-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let [new, old, link] = ["new.json", "old.json", "link.html"].map(|name| folder.join(name));
        std::fs::write(&old, "figures").unwrap();
        std::os::unix::fs::symlink(folder.join("later.html"), &link).unwrap();
        let can = |json: &std::path::Path| {
            can_write(&ReportArgs { json: Some(json.into()), html: None, quiet: true })
        };
        for path in [&new, &old, &link] {
            assert_eq!(can(path), Ok(()), "{}", path.display());
        }
        assert!(!new.exists());
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "figures");
        assert!(link.is_symlink(), "a link that leads nowhere yet is the user's");
        assert!(can(&folder.join("no/such.json")).unwrap_err().starts_with("cannot write "));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
