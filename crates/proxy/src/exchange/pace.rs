//! Minimum upload rate: a slot that others wait for is taken from a client that sends its body too
//! slowly.

use std::cell::RefCell;

use decide::Slot;
use decide::body_rate::{BodyRate, POLL_EVERY};

use crate::pump::Pump;
use crate::watchdog::Limits;

/// The upload rate of an attempt, and whether others wait for its slot.
pub(super) struct Pace<'a> {
    slot: &'a Slot,
    rate: RefCell<BodyRate>,
    /// How many requests had been refused for lack of a slot when the attempt began.
    refused: u64,
}

impl<'a> Pace<'a> {
    /// Returns `None` if the server has no concurrency limit.
    pub(super) fn of(slot: &'a Slot, upload: &Pump) -> Option<Pace<'a>> {
        let slots = &slot.endpoint().slots;
        let rate = RefCell::new(BodyRate::new(upload.bytes()));
        (slots.max() > 0).then(|| Pace { slot, rate, refused: slots.refused() })
    }

    /// Returns whether the client must give up the slot: Weir waits for it, it has sent too little
    /// recently, and other requests wait for a slot or have been refused one. If not, schedules
    /// another poll in time.
    pub(super) fn must_yield(&self, upload: &Pump, limits: &Limits) -> bool {
        if !upload.is_starved() {
            return false;
        }
        let slots = &self.slot.endpoint().slots;
        let is_slow = self.rate.borrow_mut().is_slow(upload.bytes(), upload.waited_for_sender());
        if is_slow && (slots.is_waited_for() || slots.refused() > self.refused) {
            return true;
        }
        limits.poll_again_at(os::clock::now() + POLL_EVERY);
        false
    }
}
