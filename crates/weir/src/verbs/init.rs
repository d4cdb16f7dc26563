//! `weir init`: writes a first configuration file, from flags or from the answers to three questions.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, BufRead, IsTerminal, Write as _};
use std::path::Path;

use crate::flags::{Common, Exit, InitArgs};
use crate::verbs::check;

/// The default address of the listener.
const LISTEN: &str = "0.0.0.0:8080";
/// The name of a file that stands for standard output.
const STANDARD_OUTPUT: &str = "-";

/// What the file says.
#[derive(Debug, PartialEq, Eq)]
struct Answers {
    listen: String,
    servers: Vec<String>,
    /// The path of health checks; `None`: there are none.
    check: Option<String>,
}

pub(crate) fn run(args: &InitArgs, common: Common) -> Exit {
    let is_asked = args.servers.is_empty() && io::stdin().is_terminal();
    let answers = if is_asked {
        match ask(args, &mut io::stdin().lock()) {
            Ok(Some(answers)) => answers,
            Ok(None) => return mistake("there was no answer; nothing is written"),
            Err(error) => return mistake(&format!("cannot read the answers: {error}")),
        }
    } else {
        Answers {
            listen: args.listen.clone().unwrap_or_else(|| LISTEN.to_owned()),
            servers: args.servers.clone(),
            check: args.check.clone(),
        }
    };
    if answers.servers.is_empty() {
        return mistake("no server is named; add --server ADDRESS for each, or use a terminal");
    }
    let text = file(&answers);
    if let Err(report) = config::check(&text, "the new file", &()) {
        eprint!("{}", report.render(common.colours_stderr()));
        return Exit::Mistake;
    }
    if args.file == Path::new(STANDARD_OUTPUT) {
        return check::print(&text);
    }
    write(args, &text)
}

fn mistake(why: &str) -> Exit {
    eprintln!("weir: {why}");
    Exit::Mistake
}

/// Asks for what the flags do not say. `None`: the answers have ended.
fn ask(args: &InitArgs, answers: &mut impl BufRead) -> io::Result<Option<Answers>> {
    let mut answer = |question: &str| -> io::Result<Option<String>> {
        let mut terminal = io::stderr().lock();
        write!(terminal, "{question} ")?;
        terminal.flush()?;
        let mut line = String::new();
        let count = answers.read_line(&mut line)?;
        Ok((count > 0).then(|| line.trim().to_owned()))
    };
    let listen = match &args.listen {
        Some(listen) => listen.clone(),
        None => match answer(&format!("Address on which clients connect [{LISTEN}]:"))? {
            None => return Ok(None),
            Some(text) if text.is_empty() => LISTEN.to_owned(),
            Some(text) => text,
        },
    };
    let mut servers = Vec::new();
    while servers.is_empty() {
        let question = "Addresses of your servers, such as 10.0.1.5:8080 10.0.1.6:8080:";
        let Some(text) = answer(question)? else { return Ok(None) };
        let names = text.split([' ', ',']).filter(|name| !name.is_empty());
        servers.extend(names.map(ToOwned::to_owned));
    }
    let check = match &args.check {
        Some(check) => Some(check.clone()),
        None => match answer("Path for health checks, such as /health; empty: no checks:")? {
            None => return Ok(None),
            Some(text) => Some(text).filter(|text| !text.is_empty()),
        },
    };
    Ok(Some(Answers { listen, servers, check }))
}

/// Returns the text of the file.
fn file(Answers { listen, servers, check }: &Answers) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let mut text = format!(
        "# The configuration of Weir. `weir check FILE` explains what it does, `weir serve FILE` runs it, and \
         `weir reload`\n\
         # applies changes to it. docs/configuration.md describes all keys.\n\
         \n\
         # Where clients connect.\n\
         [[listener]]\n\
         address = {}\n\
         \n\
         # Requests that match go to the service. Routes can have a host, a path, a method and more; this one has all requests.\n\
         [[route]]\n\
         service = \"app\"\n\
         \n\
         [service.app]\n\
         # Concurrent requests per server; more wait in a queue, and are refused with 429 when it is full. Set it to what a server\n\
         # can do at the same time, such as the number of its workers: nothing else protects it from too much work.\n\
         #in_flight_max = 16\n",
        quoted(listen)
    );
    let _ = match check {
        Some(path) => writeln!(
            text,
            "# Servers that do not answer this path with 200 to 399 three times in a row get no requests until they do twice.\n\
             check = {{ path = {} }}",
            quoted(path)
        ),
        None => writeln!(
            text,
            "# With health checks, servers that do not answer get no requests.\n#check = {{ path = \"/health\" }}"
        ),
    };
    text.push_str("server = [\n");
    for server in servers {
        let _ = writeln!(text, "    {{ address = {} }},", quoted(server));
    }
    text.push_str("]\n");
    text
}

fn write(args: &InitArgs, text: &str) -> Exit {
    let name = args.file.display();
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).create_new(!args.force);
    match options.open(&args.file).and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => check::print(&format!(
            "{name} is written. `weir check {name}` explains what it does, `weir serve {name}` runs it.\n"
        )),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            mistake(&format!("{name} exists; --force overwrites it"))
        }
        Err(error) => {
            eprintln!("weir: cannot write {name}: {error}");
            Exit::Failed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> InitArgs {
        InitArgs { file: "-".into(), listen: None, servers: vec![], check: None, force: false }
    }

    #[test]
    fn questions_are_asked_until_there_is_a_server() {
        let answers = |text: &str| ask(&args(), &mut text.as_bytes()).unwrap();
        assert_eq!(
            answers("\n\n10.0.0.1:80, 10.0.0.2:80\n/up\n"),
            Some(Answers {
                listen: LISTEN.to_owned(),
                servers: vec!["10.0.0.1:80".to_owned(), "10.0.0.2:80".to_owned()],
                check: Some("/up".to_owned()),
            })
        );
        let found = answers("[::]:80\nunix:/run/app.sock\n\n").unwrap();
        assert_eq!((&*found.listen, found.check), ("[::]:80", None));
        assert_eq!(answers("\n10.0.0.1:80\n"), None);
        // What a flag says is not asked for.
        let args = InitArgs { listen: Some("[::]:81".to_owned()), ..args() };
        let found = ask(&args, &mut "10.0.0.1:80\n\n".as_bytes()).unwrap().unwrap();
        assert_eq!(found.listen, "[::]:81");
    }

    #[test]
    fn every_file_is_valid_or_says_what_is_wrong() {
        let file = |servers: &[&str], check: Option<&str>| {
            let servers = servers.iter().map(|one| (*one).to_owned()).collect();
            file(&Answers {
                listen: LISTEN.to_owned(),
                servers,
                check: check.map(ToOwned::to_owned),
            })
        };
        for text in [
            file(&["10.0.0.1:80"], None),
            file(&["10.0.0.1:80", "unix:/run/a.sock", "app.internal:80"], Some("/a?b=\"c\"")),
        ] {
            let checked = config::check(&text, "weir.toml", &());
            let checked = checked.unwrap_or_else(|report| panic!("{}", report.render(false)));
            assert_eq!(checked.snapshot.services.len(), 1);
        }
        assert!(config::check(&file(&["a\"] b"], None), "weir.toml", &()).is_err());
        assert!(config::check(&file(&["10.0.0.1:80"], Some("health")), "weir.toml", &()).is_err());
    }
}
