//! Any bytes as an htpasswd file. Mistakes are few, on lines that exist, and in words of Weir's own.
#![no_main]

use std::time::Duration;

use identity::users::{MISTAKES_MAX, USER_MAX_BYTES};
use identity::{Credentials, SuccessCache, Users};
use libfuzzer_sys::fuzz_target;
use model::Moment;

fuzz_target!(|data: &[u8]| {
    let lines = data.split(|&byte| byte == b'\n').count();
    let users = match Users::parse(data) {
        Ok(users) => users,
        Err(mistakes) => {
            assert!(!mistakes.is_empty() && mistakes.len() <= MISTAKES_MAX);
            for mistake in mistakes {
                assert!((1..=lines).contains(&mistake.line));
                assert!(!mistake.message.contains(char::is_control));
                assert!(mistake.message.len() < 200 + USER_MAX_BYTES);
            }
            return;
        }
    };
    assert!(users.len() <= lines);
    assert!(users.memory_max_bytes() < 300 << 20);
    // The user of the first line exists, and its ticket is the same again. Hashes are not computed
    // here: they are slow on purpose.
    let name = data.split(|&byte| byte == b':').next().unwrap_or_default();
    let name = String::from_utf8_lossy(name).into_owned();
    let Ok(credentials) = Credentials::new(&name, b"password") else {
        return;
    };
    let cache = SuccessCache::new([1; 32], 8, Duration::from_secs(1));
    cache.insert(&cache.ticket(&users, &credentials), Moment::ZERO);
    let found = cache.lookup(&cache.ticket(&users, &credentials), Moment::ZERO);
    let is_user = !name.starts_with(['#', '\u{feff}']) && data.len() > name.len();
    assert_eq!(found, is_user, "{name:?}");
});
