//! Query parameters as rules match them and `hash` reads them.
//!
//! A query is parsed as forms encode it (WHATWG URL, application/x-www-form-urlencoded): pairs
//! separated by `&`, name and value by the first `=`, `+` for a space, `%XX` for a byte. Nothing is
//! copied.

/// Returns the value of the first parameter called `name`, decoded; empty if it has no `=`.
pub(crate) fn first_value<'q>(query: &'q str, name: &str) -> Option<Decoded<'q>> {
    values(query, name).next()
}

/// Returns the values of all parameters called `name`.
pub(super) fn values<'q>(query: &'q str, name: &str) -> impl Iterator<Item = Decoded<'q>> {
    query.split('&').filter(|pair| !pair.is_empty()).filter_map(move |pair| {
        let (pair_name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Decoded::of(pair_name).eq(name.bytes()).then(|| Decoded::of(value))
    })
}

/// The decoded bytes of a name or value. A `%` without two hexadecimal digits stands for itself.
#[derive(Clone, Debug)]
pub(crate) struct Decoded<'q>(&'q [u8]);

impl<'q> Decoded<'q> {
    fn of(encoded: &'q str) -> Decoded<'q> {
        Decoded(encoded.as_bytes())
    }
}

impl Iterator for Decoded<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if let [b'%', high, low, rest @ ..] = self.0
            && let (Some(high), Some(low)) =
                (char::from(*high).to_digit(16), char::from(*low).to_digit(16))
        {
            self.0 = rest;
            return Some((high << 4 | low) as u8);
        }
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(if first == b'+' { b' ' } else { first })
    }
}

#[cfg(test)]
mod tests {
    use super::first_value;

    #[test]
    fn the_first_parameter_of_a_name_counts_and_is_decoded() {
        let cases = [
            ("a=1&b=2", "b", Some("2")),
            ("a=1&a=2", "a", Some("1")),
            ("a", "a", Some("")),
            ("&&a=", "a", Some("")),
            ("a=x%20y+z", "a", Some("x y z")),
            ("%61=1", "a", Some("1")),
            ("a=b=c", "a", Some("b=c")),
            ("a=%2B%zz%4", "a", Some("+%zz%4")),
            ("A=1", "a", None),
            ("", "", None),
            ("=1", "", Some("1")),
        ];
        for (query, name, expected) in cases {
            let value = first_value(query, name).map(Iterator::collect::<Vec<u8>>);
            assert_eq!(value.as_deref(), expected.map(str::as_bytes), "{query} {name}");
        }
    }
}
