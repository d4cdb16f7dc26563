//! How many slots a load needs: Little's law, and square-root staffing as a reserve for the queue.
//!
//! 1. `a = arrivals × service time` slots are occupied on average (Little, "A proof for the queuing formula
//!    L = λW", 1961). `a` is the offered load, in Erlang.
//! 2. At the target utilization `u`, `a / u` slots are needed. This is the load `A` up to which the service may grow
//!    while new servers start.
//! 3. At load `A`, there are `A + β √A` slots. The probability that a request waits then approaches
//!    `1 / (1 + β Φ(β) / φ(β))` as `A` grows (Halfin and Whitt, "Heavy-traffic limits for queues with many
//!    exponential servers", 1981). It is higher for small `A`. The rule is the limit of Erlang's formula for the
//!    probability of waiting (Erlang C, 1917), and needs no loop over the slots.

/// β of square-root staffing. When the load has grown to `a / utilization`, a request waits with a probability of
/// about 22 % for large pools, and up to 38 % for one slot.
pub const BETA: f64 = 1.0;

/// The slots that a load needs, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Slots {
    /// Mean number of occupied slots.
    pub load: f64,
    /// Slots at the target utilization.
    pub at_utilization: f64,
    /// Slots in addition, so that few requests wait.
    pub reserve: f64,
}

impl Slots {
    /// Returns the slots for this load (in occupied slots) at this utilization (above 0).
    pub fn of(load: f64, utilization: f64) -> Slots {
        let at_utilization = load / utilization;
        Slots { load, at_utilization, reserve: BETA * at_utilization.sqrt() }
    }

    /// Returns the same without the reserve.
    #[must_use]
    pub fn without_reserve(self) -> Slots {
        Slots { reserve: 0.0, ..self }
    }

    /// Returns all slots together.
    pub fn total(&self) -> f64 {
        self.at_utilization + self.reserve
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The probability that a request waits (Erlang C), for this many slots and this load in occupied slots.
    fn probability_of_waiting(slots: u32, load: f64) -> f64 {
        let count = f64::from(slots);
        if load >= count {
            return 1.0;
        }
        // Erlang B by its recursion, then C from B.
        let blocked = (1..=slots).fold(1.0, |b, n| load * b / (f64::from(n) + load * b));
        blocked * count / (count - load * (1.0 - blocked))
    }

    #[test]
    fn erlang_c_is_as_in_the_tables() {
        // 2 slots at 1 Erlang: 1/3. 10 slots at 8 Erlang: 0.409.
        assert!((probability_of_waiting(2, 1.0) - 1.0 / 3.0).abs() < 1e-12);
        assert!((probability_of_waiting(10, 8.0) - 0.409).abs() < 1e-3);
        assert!((probability_of_waiting(3, 3.0) - 1.0).abs() < 1e-12);
    }

    /// The probability is highest where `A + √A` is a whole number, because nothing is rounded up there.
    #[test]
    fn few_requests_wait_after_the_growth_that_the_utilization_leaves_room_for() {
        // Slots, and the highest probability of waiting with at least as many: after the growth, and before.
        let bounds = [
            (1, 0.382, 0.268),
            (2, 0.334, 0.182),
            (5, 0.291, 0.091),
            (10, 0.271, 0.042),
            (50, 0.244, 0.001),
            (1_000, 0.228, 1e-6),
        ];
        let mut highest = [0.0_f64; 6];
        let mut load = 0.01;
        while load < 2_000.0 {
            let slots = Slots::of(load, 0.7);
            let count = slots.total().ceil() as u32;
            let grown = probability_of_waiting(count, slots.at_utilization);
            let now = probability_of_waiting(count, load);
            for ((least, grown_max, now_max), highest) in bounds.iter().zip(&mut highest) {
                if count >= *least {
                    assert!(
                        grown < *grown_max && now < *now_max,
                        "{load}, {count}: {grown}, {now}"
                    );
                    *highest = highest.max(grown);
                }
            }
            load *= 1.0005;
        }
        // The bounds are close, so the figures in the documentation are those of the formula.
        for ((least, grown_max, _), highest) in bounds.iter().zip(highest) {
            assert!(highest > grown_max - 0.002, "{least} slots: {highest}");
        }
    }
}
