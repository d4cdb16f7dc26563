//! The files of `e2e/cases/framing`, read. Their format is described in the README there. Shared
//! by the end-to-end runner and by the parser's own test, so it knows neither.

use std::path::{Path, PathBuf};

/// One case.
#[derive(Debug, Default)]
pub struct Case {
    /// File name without its ending.
    pub file: String,
    pub name: String,
    pub why: String,
    /// Whether the listener believes the client's forwarding fields.
    pub trusted: bool,
    pub sends: Vec<Send>,
    /// The client closes its sending side after the last send.
    pub shut: bool,
    pub responds: Vec<Respond>,
    pub answers: Vec<Expected>,
    pub end: End,
    pub forwarded: Forwarded,
}

/// Bytes of the client.
#[derive(Debug)]
pub struct Send {
    /// Wait for an answer with this status first.
    pub after: Option<u16>,
    pub bytes: Vec<u8>,
}

/// A scripted response.
#[derive(Clone, Debug)]
pub struct Respond {
    pub bytes: Vec<u8>,
    /// The server closes the connection after it.
    pub close: bool,
}

/// An answer or a forwarded request, and what must hold of it.
#[derive(Debug)]
pub struct Expected {
    /// Status, or request line.
    pub line: String,
    /// The answer to a HEAD.
    pub bodyless: bool,
    /// Its body must not look whole.
    pub broken: bool,
    pub checks: Vec<Check>,
}

/// What becomes of the client's connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    #[default]
    Any,
    Keep,
    Close,
}

/// What the server must have seen.
#[derive(Debug, Default)]
pub enum Forwarded {
    /// Not said: a mistake in the file.
    #[default]
    Unsaid,
    Nothing,
    /// Perhaps the beginning of a request, but never one that is whole.
    NothingComplete,
    Requests(Vec<Expected>),
}

/// What must hold of a message.
#[derive(Debug)]
pub enum Check {
    Has(String, Option<String>),
    Once(String, String),
    No(String),
    Not(String, String),
    Body(Vec<u8>),
    Trailer(String, String),
    NoTrailer(String),
    Tunnel(Vec<u8>),
}

/// Every case, in order of file name; mistakes in the files are reported all at once.
pub fn read_all(folder: &Path) -> Result<Vec<Case>, String> {
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "case"));
    paths.sort();
    let (mut cases, mut mistakes) = (Vec::new(), Vec::new());
    for path in paths {
        let file = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{file}: {e}"))?;
        match read(&file, &text) {
            Ok(case) => cases.push(case),
            Err(mistake) => mistakes.push(format!("{file}.case: {mistake}")),
        }
    }
    if mistakes.is_empty() { Ok(cases) } else { Err(mistakes.join("\n")) }
}

fn read(file: &str, text: &str) -> Result<Case, String> {
    let mut case = Case { file: file.to_owned(), ..Case::default() };
    let mut sections = text.split("\n--- ");
    for line in sections.next().unwrap_or_default().lines() {
        match line.split_once(": ") {
            _ if line.is_empty() || line.starts_with('#') => {}
            Some(("name", value)) => value.clone_into(&mut case.name),
            Some(("why", value)) => value.clone_into(&mut case.why),
            Some(("listener", "trusted")) => case.trusted = true,
            _ => return Err(format!("not a header line: {line}")),
        }
    }
    for section in sections {
        let (title, content) = section.split_once('\n').unwrap_or((section, ""));
        let words: Vec<&str> = title.split_whitespace().collect();
        match words[..] {
            ["send"] => case.sends.push(Send { after: None, bytes: bytes(content)? }),
            ["send", "after", status] => {
                let after = Some(status.parse().map_err(|_| format!("not a status: {status}"))?);
                case.sends.push(Send { after, bytes: bytes(content)? });
            }
            ["shut"] => case.shut = true,
            ["respond"] => case.responds.push(Respond { bytes: bytes(content)?, close: false }),
            ["respond", "close"] => {
                case.responds.push(Respond { bytes: bytes(content)?, close: true });
            }
            ["expect"] => expect(&mut case, content)?,
            ["forwarded"] => case.forwarded = forwarded(content)?,
            _ => return Err(format!("not a section: {title}")),
        }
    }
    let complete = !case.name.is_empty() && !case.why.is_empty() && !case.sends.is_empty();
    if !complete || matches!(case.forwarded, Forwarded::Unsaid) {
        return Err("a case needs name, why, send, expect and forwarded".to_owned());
    }
    Ok(case)
}

