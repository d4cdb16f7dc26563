//! Templates in incident files: `minijinja` with strict undefined values and bounded work, and errors
//! that name the line of the incident file.

use std::ops::Range;
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, UndefinedBehavior, Value};
use toml::Spanned;

/// Instructions and iterations of one rendering.
const FUEL_MAX: u64 = 1_000_000;
/// Nesting of expressions and blocks.
const NESTING_MAX: usize = 50;

/// An incident file's name and text, for the lines in messages.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    name: Arc<str>,
    text: Arc<str>,
}

impl Default for Source {
    fn default() -> Self {
        Source { name: "".into(), text: "".into() }
    }
}

impl Source {
    /// Keeps a copy of both.
    pub(crate) fn new(name: &str, text: &str) -> Source {
        Source { name: name.into(), text: text.into() }
    }

    /// A message about a place in the file, or about the file.
    pub(crate) fn message(&self, what: &str, at: Option<&Range<usize>>) -> String {
        match at {
            Some(at) => format!("{}, line {}: {what}", self.name, self.line(at.start)),
            None => format!("{}: {what}", self.name),
        }
    }

    /// The line of a byte, from 1.
    fn line(&self, at: usize) -> usize {
        1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count()
    }

    /// A message about a line, from 1, of a template that stands at `at`.
    fn template_message(&self, wrong: &Wrong, at: &Range<usize>) -> String {
        // TOML leaves out the line break after opening quotes.
        let raw = self.text.get(at.clone()).unwrap_or_default();
        let opens_a_line = ["\"\"\"\n", "\"\"\"\r\n", "'''\n", "'''\r\n"];
        let skipped = usize::from(opens_a_line.iter().any(|quotes| raw.starts_with(quotes)));
        let line = self.line(at.start) + skipped + wrong.line - 1;
        format!("{}, line {line}: {}", self.name, wrong.what)
    }

    /// Checks a template's syntax, and that each of its variables is known.
    ///
    /// # Errors
    /// The first mistake, with its line.
    pub(crate) fn check(
        &self,
        template: &Spanned<String>,
        is_known: &dyn Fn(&str) -> bool,
    ) -> Result<(), String> {
        checked(template.as_ref(), is_known)
            .map_err(|wrong| self.template_message(&wrong, &template.span()))
    }

    /// Renders a template.
    ///
    /// # Errors
    /// Why it cannot be rendered, with the line.
    pub(crate) fn render(
        &self,
        template: &Spanned<String>,
        context: Value,
    ) -> Result<String, String> {
        rendered(template.as_ref(), context)
            .map_err(|wrong| self.template_message(&wrong, &template.span()))
    }
}

/// Renders a template whose place in the file is not known.
///
/// # Errors
/// Why it cannot be rendered.
pub(crate) fn render(template: &str, context: Value) -> Result<String, String> {
    rendered(template, context).map_err(|wrong| wrong.what)
}

/// As [`Source::check`], for a template whose place in the file is not known.
///
/// # Errors
/// The first mistake.
pub(crate) fn check(template: &str, is_known: &dyn Fn(&str) -> bool) -> Result<(), String> {
    checked(template, is_known).map_err(|wrong| wrong.what)
}

/// What is wrong with a template, and in which of its lines, from 1.
struct Wrong {
    line: usize,
    what: String,
}

impl Wrong {
    fn new(error: &Error, template: &str) -> Wrong {
        let line = error.line().unwrap_or(1).max(1);
        let what = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
        let within = template.lines().nth(line - 1).unwrap_or_default().trim();
        Wrong { line, what: format!("{what}, in `{within}`") }
    }
}

fn rendered(template: &str, context: Value) -> Result<String, Wrong> {
    environment().render_str(template, context).map_err(|error| Wrong::new(&error, template))
}

fn checked(template: &str, is_known: &dyn Fn(&str) -> bool) -> Result<(), Wrong> {
    let environment = environment();
    let parsed = environment.template_from_str(template);
    let parsed = parsed.map_err(|error| Wrong::new(&error, template))?;
    let mut unknown: Vec<String> = parsed.undeclared_variables(false).into_iter().collect();
    unknown.retain(|name| !is_known(name) && environment.globals().all(|(one, _)| one != name));
    unknown.sort_unstable();
    let Some(name) = unknown.first() else { return Ok(()) };
    // Minijinja does not say where it stands: the first line with this text is a good guess.
    let line = template.lines().position(|line| line.contains(name)).unwrap_or(0) + 1;
    Err(Wrong { line, what: format!("`{name}` is not defined") })
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // The results are configurations and command lines, never HTML.
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    let mut syntax = SyntaxConfig::builder();
    // A line with nothing but a tag leaves no empty line.
    syntax.trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true);
    if let Ok(syntax) = syntax.build() {
        environment.set_syntax(syntax);
    }
    environment.set_recursion_limit(NESTING_MAX);
    environment.set_fuel(Some(FUEL_MAX));
    environment
}
