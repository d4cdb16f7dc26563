//! However a file is corrupted, it is reported: no panic, and at least one mistake whenever the
//! result is "refused". `WEIR_SEED=n` replays one seed.

mod files;

use config::Checked;

/// A small generator (xorshift64*), so that a seed gives the same sequence everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Prints the seed if the test panics while this is held.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay with WEIR_SEED={}", self.0);
        }
    }
}

const PIECES: &[&str] = &[
    "\"",
    "'",
    "\"\"\"",
    "'''",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ",",
    ".",
    "#",
    "\n",
    "\r\n",
    "\r",
    "\0",
    "\u{7f}",
    "\u{feff}",
    "é",
    "\u{202e}",
    "😀",
    "\\",
    "\\u",
    "0",
    "-1",
    "99999999999999999999",
    "1e999",
    "nan",
    "true",
    "0x",
    "1979-05-27",
    "\"5\"",
    "\"5 s\"",
    "\"999999999999999999999s\"",
    "\"16k\"",
    "\"::1:80\"",
    "\"[::1\"",
    "\"*.\"",
    "\"/%\"",
    "\"/..\"",
    "\"header:\"",
    "\"cookie: \"",
    "[]",
    "{}",
    "[[]]",
    "[service]\n",
    "[[service]]\n",
    "[listener]\n",
    "[[route]]\n",
    "[service.\"\"]\n",
    "[[service.app.server]]\n",
    "service = 1\n",
    "server = []\n",
    "host = []\n",
    "split = [{}]\n",
    "a.b.c = 1\n",
    "zone = ",
    "check = ",
    "passive = ",
    "expect = [[]]\n",
    "\t",
    " ",
];

fn mutate(text: &str, random: &mut Random) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..=random.below(6) {
        let from = random.below(chars.len());
        let until = (from + random.below(40)).min(chars.len());
        match random.below(5) {
            0 => drop(chars.drain(from..until)),
            1 => {
                let piece = PIECES[random.below(PIECES.len())];
                chars.splice(from..from, piece.chars());
            }
            2 => {
                let piece = PIECES[random.below(PIECES.len())];
                chars.splice(from..until, piece.chars());
            }
            3 => {
                let copied: Vec<_> = chars[from..until].to_vec();
                let to = random.below(chars.len());
                chars.splice(to..to, copied);
            }
            _ => chars.truncate(chars.len() - random.below(chars.len() / 4)),
        }
    }
    chars.into_iter().collect()
}

#[test]
fn no_mutation_of_a_valid_file_panics() {
    let full = include_str!("cases/full.toml");
    let minimal = include_str!("cases/minimal.toml");
    let substitute = include_str!("cases/substitute.toml");
    let seeds = match std::env::var("WEIR_SEED") {
        Ok(seed) => vec![seed.parse().expect("WEIR_SEED is a number")],
        Err(_) => (1..=8_000).collect(),
    };
    let mut refused = 0;
    for seed in seeds {
        let guard = Seed(seed);
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let original = match seed % 4 {
            0 => minimal,
            1 => substitute,
            _ => full,
        };
        let text = mutate(original, &mut random);
        let checked = config::check(&text, "mutation", files::made());
        let shown = match &checked {
            Ok(Checked { snapshot, report }) => format!("{snapshot:?} {:?}", report.found),
            Err(report) => format!("{:?}", report.found),
        };
        assert!(!shown.contains("hunter"), "shows a secret: {shown}\n{text}");
        match checked {
            Ok(checked) => drop(checked.report.render(true)),
            Err(report) => {
                let found = &report.found;
                let errors = found.iter().filter(|d| d.severity == config::Severity::Error);
                assert!(errors.count() > 0, "refused without a mistake:\n{text}");
                assert!(found.iter().all(|d| !d.title.contains("a bug in Weir")), "{text}");
                let said = report.render(false);
                assert!(said.contains("mistake"), "{said}");
                refused += 1;
            }
        }
        drop(guard);
    }
    assert!(refused > 0 || std::env::var_os("WEIR_SEED").is_some());
}
