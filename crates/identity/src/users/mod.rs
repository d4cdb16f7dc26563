//! The users of an htpasswd file, and the verification of a password.

mod file;
mod hash;

use std::collections::HashMap;
use std::fmt;
use std::hint::black_box;

use aws_lc_rs::digest::{Context, SHA256};

pub use self::file::{FILE_MAX_BYTES, MISTAKES_MAX, Mistake, USER_MAX_BYTES, USERS_MAX};
pub use self::hash::CostBounds;
use self::hash::Hash;

/// The longest password that is verified, for every form of hash. Bcrypt's own bound is 72 bytes.
pub const PASSWORD_MAX_BYTES: usize = 512;

/// How many passwords a process may verify at the same time: bounds what [`Users::memory_max_bytes`]
/// amounts to.
pub const VERIFICATIONS_MAX: usize = 4;

/// The users of one htpasswd file: names and password hashes.
///
/// Immutable: a reload makes a new table. [`Users::verify`] takes up to two seconds of processor time,
/// so call it from a bounded pool of threads, and ask [`SuccessCache`](crate::SuccessCache) first.
pub struct Users {
    entries: Vec<Entry>,
    by_name: HashMap<Box<str>, usize>,
    /// Digest of all entries, which decides the stand-ins of unknown users.
    digest: [u8; 32],
}

/// A line of the file.
struct Entry {
    hash: Hash,
    /// SHA-256 of the hash's text: changes with the user's password.
    digest: [u8; 32],
}

/// The result of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The user exists and this is the password.
    Accepted,
    /// The user exists and has another password.
    WrongPassword,
    /// No user has this name.
    UnknownUser,
    /// The password is longer than the hash can verify: 72 bytes for bcrypt, 128 to 512 for
    /// SHA-crypt (the more rounds, the fewer), otherwise [`PASSWORD_MAX_BYTES`].
    PasswordTooLong,
}

impl Verdict {
    /// Whether the request may pass.
    pub fn is_accepted(self) -> bool {
        self == Verdict::Accepted
    }

    /// Returns a word for logs and metrics. Clients must not see it: all refusals look the same.
    pub fn reason(self) -> &'static str {
        match self {
            Verdict::Accepted => "accepted",
            Verdict::WrongPassword => "wrong_password",
            Verdict::UnknownUser => "unknown_user",
            Verdict::PasswordTooLong => "password_too_long",
        }
    }
}

impl Users {
    /// Parses the contents of an htpasswd file, as Apache, nginx and Caddy read it: `USER:HASH` on
    /// each line. Empty lines and lines that begin with `#` are ignored, as is what follows a second
    /// colon, a byte order mark, and white space at the end of a line.
    ///
    /// A file without users is accepted and lets no one in; see [`Users::is_empty`].
    ///
    /// # Errors
    ///
    /// Every mistake with its line, up to [`MISTAKES_MAX`]; then the file counts as a whole as
    /// refused. A mistake is a line without colon, a name that is empty, duplicate, longer than
    /// [`USER_MAX_BYTES`] or has control characters, and a hash that is not bcrypt, Argon2 or
    /// SHA-crypt, is damaged, or would take too long to verify.
    pub fn parse(contents: &[u8]) -> Result<Users, Vec<Mistake>> {
        Users::parse_within(contents, &CostBounds::OPERATOR)
    }

    /// As [`Users::parse`], with other bounds of what a verification may cost.
    ///
    /// # Errors
    ///
    /// As [`Users::parse`].
    pub fn parse_within(contents: &[u8], bounds: &CostBounds) -> Result<Users, Vec<Mistake>> {
        let lines = file::parse(contents, bounds)?;
        let mut all = Context::new(&SHA256);
        let mut entries = Vec::with_capacity(lines.len());
        let mut by_name = HashMap::with_capacity(lines.len());
        for line in lines {
            by_name.insert(line.user.into(), entries.len());
            let digest = sha256(line.hash_text.as_bytes());
            all.update(&digest);
            entries.push(Entry { hash: line.hash, digest });
        }
        Ok(Users { entries, by_name, digest: to_array(all.finish().as_ref()) })
    }

    /// Whether `password` is the password of `user`. Slow, see [`Users`].
    ///
    /// The time tells little about the user. A hash is compared in constant time. For a name that
    /// is unknown, the password is verified against the hash of a user of the file, the same one
    /// each time, and the result is discarded: over all names, unknown ones take as long as known
    /// ones, even if the file mixes forms and costs.
    pub fn verify(&self, user: &str, password: &[u8]) -> Verdict {
        let known = self.by_name.get(user).copied();
        let Some(entry) = self.entries.get(known.unwrap_or_else(|| self.stand_in(user))) else {
            return Verdict::UnknownUser;
        };
        let is_too_long = password.len() > entry.hash.password_max_bytes();
        // `black_box`: the work must be done even where its result does not matter.
        let matches = !is_too_long && black_box(entry.hash.matches(black_box(password)));
        match (known, matches) {
            (None, _) => Verdict::UnknownUser,
            (Some(_), true) => Verdict::Accepted,
            (Some(_), false) if is_too_long => Verdict::PasswordTooLong,
            (Some(_), false) => Verdict::WrongPassword,
        }
    }

