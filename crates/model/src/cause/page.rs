//! A cause's page: the doc comment of its variant, split into parts for `weir explain` and for
//! docs/causes.md.

/// The documentation of a cause: three paragraphs, each without line breaks. `code` and names of
/// configuration keys are in backticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// What happened. Begins with [`crate::Cause::summary`].
    pub what: String,
    /// Why it usually happens.
    pub why: String,
    /// What to do about it, and with which configuration keys.
    pub remedy: String,
}

impl Page {
    /// Splits a doc comment: paragraphs are separated by empty lines.
    pub(super) fn of(document: &str) -> Page {
        let mut paragraphs = [String::new(), String::new(), String::new()];
        let mut at = 0;
        for line in document.lines().map(str::trim_ascii) {
            if line.is_empty() {
                // A fourth would be lost; a test checks that there are three.
                at = (at + 1).min(paragraphs.len() - 1);
                continue;
            }
            if !paragraphs[at].is_empty() {
                paragraphs[at].push(' ');
            }
            paragraphs[at].push_str(line);
        }
        let [what, why, remedy] = paragraphs;
        Page { what, why, remedy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cause;

    #[test]
    fn paragraphs_lie_between_empty_lines() {
        let page = Page::of(" It broke.\n Really.\n\n Because.\n\n Mend it.\n");
        let [what, why, remedy] = ["It broke. Really.", "Because.", "Mend it."].map(str::to_owned);
        assert_eq!(page, Page { what, why, remedy });
    }

    /// Counts sentences by full stops at the ends of words.
    fn sentences(text: &str) -> usize {
        text.split(' ').filter(|word| word.trim_end_matches(')').ends_with('.')).count()
    }

    #[test]
    fn every_page_has_its_three_parts_and_can_be_read_at_a_glance() {
        for &cause in Cause::ALL {
            let name = cause.name();
            let paragraphs = cause.document().split("\n\n").count();
            assert_eq!(paragraphs, 3, "{name}");
            let Page { what, why, remedy } = cause.page();
            for part in [&what, &why, &remedy] {
                assert!(part.ends_with('.'), "{name}: {part:?}");
                assert!(part.starts_with(char::is_uppercase) || part.starts_with('`'), "{name}");
                assert_eq!(part.matches('`').count() % 2, 0, "{name}: {part:?}");
                assert!(!part.contains("  "), "{name}: {part:?}");
                assert!((1..=6).contains(&sentences(part)), "{name}: {part:?}");
            }
            let whole = sentences(&what) + sentences(&why) + sentences(&remedy);
            assert!((3..=10).contains(&whole), "{name}: {whole} sentences");
        }
    }

    /// It appears in responses, as JSON, HTML and text, and in one line of a list.
    #[test]
    fn a_summary_is_one_plain_sentence() {
        for &cause in Cause::ALL {
            let (name, summary) = (cause.name(), cause.summary());
            assert!(cause.page().what.starts_with(summary), "{name}");
            assert!((20..=90).contains(&summary.len()), "{name}: {} bytes", summary.len());
            assert_eq!(sentences(summary), 1, "{name}: {summary}");
            assert!(summary.ends_with('.'), "{name}: {summary}");
            let plain = |b: u8| (b' '..=b'~').contains(&b) && !br#"<>&"'\`"#.contains(&b);
            assert!(summary.bytes().all(plain), "{name}: {summary}");
        }
    }
}
