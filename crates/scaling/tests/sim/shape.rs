//! How the rate of new requests changes over time.

/// A rate over time. Rates are requests per second, times are seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// The same rate always.
    Steady(f64),
    /// A rate that is multiplied at a moment, until another one.
    Step { base: f64, factor: f64, from: f64, to: f64 },
    /// A rate that grows by a factor, at a constant pace.
    Ramp { base: f64, factor: f64, from: f64, to: f64 },
    /// A rate that goes up and down as a sine.
    Diurnal { least: f64, most: f64, period: f64 },
}

impl Shape {
    pub(crate) fn rate(self, at: f64) -> f64 {
        match self {
            Shape::Steady(rate) => rate,
            Shape::Step { base, factor, from, to } => {
                if (from..to).contains(&at) {
                    base * factor
                } else {
                    base
                }
            }
            Shape::Ramp { base, factor, from, to } => {
                let part = ((at - from) / (to - from)).clamp(0.0, 1.0);
                base * (1.0 + (factor - 1.0) * part)
            }
            Shape::Diurnal { least, most, period } => {
                let phase = (at / period * std::f64::consts::TAU).cos();
                least + (most - least) * (1.0 - phase) / 2.0
            }
        }
    }

    /// The highest rate at any time.
    pub(crate) fn most(self) -> f64 {
        match self {
            Shape::Steady(rate) => rate,
            Shape::Step { base, factor, .. } | Shape::Ramp { base, factor, .. } => {
                base * factor.max(1.0)
            }
            Shape::Diurnal { most, .. } => most,
        }
    }

    /// The highest rate of the last seconds before a moment.
    pub(crate) fn most_before(self, at: f64, seconds: u32) -> f64 {
        let moments = (0..=seconds).map(|before| (at - f64::from(before)).max(0.0));
        moments.map(|moment| self.rate(moment)).fold(0.0, f64::max)
    }
}
