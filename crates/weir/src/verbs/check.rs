//! `weir check`: prints all errors of a configuration file, or explains what the file does.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use balancer::configuration;
use control::load::{Folder, LoadError};
use serde_json::{Value, json};

use crate::flags::{CheckArgs, Common, Exit};
use crate::render;

/// The file name that stands for standard input.
const STANDARD_INPUT: &str = "-";

pub(crate) fn run(args: &CheckArgs, common: Common) -> Exit {
    let (name, text) = if args.file == Path::new(STANDARD_INPUT) {
        ("standard input".to_owned(), control::load::read_from(io::stdin().lock(), 0))
    } else {
        (args.file.display().to_string(), control::load::read(&args.file))
    };
    let text = match text {
        Ok(text) => text,
        Err(source) => {
            let path = PathBuf::from(name);
            eprintln!("weir: {}", LoadError::Unreadable { path, source });
            return Exit::Mistake;
        }
    };
    if args.file_only {
        return check_text(&text, &name, args, common);
    }
    let checked = config::check(&text, &name, &Folder::of(&args.file));
    let report = match &checked {
        Ok(checked) => &checked.report,
        Err(report) => report,
    };
    if !args.json {
        eprint!("{}", report.render(common.colours_stderr()));
    }
    match &checked {
        Ok(checked) => valid(checked, &name, args, common),
        Err(report) => invalid(report, &name, args),
    }
}

/// Says what is wrong, as JSON if that is asked for; as text it has been said.
fn invalid(report: &config::Report, name: &str, args: &CheckArgs) -> Exit {
    if args.json {
        let mistakes = render::diagnostics::json(report);
        print_json(&json!({ "file": name, "valid": false, "mistakes": mistakes }));
    }
    Exit::Mistake
}

/// Checks what is the same on every machine. What the file will do depends on the files that it
/// names, so that it is not explained.
fn check_text(text: &str, name: &str, args: &CheckArgs, common: Common) -> Exit {
    let checked = config::check_text(text, name, &Folder::of(&args.file));
    let (Ok(report) | Err(report)) = &checked;
    if !args.json {
        eprint!("{}", report.render(common.colours_stderr()));
    }
    match &checked {
        Err(report) => invalid(report, name, args),
        Ok(report) if args.json => {
            let warnings = render::diagnostics::json(report);
            print_json(&json!({ "file": name, "valid": true, "warnings": warnings }))
        }
        Ok(_) => print(&format!(
            "{name} is valid. The files that it names, and this machine, were not checked.\n"
        )),
    }
}

/// Explains a file without mistakes, unless this host lacks something that it needs.
fn valid(checked: &config::Checked, name: &str, args: &CheckArgs, common: Common) -> Exit {
    let snapshot = &checked.snapshot;
    let warnings = || render::diagnostics::json(&checked.report);
    let obstacles = balancer::obstacles(snapshot);
    if !obstacles.is_empty() {
        if args.json {
            print_json(&json!({
                "file": name,
                "valid": false,
                "mistakes": [],
                "obstacles": obstacles,
                "warnings": warnings(),
            }));
        } else {
            for obstacle in obstacles {
                eprintln!("weir: {obstacle}");
            }
        }
        return Exit::Failed;
    }
    if !args.json {
        let plan = health::report::of_snapshot(snapshot);
        let what = render::explain(snapshot, &plan, common.colours_stdout());
        return print(&format!("{name} is valid.\n\n{what}"));
    }
    let mut value = json!({ "file": name, "valid": true, "warnings": warnings() });
    let explained = configuration::to_json(snapshot);
    if let (Some(value), Value::Object(explained)) = (value.as_object_mut(), explained) {
        value.extend(explained);
    }
    print_json(&value)
}

/// Prints a value as JSON, indented, as one may read it too.
pub(super) fn print_json(value: &Value) -> Exit {
    print(&format!("{value:#}\n"))
}

/// Prints the last that a verb has to say.
pub(super) fn print(text: &str) -> Exit {
    print_on(text).err().unwrap_or(Exit::Done)
}

/// Prints something that more may follow.
///
/// # Errors
/// The exit code if the reader has closed the pipe. A reader that has seen enough (`weir check … | head`) is
/// no failure.
pub(super) fn print_on(text: &str) -> Result<(), Exit> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Exit::Done),
        Err(error) => {
            eprintln!("weir: cannot write to standard output: {error}");
            Err(Exit::Failed)
        }
    }
}
