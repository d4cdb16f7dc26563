//! A set of response statuses, as a configuration writes it: `200`, `"5xx"`, `"500-504"`.

use std::fmt;

/// A set of final statuses: inclusive ranges, sorted, neither overlapping nor adjacent, so that equal
/// sets are equal however they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StatusSet(pub Vec<(u16, u16)>);

/// Sorts and merges ranges.
impl FromIterator<(u16, u16)> for StatusSet {
    fn from_iter<T: IntoIterator<Item = (u16, u16)>>(ranges: T) -> StatusSet {
        let mut ranges: Vec<_> = ranges.into_iter().collect();
        ranges.sort_unstable();
        let mut merged: Vec<(u16, u16)> = Vec::new();
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        StatusSet(merged)
    }
}

impl StatusSet {
    /// Returns whether `status` is in the set.
    pub fn contains(&self, status: u16) -> bool {
        self.0.iter().any(|&(low, high)| (low..=high).contains(&status))
    }

    /// Returns whether every status of `other` is in this set.
    pub fn covers(&self, other: &StatusSet) -> bool {
        let is_within =
            |&(low, high): &(u16, u16)| self.0.iter().any(|&(from, to)| from <= low && high <= to);
        other.0.iter().all(is_within)
    }
}

/// Writes the ranges, separated by spaces: `404 500-599`.
impl fmt::Display for StatusSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, &(low, high)) in self.0.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            if low == high {
                write!(f, "{space}{low}")?;
            } else {
                write!(f, "{space}{low}-{high}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sets_are_equal_however_written() {
        let merged = |ranges: &[(u16, u16)]| ranges.iter().copied().collect::<StatusSet>().0;
        assert_eq!(merged(&[(204, 204), (200, 202), (203, 203)]), [(200, 204)]);
        assert_eq!(merged(&[(200, 399), (204, 204)]), [(200, 399)]);
        assert_eq!(merged(&[(404, 404), (200, 200)]), [(200, 200), (404, 404)]);
    }

    #[test]
    fn sets_contain_and_cover_what_their_ranges_do() {
        let set = StatusSet(vec![(404, 404), (500, 599)]);
        assert!([404, 500, 599].into_iter().all(|status| set.contains(status)));
        assert!(![403, 405, 499].into_iter().any(|status| set.contains(status)));
        assert!(set.covers(&StatusSet(vec![(404, 404), (502, 504)])));
        assert!(!set.covers(&StatusSet(vec![(404, 405)])));
        assert!(!set.covers(&StatusSet(vec![(499, 500)])));
        assert_eq!(set.to_string(), "404 500-599");
    }
}