fn expect(case: &mut Case, content: &str) -> Result<(), String> {
    case.answers = messages(content)?;
    let mut none = false;
    for answer in &mut case.answers {
        let mut words = answer.line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for word in words.drain(1..) {
            match word.as_str() {
                "keep" => case.end = End::Keep,
                "close" => case.end = End::Close,
                "bodyless" => answer.bodyless = true,
                "broken" => answer.broken = true,
                _ => return Err(format!("not said of an answer: {word}")),
            }
        }
        answer.line = words.remove(0);
        none |= answer.line == "none";
        if answer.line != "none" && answer.line.parse::<u16>().is_err() {
            return Err(format!("not a status: {}", answer.line));
        }
    }
    if none {
        case.answers.clear();
        case.end = End::Close;
    } else if case.answers.is_empty() {
        return Err("no answer is expected; write none".to_owned());
    }
    Ok(())
}

fn forwarded(content: &str) -> Result<Forwarded, String> {
    match content.trim() {
        "" => Err("what is forwarded is not said".to_owned()),
        "nothing" => Ok(Forwarded::Nothing),
        "nothing complete" => Ok(Forwarded::NothingComplete),
        _ => messages(content).map(Forwarded::Requests),
    }
}

/// Lines, each with its indented checks.
fn messages(content: &str) -> Result<Vec<Expected>, String> {
    let mut messages: Vec<Expected> = Vec::new();
    for line in content.lines().filter(|line| !line.trim().is_empty()) {
        if !line.starts_with(' ') {
            let line = text(line)?;
            messages.push(Expected { line, bodyless: false, broken: false, checks: Vec::new() });
            continue;
        }
        let message = messages.last_mut().ok_or("a check before what it is of")?;
        message.checks.push(check(line.trim())?);
    }
    Ok(messages)
}

fn check(line: &str) -> Result<Check, String> {
    let (kind, rest) = line.split_once(':').ok_or(format!("not a check: {line}"))?;
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let pair = || {
        let (name, value) = rest.split_once(':').ok_or(format!("a value is missing: {line}"))?;
        Ok::<_, String>((name.to_owned(), text(value.trim())?))
    };
    Ok(match kind {
        "has" => match rest.split_once(':') {
            Some(_) => pair().map(|(name, value)| Check::Has(name, Some(value)))?,
            None => Check::Has(rest.to_owned(), None),
        },
        "once" => pair().map(|(name, value)| Check::Once(name, value))?,
        "no" => Check::No(rest.to_owned()),
        "not" => pair().map(|(name, value)| Check::Not(name, value))?,
        "body" => Check::Body(bytes(rest)?),
        "trailer" => pair().map(|(name, value)| Check::Trailer(name, value))?,
        "no-trailer" => Check::NoTrailer(rest.to_owned()),
        "tunnel" => Check::Tunnel(bytes(rest)?),
        _ => return Err(format!("not a check: {line}")),
    })
}

fn text(line: &str) -> Result<String, String> {
    String::from_utf8(bytes(line)?).map_err(|_| format!("not text: {line}"))
}

/// Bytes as written in a file: newlines dropped, escapes and repetitions carried out.
pub fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        if let Some(repeat) = rest.strip_prefix("{repeat:") {
            let (inside, after) = repeat.split_once('}').ok_or("a repetition without end")?;
            let (count, piece) = inside.split_once(':').ok_or("a repetition of nothing")?;
            let count: usize = count.parse().map_err(|_| format!("not a count: {count}"))?;
            out.extend(bytes(piece)?.repeat(count));
            rest = after;
        } else if c == '\\' {
            let (byte, length) = match after.as_bytes() {
                [b'r', ..] => (b'\r', 1),
                [b'n', ..] => (b'\n', 1),
                [b't', ..] => (b'\t', 1),
                [b'\\', ..] => (b'\\', 1),
                [b'x', ..] => {
                    let digits = after.get(1..3).unwrap_or_default();
                    let byte = u8::from_str_radix(digits, 16);
                    (byte.map_err(|_| format!("not two hexadecimal digits: {digits}"))?, 3)
                }
                _ => {
                    return Err(format!(
                        "not an escape: \\{}",
                        after.chars().next().unwrap_or(' ')
                    ));
                }
            };
            out.push(byte);
            rest = &after[length..];
        } else {
            if c != '\n' {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            rest = after;
        }
    }
    Ok(out)
}
