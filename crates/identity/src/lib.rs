//! Who a request is from: contents of files, fields of requests and now → a user or claims, or a
//! denial with its reason.
//!
//! Nothing here reads a clock or a file, or opens a socket; the caller passes in bytes, random keys
//! and the time. Everything that is not accepted denies the request. No error, log word or `Debug`
//! output has a password, a hash, a secret key or a token in it.
//!
//! # Basic: users of an htpasswd file
//!
//! 1. [`Users::parse`] reads the file at start and reload, or returns every mistake with its line.
//! 2. [`authorization::basic`] reads the request's field into [`Credentials`].
//! 3. [`SuccessCache::ticket`] and [`SuccessCache::consult`] tell whether they were verified just
//!    before. They take about a microsecond, so the thread that serves the request may call them.
//! 4. If not, [`Users::verify`] verifies the password. It takes up to two seconds of processor time
//!    and [`Users::memory_max_bytes`], so it belongs on a bounded pool of threads; a request that
//!    finds the pool full is refused. If the verdict is [`Verdict::Accepted`],
//!    [`SuccessCache::insert`] remembers it.
//! 5. Otherwise the response has status 401 and [`challenge::basic`], the same for all reasons.
//!
//! Steps 3 and 4 must use the same [`Users`], so that a reload in between changes nothing. If one
//! came in between, [`Users::has_same_hash`] tells whether the verdict still counts.
//!
//! # Bearer: signed tokens
//!
//! 1. [`KeySet::parse`] reads a file or the body of a response; [`KeySet::skipped`] is worth a
//!    warning. If it fails, the caller keeps the keys that it has.
//! 2. [`authorization::bearer`] reads the request's field; a token may also come from a cookie.
//! 3. [`token::verify`] returns the [`Claims`], or [`Denied`], whose description goes into
//!    [`challenge::bearer`].
//! 4. For a key set that is fetched, [`Refetch`] says when; [`Denied::UnknownKey`] may make it
//!    sooner.
//!
//! # Passing an identity on
//!
//! [`Claim::header_value`] and [`header_value::check`] decide whether a claim or a user's name may be
//! the value of a field; if not, the request is denied. The caller removes the fields of this name
//! that the client sent, in any case, also when there is no claim, and also those that have an
//! underscore for a hyphen, since many servers (CGI, WSGI, PHP) do not tell the two apart.
//!
//! # Why not a crate for tokens
//!
//! `jsonwebtoken` (11.1), the most used one, reads JSON with duplicate members, ignores `crit`,
//! binds a key to a family of algorithms rather than to one, and leaves the choice of the key and all
//! bounds to its caller. The rest, checking a signature, is one call to aws-lc, which is in the
//! program for TLS.

pub mod authorization;
pub mod challenge;
pub mod header_value;
pub mod keys;
pub mod success_cache;
pub mod token;
pub mod users;

mod algorithm;
mod json;
mod refetch;

pub use algorithm::Algorithm;
pub use authorization::{Credentials, Unusable};
pub use header_value::Unfit;
pub use keys::{BadKeySet, KeySet, Secrets, Skipped};
pub use refetch::{Refetch, RefetchRules};
pub use success_cache::{Lookup, SuccessCache, Ticket};
pub use token::{Claim, Claims, Denied, Rules};
pub use users::{CostBounds, Mistake, Users, Verdict};
