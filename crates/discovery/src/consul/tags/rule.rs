//! Rules of Traefik's routers: `Host`, `Path` and `PathPrefix`, joined by `&&`
//! (<https://doc.traefik.io/traefik/v2.11/routing/routers/#rule>).

use config::quote;

/// A rule.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Rule<'r> {
    /// The arguments of `Host`: one of them has to match.
    pub(super) hosts: Vec<&'r str>,
    /// `None`: every path.
    pub(super) path: Option<RulePath<'r>>,
}

/// The argument of `Path` or `PathPrefix`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RulePath<'r> {
    pub(super) text: &'r str,
    pub(super) is_exact: bool,
}

/// Reads a rule. Parentheses may group it, and have no effect.
///
/// # Errors
/// It has another matcher or operator, more than one host matcher or path, or is not a rule.
pub(super) fn read(text: &str) -> Result<Rule<'_>, String> {
    let mut tokens = Tokens { rest: text };
    let mut rule = Rule::default();
    let mut depth = 0_usize;
    loop {
        match tokens.next()? {
            Some(Token::Open) => {
                depth += 1;
                continue;
            }
            Some(Token::Name(name)) => rule.add(name, &mut tokens)?,
            Some(other) => return Err(other.unexpected()),
            None => return Err("the rule is empty or ends too early".to_owned()),
        }
        loop {
            match tokens.next()? {
                Some(Token::And) => break,
                Some(Token::Close) if depth > 0 => depth -= 1,
                Some(other) => return Err(other.unexpected()),
                None if depth > 0 => return Err("a parenthesis is not closed".to_owned()),
                None => return Ok(rule),
            }
        }
    }
}

impl<'r> Rule<'r> {
    /// Reads the arguments of a matcher, and adds it.
    fn add(&mut self, name: &str, tokens: &mut Tokens<'r>) -> Result<(), String> {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        if is("Host") {
            if !self.hosts.is_empty() {
                return Err("more than one Host".to_owned());
            }
            self.hosts = tokens.arguments()?;
            return Ok(());
        }
        let is_exact = is("Path");
        if !is_exact && !is("PathPrefix") {
            return Err(format!("the matcher {} is not supported", quote(name)));
        }
        match (tokens.arguments()?.as_slice(), &self.path) {
            ([text], None) => self.path = Some(RulePath { text, is_exact }),
            _ => return Err("more than one Path or PathPrefix".to_owned()),
        }
        Ok(())
    }
}

/// A part of a rule.
#[derive(Clone, Copy)]
enum Token<'r> {
    And,
    Or,
    Not,
    Open,
    Close,
    Comma,
    Name(&'r str),
    /// Without its quotation marks.
    Value(&'r str),
}

impl Token<'_> {
    /// Returns why a rule cannot have it where it is.
    fn unexpected(self) -> String {
        let (shown, why) = match self {
            Token::And => ("&&", "in the wrong place"),
            Token::Or => ("||", "is not supported"),
            Token::Not => ("!", "is not supported"),
            Token::Open => ("(", "in the wrong place"),
            Token::Close => (")", "in the wrong place"),
            Token::Comma => (",", "in the wrong place"),
            Token::Name(text) | Token::Value(text) => {
                return format!("{} in the wrong place", quote(text));
            }
        };
        format!("`{shown}` {why}")
    }
}

/// The parts of a rule.
struct Tokens<'r> {
    rest: &'r str,
}

impl<'r> Tokens<'r> {
    /// Returns the next part; `None` at the end.
    ///
    /// # Errors
    /// A value is not closed or has an escape, or a character belongs to no rule.
    fn next(&mut self) -> Result<Option<Token<'r>>, String> {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
        const MARKS: [(&str, Token<'static>); 6] = [
            ("&&", Token::And),
            ("||", Token::Or),
            ("!", Token::Not),
            ("(", Token::Open),
            (")", Token::Close),
            (",", Token::Comma),
        ];
        for (mark, token) in MARKS {
            if let Some(rest) = self.rest.strip_prefix(mark) {
                self.rest = rest;
                return Ok(Some(token));
            }
        }
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        if matches!(first, '`' | '"') {
            return self.value(first).map(Some);
        }
        let is_other = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        let (name, rest) = self.rest.split_at(self.rest.find(is_other).unwrap_or(self.rest.len()));
        if name.is_empty() {
            return Err(format!("{} in the wrong place", quote(&first.to_string())));
        }
        self.rest = rest;
        Ok(Some(Token::Name(name)))
    }

    /// Returns the value that begins with this mark.
    fn value(&mut self, mark: char) -> Result<Token<'r>, String> {
        let inside = self.rest.strip_prefix(mark).unwrap_or(self.rest);
        let (value, rest) = inside.split_once(mark).ok_or("a value is not closed")?;
        if mark == '"' && value.contains('\\') {
            return Err("escapes in values are not supported".to_owned());
        }
        self.rest = rest;
        Ok(Token::Value(value))
    }

    /// Returns the values in parentheses; at least one.
    fn arguments(&mut self) -> Result<Vec<&'r str>, String> {
        let mut values = Vec::new();
        let mut wanted = Token::Open;
        loop {
            match (wanted, self.next()?) {
                (Token::Open, Some(Token::Open)) | (Token::Comma, Some(Token::Comma)) => {}
                (Token::Comma, Some(Token::Close)) => return Ok(values),
                (_, Some(other)) => return Err(other.unexpected()),
                (_, None) => return Err("the rule ends too early".to_owned()),
            }
            match self.next()? {
                Some(Token::Value(value)) => values.push(value),
                Some(other) => return Err(other.unexpected()),
                None => return Err("the rule ends too early".to_owned()),
            }
            wanted = Token::Comma;
        }
    }
}
