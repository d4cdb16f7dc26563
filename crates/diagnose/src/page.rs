//! A rule's page: the header of its file, taken apart.
//!
//! The first line is a sentence that says what is found. Paragraphs follow, each with a title:
//! `**When.**`, `**Why.**`, `**What to do.**`, and others where there is more to say.

use std::fmt;

/// A page, for `weir doctor --explain RULE` and docs/rules.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// What is found, in one sentence.
    pub summary: String,
    /// The rest, in order.
    pub sections: Vec<Section>,
}

/// A titled paragraph of a page, without line breaks; `code` stands between backticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// `When`, `Why`, `What to do`; empty for a paragraph that goes on with the one before.
    pub title: String,
    /// Its text.
    pub text: String,
}

impl Page {
    /// Takes the `//!` header of a source file apart.
    pub(crate) fn of(source: &str) -> Page {
        let mut paragraphs = vec![String::new()];
        for line in source.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim) {
            if line.is_empty() {
                paragraphs.push(String::new());
            } else if let Some(last) = paragraphs.last_mut() {
                if !last.is_empty() {
                    last.push(' ');
                }
                last.push_str(line);
            }
        }
        let mut paragraphs = paragraphs.into_iter().filter(|text| !text.is_empty());
        let summary = paragraphs.next().unwrap_or_default();
        let sections = paragraphs.map(|text| {
            let titled = text.strip_prefix("**").and_then(|rest| rest.split_once(".** "));
            match titled {
                Some((title, text)) => Section { title: title.to_owned(), text: text.to_owned() },
                None => Section { title: String::new(), text },
            }
        });
        Page { summary, sections: sections.collect() }
    }
}

/// As Markdown.
impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.summary)?;
        for Section { title, text } in &self.sections {
            if title.is_empty() {
                writeln!(f, "\n{text}")?;
            } else {
                writeln!(f, "\n**{title}.** {text}")?;
            }
        }
        Ok(())
    }
}
