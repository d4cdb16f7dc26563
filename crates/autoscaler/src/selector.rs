//! Label selectors of Kubernetes, as `labelSelector` of a request has them: `service=web,port in (80, 81),!variant`.
//!
//! The grammar is that of `k8s.io/apimachinery/pkg/labels`, without `>` and `<`: no label of a service is a number to
//! compare.

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::str::CharIndices;

use crate::service::Scaled;

/// The most bytes of a selector.
pub const BYTES_MAX: usize = 4_096;
/// The most requirements in it.
const REQUIREMENTS_MAX: usize = 32;
/// The most values of a requirement.
const VALUES_MAX: usize = 64;
/// The most characters of the name in a key, and of a value.
const NAME_MAX: usize = 63;
/// The most characters of the domain in a key.
const DOMAIN_MAX: usize = 253;

/// A selector: all requirements must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    /// One of these values.
    In(BTreeSet<String>),
    /// None of these values; also without the label.
    NotIn(BTreeSet<String>),
}

impl Selector {
    /// Parses a selector. An empty one selects everything.
    ///
    /// # Errors
    /// What is wrong, one line.
    pub fn parse(text: &str) -> Result<Selector, String> {
        if text.len() > BYTES_MAX {
            return Err(format!("the label selector has more than {BYTES_MAX} bytes"));
        }
        let mut tokens = Tokens { text, chars: text.char_indices().peekable(), again: None };
        let mut requirements = Vec::new();
        if tokens.next() == Token::End {
            return Ok(Selector::default());
        }
        tokens = Tokens { text, chars: text.char_indices().peekable(), again: None };
        loop {
            if requirements.len() == REQUIREMENTS_MAX {
                return Err(format!("more than {REQUIREMENTS_MAX} requirements"));
            }
            requirements.push(requirement(&mut tokens)?);
            match tokens.next() {
                Token::End => return Ok(Selector(requirements)),
                Token::Symbol(",") => {}
                other => return Err(format!("{} where a comma should be", other.shown())),
            }
        }
    }

    /// Returns whether it selects a service.
    pub fn selects(&self, scaled: &Scaled) -> bool {
        self.0.iter().all(|Requirement { key, test }| {
            let value = scaled.label(key);
            match test {
                Test::Exists => value.is_some(),
                Test::Absent => value.is_none(),
                Test::In(values) => value.is_some_and(|value| values.contains(value)),
                Test::NotIn(values) => !value.is_some_and(|value| values.contains(value)),
            }
        })
    }
}

fn requirement(tokens: &mut Tokens<'_>) -> Result<Requirement, String> {
    let first = tokens.next();
    if first == Token::Symbol("!") {
        let key = key(tokens.next())?;
        return Ok(Requirement { key, test: Test::Absent });
    }
    let key = key(first)?;
    let operator = tokens.next();
    let test = match operator {
        Token::End | Token::Symbol(",") => {
            tokens.again = Some(operator);
            Test::Exists
        }
        Token::Symbol("=" | "==") => Test::In(BTreeSet::from([value(tokens)?])),
        Token::Symbol("!=") => Test::NotIn(BTreeSet::from([value(tokens)?])),
        Token::Word("in") => Test::In(values(tokens)?),
        Token::Word("notin") => Test::NotIn(values(tokens)?),
        Token::Symbol(symbol @ ("<" | ">")) => {
            return Err(format!("{symbol:?} is not supported: no label of a service is a number"));
        }
        other => return Err(format!("{} where an operator should be", other.shown())),
    };
    Ok(Requirement { key, test })
}

/// Reads a value, which may be empty.
fn value(tokens: &mut Tokens<'_>) -> Result<String, String> {
    match tokens.next() {
        Token::Word(word) => checked_value(word),
        token @ (Token::End | Token::Symbol("," | ")")) => {
            tokens.again = Some(token);
            Ok(String::new())
        }
        other @ Token::Symbol(_) => Err(format!("{} where a value should be", other.shown())),
    }
}

/// Reads values in parentheses.
fn values(tokens: &mut Tokens<'_>) -> Result<BTreeSet<String>, String> {
    if tokens.next() != Token::Symbol("(") {
        return Err("no \"(\" after in or notin".to_owned());
    }
    let mut values = BTreeSet::new();
    loop {
        values.insert(value(tokens)?);
        if values.len() > VALUES_MAX {
            return Err(format!("more than {VALUES_MAX} values"));
        }
        match tokens.next() {
            Token::Symbol(")") => return Ok(values),
            Token::Symbol(",") => {}
            other => return Err(format!("{} in a list of values", other.shown())),
        }
    }
}

/// Checks a key: a name, perhaps after a domain and a slash.
fn key(token: Token<'_>) -> Result<String, String> {
    let Token::Word(word) = token else {
        return Err(format!("{} where the key of a label should be", token.shown()));
    };
    let (domain, name) = word.split_once('/').map_or((None, word), |(a, b)| (Some(a), b));
    let is_domain =
        |text: &str| text.len() <= DOMAIN_MAX && text.split('.').all(|part| is_name(part, b"-"));
    if domain.is_none_or(is_domain) && is_name(name, b"-_.") {
        return Ok(word.to_owned());
    }
    Err(format!("{word:?} is not the key of a label"))
}

fn checked_value(word: &str) -> Result<String, String> {
    if is_name(word, b"-_.") {
        return Ok(word.to_owned());
    }
    Err(format!("{word:?} is not the value of a label"))
}

