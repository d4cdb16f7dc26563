//! Checks the dependencies between crates, read from each Cargo.toml: only from higher to lower layers.

use std::path::{Path, PathBuf};

use crate::Finding;
use crate::layers::{Layer, PURE_EXTERNALS, layer};

/// The dependencies in the Cargo.toml of `crates/<name>`.
pub(crate) struct Package {
    name: String,
    manifest: PathBuf,
    /// Names of dependencies; those of the workspace without their prefix.
    dependencies: Vec<String>,
    /// The same for tests and build scripts.
    other_dependencies: Vec<String>,
}

/// Reads every package below `crates/`, and `e2e`, sorted by name.
pub(crate) fn read_packages(root: &Path) -> Result<Vec<Package>, String> {
    let crates = root.join("crates");
    let entries = std::fs::read_dir(&crates).map_err(|e| format!("{}: {e}", crates.display()))?;
    let mut packages = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let manifest = Path::new("crates").join(&name).join("Cargo.toml");
        packages.push(read_package(root, name, manifest)?);
    }
    let beside = Path::new("e2e/Cargo.toml");
    if root.join(beside).exists() {
        packages.push(read_package(root, "e2e".to_owned(), beside.to_path_buf())?);
    }
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(packages)
}

fn read_package(root: &Path, name: String, manifest: PathBuf) -> Result<Package, String> {
    let text = std::fs::read_to_string(root.join(&manifest))
        .map_err(|error| format!("{}: {error}", manifest.display()))?;
    let table: toml::Table =
        text.parse().map_err(|error| format!("{}: {error}", manifest.display()))?;
    let names = |key: &str| -> Vec<String> {
        let dependencies = table.get(key).and_then(toml::Value::as_table);
        dependencies.into_iter().flat_map(|t| t.keys()).map(|name| plain(name)).collect()
    };
    let mut other_dependencies = names("dev-dependencies");
    other_dependencies.extend(names("build-dependencies"));
    Ok(Package { name, manifest, dependencies: names("dependencies"), other_dependencies })
}

/// Returns a package's name without the prefix: `weir-os` is `os`.
fn plain(name: &str) -> String {
    name.strip_prefix("weir-").unwrap_or(name).to_owned()
}

/// Reports every dependency that does not go to a lower layer.
pub(crate) fn check(packages: &[Package]) -> Vec<Finding> {
    packages.iter().flat_map(check_package).collect()
}

fn check_package(package: &Package) -> Vec<Finding> {
    let error =
        |what: String| Finding { path: package.manifest.clone(), line: 0, what, fails: true };
    let name = &package.name;
    if name == "e2e" {
        let packages = package.dependencies.iter().filter(|dependency| layer(dependency).is_some());
        return packages
            .map(|to| error(format!("e2e tests the program from outside; it must not use {to}")))
            .collect();
    }
    let Some(own) = layer(name) else {
        return vec![error(format!("{name} has no layer; add it to xtask/src/layers.rs"))];
    };
    let mut findings = Vec::new();
    for to in package.dependencies.iter().chain(&package.other_dependencies) {
        match layer(to) {
            Some(below) if below < own => {}
            Some(Layer::Shells) if own == Layer::Shells => {
                findings
                    .push(error(format!("{name} -> {to}: shells must not depend on each other")));
            }
            Some(same) if same == own => findings.push(error(format!(
                "{name} -> {to}: packages of one layer must not depend on each other"
            ))),
            Some(_) => findings.push(error(format!("{name} -> {to}: {to} is in a higher layer"))),
            None => {}
        }
    }
    if own.is_pure() {
        let outside =
            |name: &&String| layer(name).is_none() && !PURE_EXTERNALS.contains(&name.as_str());
        findings.extend(package.dependencies.iter().filter(outside).map(|to| {
            error(format!(
                "{name} is pure and must not use {to}; if {to} does no I/O and reads no clock, \
                 list it in xtask/src/layers.rs"
            ))
        }));
    }
    findings
}

/// Checks that the table in ARCHITECTURE.md lists exactly the existing packages. A package's row begins
/// with its name: "| `model` |".
pub(crate) fn check_map(root: &Path, packages: &[Package]) -> Result<Vec<Finding>, String> {
    let path = Path::new("ARCHITECTURE.md");
    let text =
        std::fs::read_to_string(root.join(path)).map_err(|e| format!("{}: {e}", path.display()))?;
    let rows: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .filter_map(|(index, line)| {
            let (name, _) = line.strip_prefix("| `")?.split_once('`')?;
            layer(name).is_some().then_some((index + 1, name))
        })
        .collect();
    let error = |line, what| Finding { path: path.to_path_buf(), line, what, fails: true };
    let mut findings = Vec::new();
    for (line, name) in &rows {
        if !packages.iter().any(|package| package.name == *name) {
            findings.push(error(*line, format!("the table lists {name}, which does not exist")));
        }
    }
    for package in packages.iter().filter(|package| package.name != "e2e") {
        if !rows.iter().any(|(_, name)| *name == package.name) {
            findings.push(error(0, format!("the table does not list {}", package.name)));
        }
    }
    Ok(findings)
}
