//! Cases as data: `e2e/cases/trace/*.case`. The form is in the README beside them.

use std::path::Path;

use crate::packets::{ACK, FIN, Frame, PSH, RST, SYN, Segment};

/// A named conversation.
#[derive(Debug)]
pub struct Case {
    pub name: String,
    pub frames: Vec<Frame>,
}

/// Time between cases: nothing of one is near another.
const BETWEEN_NS: u64 = 100_000_000_000;

/// Reads every file of `folder`, in order. Each case has ports of its own.
pub fn read_all(folder: &Path) -> Vec<Case> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder of cases")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "case"))
        .collect();
    files.sort();
    let mut cases: Vec<Reading> = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a file of cases");
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            let place = format!("{}:{number}", path.display());
            if let Some(name) = line.strip_prefix("case ") {
                cases.push(Reading::new(name, cases.len()));
            } else if !line.is_empty() {
                let reading = cases.last_mut().unwrap_or_else(|| panic!("{place}: no case yet"));
                reading.line(line).unwrap_or_else(|what| panic!("{place}: {what}: {line}"));
            }
        }
    }
    cases.into_iter().map(|reading| reading.case).collect()
}

struct Reading {
    case: Case,
    ports: [u16; 2],
    initial: [u32; 2],
    time_ns: u64,
    ip_id: u16,
}

impl Reading {
    fn new(name: &str, number: usize) -> Reading {
        Reading {
            case: Case { name: name.to_owned(), frames: Vec::new() },
            ports: [10_000 + number as u16, 80],
            initial: [1_000, 500_000],
            time_ns: 1_600_000_000_000_000_000 + number as u64 * BETWEEN_NS,
            ip_id: 1,
        }
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["initial", one, other] => {
                self.initial = [number(one)? as u32, number(other)? as u32];
                Ok(())
            }
            ["ports", one, other] => {
                self.ports = [number(one)? as u16, number(other)? as u16];
                Ok(())
            }
            ["repeat", count, ref rest @ ..] => {
                let rest = rest.join(" ");
                for step in 0..number(count)? {
                    self.segment(&rest, step)?;
                }
                Ok(())
            }
            _ => self.segment(line, 0),
        }
    }

    /// `AFTER DIRECTION FLAGS SEQUENCE LENGTH ACK WINDOW OPTIONS`; of a repeated one, the sequence
    /// number goes on by its length.
    fn segment(&mut self, line: &str, step: i64) -> Result<(), String> {
        let mut words = line.split_whitespace();
        let mut word = || words.next().ok_or("too few words");
        let after = time_ns(word()?)?;
        let from = match word()? {
            ">" => 0,
            "<" => 1,
            _ => return Err("neither > nor <".to_owned()),
        };
        let flags = flags(word()?)?;
        let sequence = number(word()?)?;
        let length = number(word()?)?;
        let acknowledged = number(word()?)?;
        let window = number(word()?)? as u16;
        self.time_ns = self.time_ns.wrapping_add_signed(after);
        let relative = |base: u32, number: i64| base.wrapping_add(number as u32);
        let mut segment = Segment {
            from,
            ports: self.ports,
            sequence: relative(self.initial[from], sequence + step * length),
            acknowledged: 0,
            flags,
            window,
            options: Vec::new(),
            length: length as usize,
            ip_id: self.ip_id,
        };
        if flags & ACK != 0 {
            segment.acknowledged = relative(self.initial[1 - from], acknowledged);
        }
        let mut captured = None;
        let mut is_same_packet = false;
        for word in words {
            match word.split_once('=') {
                Some(("cap", bytes)) => captured = Some(number(bytes)? as usize),
                None if word == "again" => is_same_packet = true,
                _ => option(word, &mut segment.options)?,
            }
        }
        if is_same_packet {
            segment.ip_id = self.ip_id - 1;
        } else {
            self.ip_id = self.ip_id.wrapping_add(1);
        }
        let bytes = segment.ipv4();
        let captured = captured.map_or(bytes.len(), |captured| captured.min(bytes.len()));
        self.case.frames.push(Frame { time_ns: self.time_ns, link: 101, bytes, captured });
        Ok(())
    }
}

fn number(word: &str) -> Result<i64, String> {
    word.parse().map_err(|_| format!("{word} is no number"))
}

fn time_ns(word: &str) -> Result<i64, String> {
    let at = word.find(|one: char| !one.is_ascii_digit() && one != '-').unwrap_or(word.len());
    let scale = match &word[at..] {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "" if word == "0" => 0,
        _ => return Err(format!("{word} is no time")),
    };
    Ok(number(&word[..at])? * scale)
}

fn flags(word: &str) -> Result<u16, String> {
    let mut flags = 0;
    for letter in word.chars() {
        flags |= match letter {
            'S' => SYN,
            'A' => ACK,
            'F' => FIN,
            'R' => RST,
            'P' => PSH,
            'U' => 0x20,
            'E' => 0x40,
            'W' => 0x80,
            '.' => 0,
            _ => return Err(format!("{word}: flags are S A F R P U E W")),
        };
    }
    Ok(flags)
}

fn option(word: &str, out: &mut Vec<u8>) -> Result<(), String> {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    match name {
        "mss" => out.extend([2, 4, 0x05, 0xb4]),
        "ws" => out.extend([3, 3, number(value)? as u8]),
        "sackok" => out.extend([4, 2]),
        "ts" => out.extend([8, 10, 0, 0, 0, 1, 0, 0, 0, 1]),
        "tfo" if value.is_empty() => out.extend([34, 2]),
        "tfo" => out.extend([34, 10, 1, 2, 3, 4, 5, 6, 7, 8]),
        "nop" => out.push(1),
        "sack" => {
            let (first, last) = value.split_once('-').ok_or("sack=FIRST-LAST")?;
            out.extend([5, 10]);
            out.extend((number(first)? as u32).to_be_bytes());
            out.extend((number(last)? as u32).to_be_bytes());
        }
        "bytes" => {
            for byte in value.split(',') {
                out.push(number(byte)? as u8);
            }
        }
        _ => return Err(format!("{word} is no option")),
    }
    Ok(())
}