/// Returns whether a text has up to 63 letters and digits, with others of `inner` between them.
fn is_name(text: &str, inner: &[u8]) -> bool {
    let is_end = |c: char| c.is_ascii_alphanumeric();
    (1..=NAME_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || inner.contains(&byte))
        && text.starts_with(is_end)
        && text.ends_with(is_end)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'static str),
    End,
}

impl Token<'_> {
    fn shown(self) -> String {
        match self {
            Token::Word(text) | Token::Symbol(text) => format!("{text:?}"),
            Token::End => "the end".to_owned(),
        }
    }
}

struct Tokens<'a> {
    text: &'a str,
    chars: Peekable<CharIndices<'a>>,
    /// A token that was taken too early.
    again: Option<Token<'a>>,
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Token<'a> {
        if let Some(token) = self.again.take() {
            return token;
        }
        while self.chars.next_if(|(_, c)| is_space(*c)).is_some() {}
        let Some((start, first)) = self.chars.next() else { return Token::End };
        let symbol = match first {
            '=' if self.chars.next_if(|(_, c)| *c == '=').is_some() => "==",
            '!' if self.chars.next_if(|(_, c)| *c == '=').is_some() => "!=",
            '=' => "=",
            '!' => "!",
            '(' => "(",
            ')' => ")",
            ',' => ",",
            '<' => "<",
            '>' => ">",
            _ => {
                while self.chars.next_if(|(_, c)| !is_space(*c) && !is_special(*c)).is_some() {}
                let end = self.chars.peek().map_or(self.text.len(), |(end, _)| *end);
                return Token::Word(self.text.get(start..end).unwrap_or_default());
            }
        };
        Token::Symbol(symbol)
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_special(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '<' | '>')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::Number;
    use crate::service::testing::scaled;

    #[test]
    fn a_selector_selects_by_labels() {
        let services = ["listings", "shop/web:80", "shop/web:80/grpc", "shop/web:81"]
            .map(|name| scaled(name, Number::Unmeasured));
        for (text, expected) in [
            ("", "listings shop/web:80 shop/web:80/grpc shop/web:81"),
            ("  ", "listings shop/web:80 shop/web:80/grpc shop/web:81"),
            ("service=listings", "listings"),
            ("service == web , port=80", "shop/web:80 shop/web:80/grpc"),
            ("service=web,port=80,!variant", "shop/web:80"),
            ("variant", "shop/web:80/grpc"),
            ("! namespace", "listings"),
            ("port!=80", "listings shop/web:81"),
            ("service in (listings,web),port notin (81)", "listings shop/web:80 shop/web:80/grpc"),
            ("port in ( 81 , 82 )", "shop/web:81"),
            ("service in (in, notin, listings)", "listings"),
            ("in", ""),
            ("service=", ""),
            ("service!=", "listings shop/web:80 shop/web:80/grpc shop/web:81"),
            ("port in ()", ""),
            ("port in (80,)", "shop/web:80 shop/web:80/grpc"),
            ("example.com/a=b", ""),
        ] {
            let selector = Selector::parse(text).unwrap();
            let selected = services.iter().filter(|one| selector.selects(one));
            let names: Vec<&str> = selected.map(|one| &*one.name).collect();
            assert_eq!(names.join(" "), expected, "{text}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        let long = format!("a in ({})", "b,".repeat(3_000));
        let many = vec!["a"; 33].join(",");
        let numbers: Vec<String> = (0..65).map(|number| number.to_string()).collect();
        let values = format!("a in ({})", numbers.join(","));
        let name = "x".repeat(64);
        for (text, expected) in [
            (",", "\",\" where the key of a label should be"),
            ("a,", "the end where the key of a label should be"),
            ("=a", "\"=\" where the key of a label should be"),
            ("a=b=c", "\"=\" where a comma should be"),
            ("a b", "\"b\" where an operator should be"),
            ("a=b c", "\"c\" where a comma should be"),
            ("a=!", "\"!\" where a value should be"),
            ("a in b", "no \"(\" after in or notin"),
            ("a in (b", "the end in a list of values"),
            ("a in (b c)", "\"c\" in a list of values"),
            ("a>1", "\">\" is not supported: no label of a service is a number"),
            ("!", "the end where the key of a label should be"),
            ("!a=b", "\"=\" where a comma should be"),
            ("-a", "\"-a\" is not the key of a label"),
            ("a/b/c", "\"a/b/c\" is not the key of a label"),
            ("/b", "\"/b\" is not the key of a label"),
            ("a=é", "\"é\" is not the value of a label"),
            ("a=shop/web:80", "\"shop/web:80\" is not the value of a label"),
            (&name, &*format!("{name:?} is not the key of a label")),
            (&long, "the label selector has more than 4096 bytes"),
            (&many, "more than 32 requirements"),
            (&values, "more than 64 values"),
        ] {
            assert_eq!(Selector::parse(text), Err(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused() {
        // Every text of up to four of these characters.
        let characters = ['a', '=', '!', '(', ')', ',', '<', ' ', 'é', 'n'];
        let mut texts = vec![String::new()];
        for _ in 0..4 {
            let longer = |text: &String| characters.map(|c| format!("{text}{c}"));
            texts = texts.iter().flat_map(longer).collect();
            for text in &texts {
                let _ = Selector::parse(text);
                let _ = Selector::parse(&format!("a in ({text})"));
            }
        }
    }
}
