//! Reading a file of kernel parameters, as sysctl.d(5) describes it.

/// No file of settings is longer; what is beyond is not read.
const LINES_MAX: usize = 10_000;

/// A line that sets something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// From 1.
    pub number: usize,
    /// The setting, with dots: `net.ipv4.tcp_rmem`.
    pub name: String,
    /// What it is set to, as written; empty when the line has no `=`.
    pub value: String,
    /// The whole line, without its ends.
    pub text: String,
}

/// The lines of `text` that set something: no comments (`#`, `;`), no empty ones. Slashes in names
/// are taken for dots, and a leading `-` (do not complain) is left out, as sysctl does.
pub fn lines(text: &str) -> Vec<Line> {
    text.lines()
        .take(LINES_MAX)
        .enumerate()
        .filter_map(|(at, line)| line_of(at + 1, line))
        .collect()
}

fn line_of(number: usize, line: &str) -> Option<Line> {
    let text = line.trim();
    if text.is_empty() || text.starts_with(['#', ';']) {
        return None;
    }
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let name = name.trim().trim_start_matches('-').trim();
    // The first separator decides which of the two the name is written with.
    let name = match name.find(['.', '/']) {
        Some(at) if name.as_bytes()[at] == b'/' => name.chars().map(swap).collect::<String>(),
        _ => name.to_owned(),
    };
    Some(Line { number, name, value: value.trim().to_owned(), text: text.to_owned() })
}

fn swap(c: char) -> char {
    match c {
        '/' => '.',
        '.' => '/',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn comments_slashes_and_signs_are_read_as_sysctl_does() {
        let text = "# a comment\n; another\n\n net.core.somaxconn = 16384 \n-net/ipv4/tcp_sack=0\n\
                    net/ipv4/conf/eth0.10/rp_filter=1\nnonsense\n";
        let read: Vec<(usize, String, String)> =
            lines(text).into_iter().map(|line| (line.number, line.name, line.value)).collect();
        let expected = [
            (4, "net.core.somaxconn", "16384"),
            (5, "net.ipv4.tcp_sack", "0"),
            (6, "net.ipv4.conf.eth0/10.rp_filter", "1"),
            (7, "nonsense", ""),
        ];
        let expected = expected.map(|(n, name, value)| (n, name.to_owned(), value.to_owned()));
        assert_eq!(read, expected);
    }
}
