//! What is uploaded, and how; and the events that the caller receives.

use std::time::Duration;

use crate::error::UploadError;
use crate::figures::Part;

/// The most parts of one object (Amazon S3's limit, which others share).
pub const PARTS_MAX: u64 = 10_000;

/// What is uploaded, and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The object's key.
    pub key: String,
    /// Bytes of the object, at least 1.
    pub size_bytes: u64,
    /// Bytes of a part; the last one is what is left. At least 1, and so large that there are at
    /// most [`PARTS_MAX`].
    pub part_bytes: u64,
    /// Parts under way at once, at least 1. Each needs memory of twice its size.
    pub parallel: usize,
    /// How often a part, or another request, is sent again after a failure that may pass.
    pub retries_max: u32,
    /// The longest that one attempt of one request may take.
    pub timeout: Duration,
    /// The longest that connecting may take, TLS included.
    pub connect_timeout: Duration,
    /// Whether the object is left there; otherwise it is deleted in the end.
    pub keep: bool,
}

impl Plan {
    /// How many parts there are.
    pub fn parts(&self) -> u64 {
        self.size_bytes.div_ceil(self.part_bytes.max(1)).max(1)
    }

    /// Where part `number`, from 1, begins, and its size in bytes.
    pub(crate) fn part(&self, number: u64) -> (u64, usize) {
        let begins = (number - 1) * self.part_bytes;
        (begins, self.part_bytes.min(self.size_bytes - begins) as usize)
    }
}

/// An event, for observers.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A part has ended well.
    Part(&'a Part),
    /// An attempt has failed, and there will be another.
    Retry {
        /// The part's number.
        part: u64,
        /// What went wrong.
        error: &'a UploadError,
    },
}