    /// Returns the number of users.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether the file has no users, which denies every request and deserves a warning.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the most memory that one verification takes: tens of MiB with Argon2. Up to
    /// [`VERIFICATIONS_MAX`] may run at the same time.
    pub fn memory_max_bytes(&self) -> usize {
        self.entries.iter().map(|entry| entry.hash.memory_bytes()).max().unwrap_or_default()
    }

    /// Whether `user` exists here and in `other` and has the same hash: what was verified with one is
    /// true of the other.
    pub fn has_same_hash(&self, other: &Users, user: &str) -> bool {
        let (is_known, digest) = self.hash_digest(user);
        is_known && (true, digest) == other.hash_digest(user)
    }

    /// Returns the digest of the hash of `user`, and whether the user exists; for an unknown one,
    /// the digest of its stand-in.
    pub(crate) fn hash_digest(&self, user: &str) -> (bool, [u8; 32]) {
        let known = self.by_name.get(user).copied();
        let at = known.unwrap_or_else(|| self.stand_in(user));
        (known.is_some(), self.entries.get(at).map_or(self.digest, |entry| entry.digest))
    }

    /// Returns the entry whose cost an unknown `user` seems to have. It depends on the contents of
    /// the file, which attackers do not know, and on the name, and so stays the same until the file
    /// changes.
    fn stand_in(&self, user: &str) -> usize {
        let mut context = Context::new(&SHA256);
        context.update(&self.digest);
        context.update(user.as_bytes());
        let digest = context.finish();
        let number = digest.as_ref().iter().take(8).fold(0, |sum, &b| (sum << 8) | u64::from(b));
        (number % (self.entries.len() as u64).max(1)) as usize
    }
}

impl fmt::Debug for Users {
    /// Writes the number of users; names and hashes stay out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Users").field("len", &self.len()).finish_non_exhaustive()
    }
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    to_array(aws_lc_rs::digest::digest(&SHA256, bytes).as_ref())
}

fn to_array(digest: &[u8]) -> [u8; 32] {
    let mut array = [0; 32];
    array.copy_from_slice(digest);
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASHES: [&str; 3] = [
        "$2y$05$/uFW/VE9eEcMEy1UgfRJR.EbPKHgAXms96YkNtycjwSeKPxXTOw8O",
        "$argon2id$v=19$m=1024,t=2,p=1$c2FsdCBvZiBhIHVzZXIuLg$wkk0SOIzhVZmVOfVYx7cbQuLhpODW/cuU4d6fwKAjWk",
        "$5$saltofauser5$wzI7489Tn1zREa6VMVgNQMSDMgjCH5phpcKZIxmjei9",
    ];

    fn users(hashes: &[&str]) -> Users {
        let lines: Vec<String> =
            hashes.iter().enumerate().map(|(at, hash)| format!("user{at}:{hash}")).collect();
        Users::parse(lines.join("\n").as_bytes()).unwrap()
    }

    #[test]
    fn unknown_users_seem_to_have_the_hashes_of_known_ones() {
        let table = users(&HASHES);
        let mut counts = [0; 3];
        for n in 0..3000 {
            let name = format!("unknown{n}");
            let stand_in = table.stand_in(&name);
            assert_eq!(stand_in, table.stand_in(&name));
            counts[stand_in] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
        // Which one, cannot be known without the file.
        let other = users(&[HASHES[1], HASHES[0], HASHES[2]]);
        let moved = (0..3000).map(|n| format!("unknown{n}"));
        let moved = moved.filter(|name| table.stand_in(name) != other.stand_in(name)).count();
        assert!((1850..2150).contains(&moved), "{moved}");
    }

    #[test]
    fn a_user_has_the_same_hash_as_long_as_its_line_stays() {
        let before = users(&HASHES);
        let later = users(&[HASHES[0], HASHES[2]]);
        assert!(before.has_same_hash(&before, "user1") && before.has_same_hash(&later, "user0"));
        assert!(!before.has_same_hash(&later, "user1"), "changed");
        assert!(!before.has_same_hash(&later, "user2"), "removed");
        assert!(!later.has_same_hash(&before, "user2"), "added");
        // With one line, all unknown users have the same stand-in.
        let [one, other] = [users(&HASHES[..1]), users(&HASHES[..1])];
        assert!(!one.has_same_hash(&other, "unknown"));
    }

    #[test]
    fn the_password_of_a_stand_in_lets_no_one_else_in() {
        let table = users(&HASHES[..1]);
        let password = b"correct horse battery staple";
        assert_eq!(table.verify("user0", password), Verdict::Accepted);
        assert_eq!(table.verify("unknown", password), Verdict::UnknownUser);
        assert_eq!(table.verify("", password), Verdict::UnknownUser);
    }
}
