//! A slot that others wait for is not kept by a client that hardly sends its body.

use std::cell::RefCell;

use decide::Slot;
use decide::body_rate::{BodyRate, POLL_EVERY};

use crate::pump::Pump;
use crate::watchdog::Limits;

/// How quickly an attempt's body comes, and who would like to have its slot.
pub(super) struct Pace<'a> {
    slot: &'a Slot,
    rate: RefCell<BodyRate>,
    /// Those who had been refused for want of a slot when the attempt began.
    refused: u64,
}

impl<'a> Pace<'a> {
    /// `None` where there is no limit.
    pub(super) fn of(slot: &'a Slot, upload: &Pump) -> Option<Pace<'a>> {
        let slots = &slot.endpoint().slots;
        let rate = RefCell::new(BodyRate::new(upload.bytes()));
        (slots.max() > 0).then(|| Pace { slot, rate, refused: slots.refused() })
    }

    /// Whether the client is to give up the slot: it is waited for, has sent too little of late, and
    /// others wait for a slot or have been refused one. If not, the work is polled again in time.
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
