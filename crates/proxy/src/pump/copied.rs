//! A copy of a body, made while it is read.

use model::Mirrored;

use crate::budget::Charge;

/// The bytes of a body as they are read, without framing, for mirrors.
pub(crate) struct Copied {
    /// Or the reason why there is no copy.
    bytes: Result<Vec<u8>, Mirrored>,
    max: usize,
    charge: Charge,
}

impl Copied {
    /// Copies a body of at most `max` bytes, as far as `charge` covers it.
    pub(crate) fn new(max: u64, charge: Charge) -> Copied {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        Copied { bytes: Ok(Vec::new()), max, charge }
    }

    /// Returns whether there is a copy, so far.
    pub(super) fn is_some(&self) -> bool {
        self.bytes.is_ok()
    }

    pub(super) fn push(&mut self, run: &[u8]) {
        let Ok(bytes) = &mut self.bytes else { return };
        let needed = bytes.len() + run.len();
        let lost = if needed > self.max {
            Mirrored::NoBody
        } else if self.charge.make_room(bytes, needed, self.max) {
            bytes.extend_from_slice(run);
            return;
        } else {
            Mirrored::Overloaded
        };
        self.bytes = Err(lost);
        self.charge.release();
    }

    /// Returns another copy, with a charge of its own.
    pub(crate) fn again(&self, mut charge: Charge) -> Copied {
        let bytes = self.bytes.as_ref().map_err(|lost| *lost).and_then(|bytes| {
            if charge.covers(bytes.len() as u64) {
                return Ok(bytes.clone());
            }
            charge.note_exhausted();
            Err(Mirrored::Overloaded)
        });
        Copied { bytes, max: self.max, charge }
    }

    /// Returns the bytes, of which there are at most `max`, and what they are charged to; or the reason why
    /// there are none.
    pub(crate) fn into_bytes(self, max: usize) -> Result<(Vec<u8>, Charge), Mirrored> {
        let bytes = self.bytes?;
        if bytes.len() > max { Err(Mirrored::NoBody) } else { Ok((bytes, self.charge)) }
    }
}
