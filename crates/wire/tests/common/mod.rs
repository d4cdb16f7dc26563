//! Shared by these tests: a random generator whose seed is printed; `WEIR_SEED` replays it.

/// Returns a generator with a new seed for each run.
pub(crate) fn rng() -> fastrand::Rng {
    let seed = std::env::var("WEIR_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("WEIR_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}
