//! What these tests share: a random generator whose seed is printed; `WEIR_SEED` replays it.

/// Seeded anew for each run.
pub(crate) fn rng() -> fastrand::Rng {
    let seed = std::env::var("WEIR_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("WEIR_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}
