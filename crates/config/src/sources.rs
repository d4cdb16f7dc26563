//! The files of a configuration as one sequence of positions: the text of each begins after the end of
//! the one before it. So a [`Span`] alone says in which file it is, and where.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::diagnostic::{Label, Span, boundary_before};

/// The texts of a configuration: the configuration file first, then those that it includes.
#[derive(Clone, Debug)]
pub struct Sources {
    /// Never empty; in order of `start`.
    files: Vec<Source>,
}

/// One file.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// For messages.
    pub(crate) name: String,
    pub(crate) text: Arc<str>,
    /// The folder of relative paths in it, relative to the configuration file's.
    pub(crate) folder: PathBuf,
    /// It is a file; otherwise its lines mean nothing to people.
    pub(crate) is_file: bool,
    /// Where its positions begin.
    pub(crate) start: usize,
}

impl Sources {
    /// Returns the sources of a configuration that is one file.
    pub fn of(name: &str, text: &str) -> Sources {
        let main = Source::of_file(name.to_owned(), text.into(), PathBuf::new(), 0);
        Sources { files: vec![main] }
    }

    /// Returns the name of the configuration file.
    pub fn name(&self) -> &str {
        &self.files[0].name
    }

    /// Adds an included file; returns where its positions begin.
    pub(crate) fn add(&mut self, name: String, text: Arc<str>, folder: PathBuf) -> usize {
        let start = self.next_start();
        self.files.push(Source::of_file(name, text, folder, start));
        start
    }

    /// Adds tables that are in no file.
    pub(crate) fn add_tables(&mut self, name: String, text: Arc<str>) {
        let source = Source::of_file(name, text, PathBuf::new(), self.next_start());
        self.files.push(Source { is_file: false, ..source });
    }

    fn next_start(&self) -> usize {
        self.files.last().map_or(0, Source::end) + 1
    }

    pub(crate) fn len_bytes(&self) -> usize {
        self.files.iter().map(|file| file.text.len()).sum()
    }

    pub(crate) fn all(&self) -> &[Source] {
        &self.files
    }

    /// Returns the index of the file that contains a position.
    pub(crate) fn index_at(&self, at: usize) -> usize {
        // At least 1, since the first file begins at 0.
        self.files.partition_point(|file| file.start <= at).saturating_sub(1)
    }

    /// Returns the file that contains a position.
    pub(crate) fn at(&self, at: usize) -> &Source {
        &self.files[self.index_at(at)]
    }

    /// Returns a path in the file at `span`, relative to the configuration file's folder.
    pub(crate) fn path(&self, path: &Path, span: &Span) -> PathBuf {
        self.at(span.start).folder.join(path)
    }

    /// Returns the text at `span`.
    pub(crate) fn written(&self, span: &Span) -> Option<&str> {
        let source = self.at(span.start);
        source.text.get(source.local(span))
    }
}

impl Source {
    fn of_file(name: String, text: Arc<str>, folder: PathBuf, start: usize) -> Source {
        Source { name, text, folder, start, is_file: true }
    }

    fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// Returns `span` as positions in this file's text.
    pub(crate) fn local(&self, span: &Span) -> Span {
        let local = |at: usize| at.clamp(self.start, self.end()) - self.start;
        local(span.start)..local(span.end)
    }
}

/// Where a label is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place<'s> {
    /// The name of the file.
    pub file: &'s str,
    /// Line and column of the first character, counted from 1; columns in characters.
    pub first: (usize, usize),
    /// Line and column after the last character.
    pub end: (usize, usize),
}

/// The line starts of all files, for line and column numbers.
#[derive(Debug)]
pub struct Lines<'s> {
    sources: &'s Sources,
    /// For each file, ascending; the first is 0.
    starts: Vec<Vec<usize>>,
}

impl<'s> Lines<'s> {
    /// Indexes `sources`.
    pub fn of(sources: &'s Sources) -> Self {
        let starts = sources.files.iter().map(|file| {
            let ends = file.text.match_indices('\n').map(|(at, _)| at + 1);
            std::iter::once(0).chain(ends).collect()
        });
        Lines { sources, starts: starts.collect() }
    }

    /// Returns the name of the file that contains a position, and the line, counted from 1.
    pub(crate) fn line(&self, at: usize) -> (&'s str, usize) {
        let index = self.sources.index_at(at);
        let source = &self.sources.files[index];
        (&source.name, line_of(&self.starts[index], source.local(&(at..at)).start))
    }

    /// Returns where `label` is.
    pub fn place(&self, label: &Label) -> Place<'s> {
        let index = self.sources.index_at(label.span.start);
        let source = &self.sources.files[index];
        let span = source.local(&label.span);
        let line_column = |at: usize| line_column(&source.text, &self.starts[index], at);
        Place { file: &source.name, first: line_column(span.start), end: line_column(span.end) }
    }
}

/// Returns the line of a position, by the starts of all lines.
fn line_of(starts: &[usize], at: usize) -> usize {
    // At least 1, since the first line begins at 0.
    starts.partition_point(|start| *start <= at)
}

fn line_column(text: &str, starts: &[usize], at: usize) -> (usize, usize) {
    let at = boundary_before(text, at);
    let line = line_of(starts, at);
    let start = starts.get(line.saturating_sub(1)).copied().unwrap_or_default();
    (line, text.get(start..at).unwrap_or_default().chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(span: Span) -> Label {
        Label { span, text: String::new() }
    }

    #[test]
    fn places_are_counted_from_one_in_characters() {
        let sources = Sources::of("a.toml", "a\nüb\n\nc");
        let lines = Lines::of(&sources);
        for (at, place) in
            [(0, (1, 1)), (1, (1, 2)), (2, (2, 1)), (4, (2, 2)), (6, (3, 1)), (7, (4, 1))]
        {
            assert_eq!(lines.place(&label(at..at)).first, place, "{at}");
        }
        let beyond = lines.place(&label(3..99));
        assert_eq!(beyond.first, (2, 1), "inside a character");
        assert_eq!(beyond.end, (4, 2));
    }

    #[test]
    fn a_position_tells_its_file() {
        let mut sources = Sources::of("main.toml", "ab");
        let second = sources.add("b.toml".into(), "x\ny".into(), "conf.d".into());
        let third = sources.add("c.toml".into(), "".into(), "".into());
        assert_eq!((second, third), (3, 7));
        let lines = Lines::of(&sources);
        let place =
            |at: usize| (lines.place(&label(at..at)).file, lines.place(&label(at..at)).first);
        assert_eq!(place(2), ("main.toml", (1, 3)), "the end of the file");
        assert_eq!(place(3), ("b.toml", (1, 1)));
        assert_eq!(place(6), ("b.toml", (2, 2)));
        assert_eq!(place(7), ("c.toml", (1, 1)));
        assert_eq!(place(99), ("c.toml", (1, 1)));
        for at in 0..10 {
            assert_eq!(lines.line(at), (place(at).0, place(at).1.0), "{at}");
        }
        assert_eq!(sources.written(&(5..6)), Some("y"));
        assert_eq!(sources.path(Path::new("a.pem"), &(3..4)), Path::new("conf.d/a.pem"));
    }
}
