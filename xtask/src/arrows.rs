//! The arrows between rooms, read from each room's Cargo.toml: they run down only.

use std::path::{Path, PathBuf};

use crate::Finding;
use crate::house::{Floor, PURE_EXTERNALS, floor};

/// What the Cargo.toml of `crates/<name>` says.
pub(crate) struct Room {
    name: String,
    manifest: PathBuf,
    /// Names of dependencies: as code imports them for rooms, the package's for others.
    dependencies: Vec<String>,
    /// The same for tests and build scripts.
    other_dependencies: Vec<String>,
}

/// Reads every room below `crates/`, and `e2e` beside them, in order of name.
pub(crate) fn read_rooms(root: &Path) -> Result<Vec<Room>, String> {
    let crates = root.join("crates");
    let entries = std::fs::read_dir(&crates).map_err(|e| format!("{}: {e}", crates.display()))?;
    let mut rooms = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let manifest = Path::new("crates").join(&name).join("Cargo.toml");
        rooms.push(read_room(root, name, manifest)?);
    }
    let beside = Path::new("e2e/Cargo.toml");
    if root.join(beside).exists() {
        rooms.push(read_room(root, "e2e".to_owned(), beside.to_path_buf())?);
    }
    rooms.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(rooms)
}

fn read_room(root: &Path, name: String, manifest: PathBuf) -> Result<Room, String> {
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
    Ok(Room { name, manifest, dependencies: names("dependencies"), other_dependencies })
}

/// A room's name without the package's prefix: `weir-os` is `os`.
fn plain(name: &str) -> String {
    name.strip_prefix("weir-").unwrap_or(name).to_owned()
}

/// Findings for every arrow that does not run down.
pub(crate) fn check(rooms: &[Room]) -> Vec<Finding> {
    rooms.iter().flat_map(check_room).collect()
}

fn check_room(room: &Room) -> Vec<Finding> {
    let error = |what: String| Finding { path: room.manifest.clone(), line: 0, what, fails: true };
    let name = &room.name;
    if name == "e2e" {
        let rooms = room.dependencies.iter().filter(|dependency| floor(dependency).is_some());
        return rooms
            .map(|to| error(format!("e2e sees the program from outside; it must not use {to}")))
            .collect();
    }
    let Some(own) = floor(name) else {
        return vec![error(format!("{name} has no floor; give it one in xtask/src/house.rs"))];
    };
    let mut findings = Vec::new();
    for to in room.dependencies.iter().chain(&room.other_dependencies) {
        match floor(to) {
            Some(below) if below < own => {}
            Some(Floor::Shells) if own == Floor::Shells => {
                findings.push(error(format!("{name} -> {to}: shells never import each other")));
            }
            Some(same) if same == own => findings.push(error(format!(
                "{name} -> {to}: rooms of one floor do not import each other"
            ))),
            Some(_) => findings.push(error(format!("{name} -> {to}: this arrow runs up"))),
            None => {}
        }
    }
    if own.is_pure() {
        let outside =
            |name: &&String| floor(name).is_none() && !PURE_EXTERNALS.contains(&name.as_str());
        findings.extend(room.dependencies.iter().filter(outside).map(|to| {
            error(format!(
                "{name} is pure and must not use {to}; if {to} does no I/O and reads no clock, \
                 list it in xtask/src/house.rs"
            ))
        }));
    }
    findings
}

/// The map in ARCHITECTURE.md names every room that exists, and no other. A room's row begins
/// with its name: "| `model` |".
pub(crate) fn check_map(root: &Path, rooms: &[Room]) -> Result<Vec<Finding>, String> {
    let path = Path::new("ARCHITECTURE.md");
    let text =
        std::fs::read_to_string(root.join(path)).map_err(|e| format!("{}: {e}", path.display()))?;
    let rows: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .filter_map(|(index, line)| {
            let (name, _) = line.strip_prefix("| `")?.split_once('`')?;
            floor(name).is_some().then_some((index + 1, name))
        })
        .collect();
    let error = |line, what| Finding { path: path.to_path_buf(), line, what, fails: true };
    let mut findings = Vec::new();
    for (line, name) in &rows {
        if !rooms.iter().any(|room| room.name == *name) {
            findings.push(error(*line, format!("the map names {name}, which does not exist")));
        }
    }
    for room in rooms.iter().filter(|room| room.name != "e2e") {
        if !rows.iter().any(|(_, name)| *name == room.name) {
            findings.push(error(0, format!("the map does not name {}", room.name)));
        }
    }
    Ok(findings)
}
