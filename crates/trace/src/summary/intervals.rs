//! Counts over time, as in tshark's `io,stat`: intervals begin at the first frame.

use super::Counts;

/// Intervals with anything in them that are kept; a longer capture has its intervals doubled until
/// they fit.
pub const INTERVALS_MAX: usize = 100_000;

/// A stretch of time in which there was something.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Its number, from 0.
    pub number: u64,
    /// What there was.
    pub counts: Counts,
}

/// All of them.
#[derive(Clone, Debug)]
pub struct Intervals {
    length_ns: u64,
    first_ns: Option<i64>,
    last_ns: i64,
    /// In order; those without anything are left out.
    rows: Vec<Interval>,
}

impl Intervals {
    /// Intervals of `length_ns`, at least 1 ms.
    pub fn new(length_ns: u64) -> Intervals {
        let length_ns = length_ns.max(1_000_000);
        Intervals { length_ns, first_ns: None, last_ns: 0, rows: Vec::new() }
    }

    /// How long each is, in nanoseconds: as asked for, or doubled as often as was needed.
    pub fn length_ns(&self) -> u64 {
        self.length_ns
    }

    /// When the first frame came, in nanoseconds since 1970.
    pub fn first_ns(&self) -> Option<i64> {
        self.first_ns
    }

    /// From the first frame to the latest, in nanoseconds.
    pub fn duration_ns(&self) -> u64 {
        let first = self.first_ns.unwrap_or(self.last_ns);
        self.last_ns.saturating_sub(first).max(0).cast_unsigned()
    }

    /// Those with something in them, in order.
    pub fn rows(&self) -> &[Interval] {
        &self.rows
    }

    /// The counts of the interval of `time_ns`. What came before the first frame is in the first.
    pub(crate) fn at(&mut self, time_ns: i64) -> &mut Counts {
        let first = *self.first_ns.get_or_insert(time_ns);
        if self.rows.is_empty() || time_ns > self.last_ns {
            self.last_ns = time_ns;
        }
        if self.rows.len() >= INTERVALS_MAX {
            self.double();
        }
        let since = time_ns.saturating_sub(first).max(0).cast_unsigned();
        let number = since / self.length_ns;
        let at = match self.rows.last() {
            Some(last) if last.number == number => self.rows.len() - 1,
            Some(last) if last.number > number => {
                match self.rows.binary_search_by_key(&number, |row| row.number) {
                    Ok(at) => at,
                    Err(at) => {
                        self.rows.insert(at, Interval { number, counts: Counts::default() });
                        at
                    }
                }
            }
            _ => {
                self.rows.push(Interval { number, counts: Counts::default() });
                self.rows.len() - 1
            }
        };
        &mut self.rows[at].counts
    }

    fn double(&mut self) {
        self.length_ns = self.length_ns.saturating_mul(2);
        let mut halved: Vec<Interval> = Vec::with_capacity(self.rows.len());
        for row in self.rows.drain(..) {
            let number = row.number / 2;
            match halved.last_mut() {
                Some(last) if last.number == number => last.counts.add(&row.counts),
                _ => halved.push(Interval { number, counts: row.counts }),
            }
        }
        self.rows = halved;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_begin_at_the_first_frame_and_keep_order() {
        let mut intervals = Intervals::new(1_000_000_000);
        for time_ns in [500, 1_000_000_499, 1_000_000_500, 5_000_000_500, 400, 3_000_000_500] {
            intervals.at(time_ns).frame(1);
        }
        let rows: Vec<_> =
            intervals.rows().iter().map(|row| (row.number, row.counts.frames)).collect();
        assert_eq!(rows, [(0, 3), (1, 1), (3, 1), (5, 1)]);
        assert_eq!(intervals.duration_ns(), 5_000_000_000);
    }

    #[test]
    fn a_capture_of_years_fits() {
        let mut intervals = Intervals::new(1_000_000);
        for n in 0..300_000 {
            intervals.at(n * 1_000_000).frame(1);
        }
        intervals.at(i64::MAX).frame(1);
        assert!(intervals.rows().len() <= INTERVALS_MAX);
        let frames: u64 = intervals.rows().iter().map(|row| row.counts.frames).sum();
        assert_eq!(frames, 300_001);
    }
}
