//! A slot that others wait for is not kept by a client that hardly sends its body.

use std::cell::RefCell;

use decide::body_rate::{BodyRate, LOOK_AGAIN};
use decide::{LiveService, Slot};
use wire::http1::RequestHead;

use crate::pump::Pump;
use crate::watchdog::Limits;

/// How quickly an attempt's body comes, and who would like to have its slot.
pub(super) struct Pace<'a> {
    slot: &'a Slot,
    live: &'a LiveService,
    rate: RefCell<BodyRate>,
    /// Those who had been refused for want of a slot when the attempt began.
    refused: u64,
}

impl<'a> Pace<'a> {
    /// `None` where it does not matter: without a limit, and in calls of gRPC, which are
    /// conversations.
    pub(super) fn of(
        slot: &'a Slot,
        live: &'a LiveService,
        head: &RequestHead,
        upload: &Pump,
    ) -> Option<Pace<'a>> {
        let rate = RefCell::new(BodyRate::new(upload.bytes()));
        let matters = slot.endpoint().slots.max() > 0 && !head.is_grpc();
        matters.then(|| Pace { slot, live, rate, refused: live.refused() })
    }

    /// Whether the client is to give up the slot: it is waited for, has sent too little of late, and
    /// others wait for a slot or have been refused one. If not, has this asked again in time.
    pub(super) fn must_yield(&self, upload: &Pump, limits: &Limits) -> bool {
        if !upload.is_starved() {
            return false;
        }
        let is_slow = self.rate.borrow_mut().is_slow(upload.bytes(), upload.waited_for_sender());
        let others =
            || self.slot.endpoint().slots.is_waited_for() || self.live.refused() > self.refused;
        if is_slow && others() {
            return true;
        }
        limits.look_at(os::clock::now() + LOOK_AGAIN);
        false
    }
}
