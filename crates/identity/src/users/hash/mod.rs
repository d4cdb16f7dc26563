//! One password hash of an htpasswd file: which forms are accepted, what a verification may cost,
//! and the verification itself. One form per file.

mod argon2;
mod bcrypt;
mod sha_crypt;

pub(crate) use self::argon2::Argon2Hash;
pub(crate) use self::bcrypt::BcryptHash;
pub(crate) use self::sha_crypt::ShaCryptHash;

/// What the verification of a password may cost at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostBounds {
    /// Argon2's memory. RFC 9106's second recommended option takes 64 MiB.
    argon2_memory_max_kib: u32,
    /// The product of Argon2's memory and passes.
    argon2_work_max_kib: u32,
    /// Bcrypt's cost. Each step doubles the time.
    bcrypt_cost_max_log2: u32,
    /// The rounds of SHA-crypt. passlib's default is 656,000.
    sha_crypt_rounds_max: u32,
    /// Follows the maximum in messages.
    why: &'static str,
}

impl CostBounds {
    /// For users that the balancer's operator lists: one or two seconds of processor time.
    pub const OPERATOR: CostBounds = CostBounds {
        argon2_memory_max_kib: 256 * 1024,
        argon2_work_max_kib: 1024 * 1024,
        bcrypt_cost_max_log2: 14,
        sha_crypt_rounds_max: 1_000_000,
        why: "",
    };

    /// For users that one of several tenants lists: a quarter of [`CostBounds::OPERATOR`].
    pub const TENANT: CostBounds = CostBounds {
        argon2_memory_max_kib: 64 * 1024,
        argon2_work_max_kib: 256 * 1024,
        bcrypt_cost_max_log2: 12,
        sha_crypt_rounds_max: 250_000,
        why: " here, because verifying passwords shares threads and memory with everyone",
    };
}

/// A hash whose form is accepted and whose cost is within the bounds.
///
/// Has no `Debug`: hashes are secrets.
pub(crate) enum Hash {
    /// `$2a$`, `$2b$`, `$2y$`.
    Bcrypt(BcryptHash),
    /// `$argon2id$`, `$argon2i$`, `$argon2d$`.
    Argon2(Argon2Hash),
    /// `$5$`, `$6$`.
    ShaCrypt(ShaCryptHash),
}

/// What to do about a hash that is not accepted.
const REPLACE: &str = "replace it with a bcrypt hash (`htpasswd -B FILE USER`)";

impl Hash {
    /// Parses the part of a line after the user's name.
    ///
    /// # Errors
    ///
    /// A sentence for the person who wrote the file: the form is unknown, no longer safe, damaged,
    /// or its verification would cost too much. It never contains the hash.
    pub(crate) fn parse(text: &str, bounds: &CostBounds) -> Result<Hash, String> {
        if text.starts_with("$argon2") {
            return Argon2Hash::parse(text, bounds).map(Hash::Argon2);
        }
        match text.get(..3) {
            Some("$2a" | "$2b" | "$2y") => BcryptHash::parse(text, bounds).map(Hash::Bcrypt),
            Some("$5$" | "$6$") => ShaCryptHash::parse(text, bounds).map(Hash::ShaCrypt),
            _ => Err(refusal(text)),
        }
    }

    /// Whether `password` has this hash. Slow: takes as long as the hash's cost says. Compares in
    /// constant time.
    pub(crate) fn matches(&self, password: &[u8]) -> bool {
        match self {
            Hash::Bcrypt(hash) => hash.matches(password),
            Hash::Argon2(hash) => hash.matches(password),
            Hash::ShaCrypt(hash) => hash.matches(password),
        }
    }

    /// Returns the length of the longest password that this hash can verify without ignoring a part
    /// of it and without multiplying the cost.
    pub(crate) fn password_max_bytes(&self) -> usize {
        match self {
            Hash::Bcrypt(_) => bcrypt::PASSWORD_MAX_BYTES,
            Hash::Argon2(_) => super::PASSWORD_MAX_BYTES,
            Hash::ShaCrypt(hash) => hash.password_max_bytes(),
        }
    }

    /// Returns the memory that a verification takes, to the nearest KiB.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Hash::Argon2(hash) => hash.memory_bytes(),
            // Blowfish's boxes; a few digests.
            Hash::Bcrypt(_) | Hash::ShaCrypt(_) => 8 * 1024,
        }
    }
}

/// Says why a form is not accepted.
fn refusal(text: &str) -> String {
    let dollar = |prefix: &str| text.starts_with(prefix);
    let why = if dollar("$apr1$") || dollar("$1$") {
        "MD5 hashes (apr1, $1$) can be guessed too quickly"
    } else if dollar("{SHA}") || dollar("{SSHA}") {
        "SHA-1 hashes can be guessed too quickly"
    } else if dollar("$2x$") || dollar("$2$") {
        "bcrypt hashes of form $2$ and $2x$ come from faulty versions"
    } else if dollar("$y$") || dollar("$7$") || dollar("$gy$") || dollar("$scrypt$") {
        "scrypt and yescrypt hashes are not supported"
    } else if dollar("$pbkdf2") {
        "PBKDF2 hashes are not supported"
    } else if dollar("$") {
        "the form of the hash is unknown"
    } else if text.len() == 13 && text.bytes().all(is_crypt_letter) {
        "DES hashes (crypt) ignore all but 8 characters and can be guessed quickly"
    } else if text.is_empty() {
        "the password hash is missing"
    } else {
        "passwords in plain text are not accepted"
    };
    format!("{why}; {REPLACE}")
}

/// Whether `byte` is a letter of crypt's base64, whose order differs from the usual one.
fn is_crypt_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'/')
}

/// Says that a hash of the form `name` is cut off or changed.
fn damaged(name: &str) -> String {
    format!("the {name} hash is damaged; {REPLACE}")
}

/// Whether two hashes are the same, in constant time.
fn same(one: &[u8], other: &[u8]) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(one, other).is_ok()
}
