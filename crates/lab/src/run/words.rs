//! Words in braces, in files and commands: hosts' addresses, files, and what the incident sets.
//!
//! `{server}` is a host's address, `{server.2}` its second one; `%for i in 1..70` or
//! `%for node in nodes` up to `%end` repeats the lines between. Braces around anything that is no
//! word (spaces, quotes) stay as they are.

/// How deep words may stand in words.
const DEPTH_MAX: u32 = 6;
/// Repetitions of a loop.
const REPEAT_MAX: u64 = 10_000;

/// What words stand for.
pub(super) trait Lookup {
    /// What a word stands for, if it is known.
    fn word(&self, name: &str) -> Option<String>;

    /// The members of a group of hosts.
    fn members(&self, name: &str) -> Vec<String>;
}

/// Fills in a text.
///
/// # Errors
/// Which word is not known, or what is wrong with a loop.
pub(super) fn fill(text: &str, lookup: &dyn Lookup) -> Result<String, String> {
    let mut out = String::new();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    fill_lines(&lines, lookup, &[], &mut out)?;
    Ok(out)
}

/// A loop's variable and its value.
type Bound = (String, String);

fn fill_lines(
    lines: &[&str],
    lookup: &dyn Lookup,
    bound: &[Bound],
    out: &mut String,
) -> Result<(), String> {
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let Some(head) = line.trim().strip_prefix("%for ") else {
            out.push_str(&fill_line(line, lookup, bound, 0)?);
            at += 1;
            continue;
        };
        let (variable, range) = head.split_once(" in ").ok_or("`%for WORD in RANGE`")?;
        let range = fill_line(range.trim(), lookup, bound, 0)?;
        let end =
            at + end_of(&lines[at..]).ok_or_else(|| format!("`%for {head}` has no `%end`"))?;
        for value in values(&range, lookup)? {
            let mut inner = bound.to_vec();
            inner.push((variable.trim().to_owned(), value));
            fill_lines(&lines[at + 1..end], lookup, &inner, out)?;
        }
        at = end + 1;
    }
    Ok(())
}

/// The line of the `%end` that belongs to the `%for` of the first line.
fn end_of(lines: &[&str]) -> Option<usize> {
    let mut depth = 0;
    lines.iter().position(|line| {
        let line = line.trim();
        depth += i32::from(line.starts_with("%for ")) - i32::from(line == "%end");
        depth == 0
    })
}

fn values(range: &str, lookup: &dyn Lookup) -> Result<Vec<String>, String> {
    if let Some((from, to)) = range.split_once("..") {
        let number = |text: &str| {
            text.trim().parse::<u64>().map_err(|_| format!("`{range}`: a range is `1..70`"))
        };
        let (from, to) = (number(from)?, number(to)?);
        if to.saturating_sub(from) > REPEAT_MAX {
            return Err(format!("`{range}`: {REPEAT_MAX} repetitions at most"));
        }
        return Ok((from..=to).map(|number| number.to_string()).collect());
    }
    let members = lookup.members(range);
    if members.is_empty() { Err(format!("`{range}` is no range and no host")) } else { Ok(members) }
}

fn fill_line(
    text: &str,
    lookup: &dyn Lookup,
    bound: &[Bound],
    depth: u32,
) -> Result<String, String> {
    if depth > DEPTH_MAX {
        return Err(format!("words within words within words: `{}`", text.trim()));
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        let behind = &rest[open + 1..];
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.:-".contains(c);
        let length = behind.find(|c| !is_word(c)).unwrap_or(behind.len());
        if length == 0 || behind.as_bytes().get(length) != Some(&b'}') {
            out.push('{');
            rest = behind;
            continue;
        }
        let name = &behind[..length];
        rest = &behind[length + 1..];
        let found = bound.iter().rev().find(|(variable, _)| variable == name);
        if let Some((_, value)) = found {
            out.push_str(value);
            continue;
        }
        // `{at.node}`: the address of the host that the loop's variable names.
        let of_bound = name.strip_prefix("at.").and_then(|variable| {
            bound.iter().rev().find(|(one, _)| one == variable).map(|(_, value)| value.as_str())
        });
        let value = lookup.word(of_bound.unwrap_or(name));
        let value = value.ok_or_else(|| format!("`{{{name}}}` stands for nothing"))?;
        out.push_str(&fill_line(&value, lookup, bound, depth + 1)?);
    }
    out.push_str(rest);
    Ok(out)
}

/// A command line as words; what stands in single quotes is one.
///
/// # Errors
/// A quote that does not end, or no word at all.
pub(super) fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '\'' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            c if c.is_whitespace() && !is_quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if is_quoted || words.is_empty() {
        return Err(format!("`{line}` is no command line"));
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Known;

    impl Lookup for Known {
        fn word(&self, name: &str) -> Option<String> {
            let known = [
                ("server", "10.78.1.1"),
                ("node1", "10.78.2.1"),
                ("node2", "10.78.3.1"),
                ("rate", "{base}0"),
                ("base", "40"),
                ("self.loop", "{self.loop}"),
            ];
            known.iter().find(|(one, _)| *one == name).map(|(_, value)| (*value).to_owned())
        }

        fn members(&self, name: &str) -> Vec<String> {
            if name == "node" { vec!["node1".to_owned(), "node2".to_owned()] } else { Vec::new() }
        }
    }

    #[test]
    fn words_are_filled_in_and_other_braces_stay() {
        let filled = fill("at {server}:80, {rate}/s, events { x {} {\"a\"} ${ }", &Known).unwrap();
        assert_eq!(filled, "at 10.78.1.1:80, 400/s, events { x {} {\"a\"} ${ }");
        for wrong in ["{sevrer}", "{self.loop}", "%for i in 1..2\nx\n", "%for i in nodes\n%end\n"] {
            assert!(fill(wrong, &Known).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lines_are_repeated_for_numbers_and_for_hosts() {
        let text = "%for i in 1..2\nb {i}\n%for n in node\n s {i} {n} {at.n}\n%end\n%end\nend\n";
        let filled = fill(text, &Known).unwrap();
        let expected = "b 1\n s 1 node1 10.78.2.1\n s 1 node2 10.78.3.1\n\
                        b 2\n s 2 node1 10.78.2.1\n s 2 node2 10.78.3.1\nend\n";
        assert_eq!(filled, expected);
    }

    #[test]
    fn command_lines_become_words() {
        assert_eq!(split("a 'b c'  d'' ").unwrap(), ["a", "b c", "d"]);
        assert!(split("a 'b").is_err() && split("  ").is_err());
    }
}
