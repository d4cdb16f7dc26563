//! The parser of figures: sums of products of paths, functions and numbers.

use super::{Fold, Term};

/// Terms in one figure; a longer one is no figure that anybody could read.
const TERMS_MAX: usize = 40;

/// Reads a figure.
pub(super) fn read(text: &str) -> Result<Term, String> {
    let mut reader = Reader { rest: text, terms: 0 };
    let term = reader.sum()?;
    if reader.rest.trim().is_empty() {
        Ok(term)
    } else {
        Err(format!("`{}` is left over after the figure", reader.rest.trim()))
    }
}

struct Reader<'a> {
    rest: &'a str,
    terms: usize,
}

impl<'a> Reader<'a> {
    fn sum(&mut self) -> Result<Term, String> {
        self.chain(&['+', '-'], Reader::product)
    }

    fn product(&mut self) -> Result<Term, String> {
        self.chain(&['*', '/'], Reader::term)
    }

    /// Operands joined by operators of one level, from left to right.
    fn chain(
        &mut self,
        operators: &[char],
        next: fn(&mut Self) -> Result<Term, String>,
    ) -> Result<Term, String> {
        let mut first = next(self)?;
        while let Some(operator) = self.operator(operators) {
            first = Term::Two(Box::new(first), operator, Box::new(next(self)?));
        }
        Ok(first)
    }

    /// An operator has spaces around it: names hold `-`, and `*` is every member of a list.
    fn operator(&mut self, operators: &[char]) -> Option<char> {
        let rest = self.rest.trim_start();
        let operator = rest.chars().next().filter(|c| operators.contains(c))?;
        self.rest = rest[1..].strip_prefix(' ')?;
        Some(operator)
    }

    fn term(&mut self) -> Result<Term, String> {
        self.terms += 1;
        if self.terms > TERMS_MAX {
            return Err(format!("a figure has {TERMS_MAX} terms at most"));
        }
        self.rest = self.rest.trim_start();
        if let Some(inner) = self.rest.strip_prefix('(') {
            self.rest = inner;
            let term = self.sum()?;
            self.rest = self.rest.trim_start().strip_prefix(')').ok_or("a `(` without its `)`")?;
            return Ok(term);
        }
        let word = self.until(&[' ', '(', ')']);
        if let Some(inner) = self.rest.strip_prefix('(') {
            self.rest = inner;
            let inner = self.until(&['(', ')']);
            self.rest =
                self.rest.strip_prefix(')').ok_or_else(|| format!("`{word}(` has no `)`"))?;
            return fold(word, inner);
        }
        match word.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Term::Number(number)),
            _ => path(word).map(Term::Path),
        }
    }

    /// The text before the first of these characters.
    fn until(&mut self, ends: &[char]) -> &'a str {
        let at = self.rest.find(ends).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(at);
        self.rest = rest;
        word
    }
}

fn fold(name: &str, inner: &str) -> Result<Term, String> {
    let two = |what| inner.rsplit_once(',').ok_or_else(|| format!("`{name}({what}, PATH)`"));
    let (fold, inner) = match name {
        "sum" => (Fold::Sum, inner),
        "min" => (Fold::Min, inner),
        "max" => (Fold::Max, inner),
        "mean" => (Fold::Mean, inner),
        "count" => (Fold::Count, inner),
        "above" => {
            let (number, inner) = two("NUMBER")?;
            let number = number.trim().parse();
            (Fold::Above(number.map_err(|_| "`above(NUMBER, PATH)`")?), inner)
        }
        "is" => two("WORD").map(|(word, inner)| (Fold::Is(word.trim().to_owned()), inner))?,
        "says" => {
            two("WORDS").map(|(words, inner)| (Fold::Says(words.trim().to_owned()), inner))?
        }
        _ => {
            return Err(format!("`{name}` is none of sum, min, max, mean, count, above, is, says"));
        }
    };
    path(inner.trim()).map(|path| Term::Of(fold, path))
}

fn path(text: &str) -> Result<String, String> {
    let fits = !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-*".contains(c))
        && text.split('.').all(|part| !part.is_empty());
    if fits {
        Ok(text.to_owned())
    } else {
        Err(format!("`{text}` is no place of a figure: words with points between them"))
    }
}
