//! `weir check`: every mistake in a configuration file, or what the file will do.

use std::io::{self, Write};

use control::load::{FILE_MAX_BYTES, Folder, LoadError};
use serde_json::{Value, json};

use crate::flags::{CheckArgs, Common, Exit};
use crate::{render, report};

pub(crate) fn run(args: &CheckArgs, common: Common) -> Exit {
    let text = match read(args) {
        Ok(text) => text,
        Err(source) => {
            let path = args.file.clone();
            eprintln!("weir: {}", LoadError::Unreadable { path, source });
            return Exit::Mistake;
        }
    };
    let name = args.file.display().to_string();
    let checked = config::check(&text, &name, &Folder::of(&args.file));
    let found = match &checked {
        Ok(checked) => &checked.warnings,
        Err(found) => found,
    };
    let colour = common.colours_stderr();
    if !args.json && !found.is_empty() {
        eprint!("{}", config::render(found, &text, &name, colour));
    }
    match checked {
        Ok(checked) => {
            let plan = health::report::of_snapshot(&checked.snapshot);
            if args.json {
                let mut value = json!({
                    "file": name,
                    "valid": true,
                    "warnings": render::json::diagnostics(&checked.warnings, &text),
                });
                let explained = render::json::explained(&checked.snapshot, report::plan(&plan));
                if let (Some(value), Value::Object(explained)) = (value.as_object_mut(), explained)
                {
                    value.extend(explained);
                }
                print_json(&value)
            } else {
                let what = render::explain(&checked.snapshot, &plan, common.colours_stdout());
                print(&format!("{name} is valid.\n\n{what}"))
            }
        }
        Err(found) => {
            if args.json {
                let mistakes = render::json::diagnostics(&found, &text);
                print_json(&json!({ "file": name, "valid": false, "mistakes": mistakes }));
            }
            Exit::Mistake
        }
    }
}

fn read(args: &CheckArgs) -> io::Result<String> {
    let size = std::fs::metadata(&args.file)?.len();
    if size > FILE_MAX_BYTES {
        let why = format!("it has {size} bytes, more than {FILE_MAX_BYTES}");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    std::fs::read_to_string(&args.file)
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
/// How the verb ends since nobody reads on. A reader that has seen enough (`weir check … | head`) is
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
