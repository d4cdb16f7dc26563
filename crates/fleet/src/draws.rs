//! Random numbers for foca.

use std::convert::Infallible;

use rand_core::TryRng;

/// A seeded generator behind the trait that foca asks for.
pub(crate) struct Draws(pub(crate) fastrand::Rng);

impl TryRng for Draws {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0.u32(..))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.u64(..))
    }

    fn try_fill_bytes(&mut self, into: &mut [u8]) -> Result<(), Infallible> {
        self.0.fill(into);
        Ok(())
    }
}
