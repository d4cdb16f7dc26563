//! What is on the screen of a terminal: characters in cells, from the bytes that a program wrote.
//!
//! Understands what `weir top` writes, and fails the test at anything else: a sequence that a name
//! smuggled in would be one.

/// A screen.
#[derive(Debug)]
pub(crate) struct Grid {
    columns: usize,
    cells: Vec<Vec<char>>,
    at: (usize, usize),
    /// Bytes of a sequence or character that has not ended.
    pending: Vec<u8>,
    pub(crate) is_alternate: bool,
    pub(crate) has_cursor: bool,
    /// Pasted text is marked as such.
    pub(crate) marks_pastes: bool,
    /// How many bytes were written.
    pub(crate) bytes: usize,
    /// What was not understood.
    pub(crate) unknown: Vec<String>,
}

impl Grid {
    pub(crate) fn new(columns: u16, lines: u16) -> Grid {
        let columns = usize::from(columns);
        Grid {
            columns,
            cells: vec![vec![' '; columns]; usize::from(lines)],
            at: (0, 0),
            pending: Vec::new(),
            is_alternate: false,
            has_cursor: true,
            marks_pastes: false,
            bytes: 0,
            unknown: Vec::new(),
        }
    }

    /// Changes its size; what was on it stays at its place.
    pub(crate) fn resize(&mut self, columns: u16, lines: u16) {
        self.columns = usize::from(columns);
        self.cells.resize(usize::from(lines), Vec::new());
        self.cells.iter_mut().for_each(|line| line.resize(self.columns, ' '));
    }

    /// Writes `char` into every cell.
    pub(crate) fn fill(&mut self, char: char) {
        self.cells.iter_mut().flatten().for_each(|cell| *cell = char);
    }

    /// The text, a line each.
    pub(crate) fn text(&self) -> String {
        let line = |line: &Vec<char>| line.iter().collect::<String>().trim_end().to_owned();
        self.cells.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Takes what the program wrote.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
        for &byte in bytes {
            self.pending.push(byte);
            self.step();
        }
    }

    fn step(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        match pending.as_slice() {
            [0x1b] | [0x1b, b'['] => self.pending = pending,
            [0x1b, b'[', words @ .., last] => {
                if (0x40..=0x7e).contains(last) {
                    self.sequence(&String::from_utf8_lossy(words), char::from(*last));
                } else {
                    self.pending = pending;
                }
            }
            [0x1b, ..] => self.unknown.push(format!("{pending:02x?}")),
            [b'\r'] => self.at.0 = 0,
            [b'\n'] => self.at.1 += 1,
            [byte] if *byte < 0x20 || *byte == 0x7f => self.unknown.push(format!("{byte:02x}")),
            bytes => match std::str::from_utf8(bytes) {
                Ok(text) => text.chars().for_each(|char| self.put(char)),
                Err(error) if error.error_len().is_none() => self.pending = pending,
                Err(_) => self.unknown.push(format!("{bytes:02x?}")),
            },
        }
    }

    fn put(&mut self, char: char) {
        let (column, line) = self.at;
        if let Some(cell) = self.cells.get_mut(line).and_then(|line| line.get_mut(column)) {
            *cell = char;
        }
        self.at.0 += 1;
    }

    fn sequence(&mut self, words: &str, last: char) {
        match (words, last) {
            // Colours and weights.
            (_, 'm') => {}
            (_, 'H') => {
                let (line, column) = words.split_once(';').unwrap_or((words, ""));
                let place = |word: &str| word.parse().unwrap_or(1usize).saturating_sub(1);
                self.at = (place(column), place(line));
            }
            ("2", 'J') => self.fill(' '),
            ("?1049", 'h' | 'l') => self.is_alternate = last == 'h',
            ("?25", 'h' | 'l') => self.has_cursor = last == 'h',
            ("?2004", 'h' | 'l') => self.marks_pastes = last == 'h',
            _ => self.unknown.push(format!("CSI {words}{last}")),
        }
    }
}
