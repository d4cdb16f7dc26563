//! A line of HAProxy's configuration, taken apart as HAProxy does: spaces separate, `#` begins a
//! comment, quotes and backslashes take that meaning away.

/// Words of a line that are read; no sensible line has more.
const WORDS_MAX: usize = 256;
/// Characters of a check's description that are kept.
const KIND_MAX: usize = 120;

/// The words of a line, without comment.
pub(super) fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut has_word = false;
    let mut quote: Option<char> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => {
                word.extend(chars.next());
                has_word = true;
            }
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                has_word = true;
            }
            ('#', None) => break,
            (c, None) if c.is_whitespace() => {
                if has_word {
                    words.push(std::mem::take(&mut word));
                    has_word = false;
                }
                if words.len() >= WORDS_MAX {
                    return words;
                }
            }
            (c, _) => {
                word.push(c);
                has_word = true;
            }
        }
    }
    if has_word {
        words.push(word);
    }
    words
}

/// A description that fits a line.
pub(super) fn shorten(text: &str) -> String {
    if text.chars().count() <= KIND_MAX {
        return text.to_owned();
    }
    text.chars().take(KIND_MAX - 1).chain(['…']).collect()
}

/// A time: a number with `us`, `ms` (the default), `s`, `m`, `h` or `d`, in milliseconds, at least
/// 1.
pub(super) fn time_ms(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let ms = match unit {
        "us" => number / 1000,
        "" | "ms" => number,
        "s" => number.checked_mul(1_000)?,
        "m" => number.checked_mul(60_000)?,
        "h" => number.checked_mul(3_600_000)?,
        "d" => number.checked_mul(86_400_000)?,
        _ => return None,
    };
    Some(ms.max(1))
}

#[cfg(test)]
mod tests {
    use super::{split, time_ms};

    #[test]
    fn lines_are_taken_apart_as_haproxy_does() {
        let cases: [(&str, &[&str]); 6] = [
            ("  server a 10.0.0.1:80  check # fast", &["server", "a", "10.0.0.1:80", "check"]),
            (r#"http-check send hdr Host "a b""#, &["http-check", "send", "hdr", "Host", "a b"]),
            (r"a\ b c\#d", &["a b", "c#d"]),
            ("'a#b' \"\"", &["a#b", ""]),
            ("# all", &[]),
            ("\"open", &["open"]),
        ];
        for (line, words) in cases {
            assert_eq!(split(line), words, "{line}");
        }
    }

    #[test]
    fn times_are_milliseconds_unless_they_say_otherwise() {
        let cases = [
            ("2000", Some(2000)),
            ("2s", Some(2000)),
            ("1m", Some(60_000)),
            ("500us", Some(1)),
            ("0", Some(1)),
            ("2 s", None),
            ("s", None),
            ("", None),
            ("99999999999999999999s", None),
        ];
        for (text, ms) in cases {
            assert_eq!(time_ms(text), ms, "{text}");
        }
    }
}
