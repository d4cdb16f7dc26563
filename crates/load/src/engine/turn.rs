//! Weighted round robin over targets: each in proportion to its weight, evenly mixed. Pure.

/// Smooth weighted round-robin: the same order every time.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    weights: Vec<i64>,
    current: Vec<i64>,
    total: i64,
}

impl Turn {
    /// Of weights, at least one of them above 0.
    pub(crate) fn new(weights: impl IntoIterator<Item = u32>) -> Turn {
        let weights: Vec<i64> = weights.into_iter().map(i64::from).collect();
        let total = weights.iter().sum();
        Turn { current: vec![0; weights.len()], weights, total }
    }

    /// Whose turn it is.
    pub(crate) fn next(&mut self) -> usize {
        if self.weights.len() == 1 {
            return 0;
        }
        let mut best = 0;
        for index in 0..self.weights.len() {
            self.current[index] += self.weights[index];
            if self.current[index] > self.current[best] {
                best = index;
            }
        }
        self.current[best] -= self.total;
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_share_and_they_are_mixed() {
        let mut turn = Turn::new([5, 1, 1]);
        let order: Vec<usize> = (0..7).map(|_| turn.next()).collect();
        assert_eq!(order, [0, 0, 1, 0, 2, 0, 0]);
        let mut turn = Turn::new([3, 0, 1]);
        let order: Vec<usize> = (0..400).map(|_| turn.next()).collect();
        assert_eq!(order.iter().filter(|&&n| n == 0).count(), 300);
        assert!(!order.contains(&1));
    }
}
