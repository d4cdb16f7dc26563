//! Real HTTP/2 and gRPC implementations on both sides of Weir, two cases of each: `make prove`. All cases
//! of all pairs: `make interop`.

use std::process::Command;

use e2e::{Scene, binary, find};

#[test]
#[ignore = "installs packages from PyPI and Go modules the first time: make prove"]
fn every_implementation_gets_through() {
    let Some(scene) = Scene::alone("prove-interop", &["python3", "go", "node", "java"]) else {
        return;
    };
    let results = scene.folder().join("interop.json");
    let mut command = Command::new(find("interop/run").expect("a program of this workspace"));
    command.arg("--fast").arg("--weir").arg(binary()).arg("--json").arg(&results);
    let done = command.output().expect("interop/run starts");
    let said = String::from_utf8_lossy(&done.stdout);
    let complained = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{said}\n{complained}");
    print!("{said}");
}
