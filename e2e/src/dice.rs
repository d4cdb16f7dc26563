//! Random choices that a seed repeats.

/// Numbers from a seed (splitmix64): the same ones anywhere.
pub struct Dice(u64);

impl Dice {
    /// The numbers of this seed.
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number() % end
    }

    /// One of `from`.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// True in `share` of a thousand.
    pub fn permille(&mut self, share: u64) -> bool {
        self.below(1_000) < share
    }
}

/// The seeds of a test with random choices: the same few each time, and a new one. `WEIR_SEED` replays
/// one. A test prints the seed that it uses.
pub fn seeds() -> Vec<u64> {
    let given = std::env::var("WEIR_SEED").ok().map(|seed| seed.parse().expect("WEIR_SEED"));
    let new = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |now| u64::from(now.subsec_nanos()));
    given.map_or_else(|| vec![1, 2, new], |seed: u64| vec![seed])
}
