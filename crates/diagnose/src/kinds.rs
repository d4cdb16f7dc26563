//! Findings of one kind as one entry: a fault of the network shows at every server, and an outage must not
//! fill a screen. `weir doctor` and `weir status` group alike.

use std::collections::HashMap;
use std::hash::Hash;

use crate::words;

/// Subjects that are named besides the worst finding; the rest is counted.
const NAMED_MAX: usize = 3;

/// Groups values by key, in order of each key's first value.
pub fn grouped<K: Clone + Eq + Hash, V>(
    items: impl IntoIterator<Item = (K, V)>,
) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    let mut places: HashMap<K, usize> = HashMap::new();
    for (key, value) in items {
        if let Some((_, values)) = places.get(&key).and_then(|place| groups.get_mut(*place)) {
            values.push(value);
        } else {
            places.insert(key.clone(), groups.len());
            groups.push((key, vec![value]));
        }
    }
    groups
}

/// Counts the findings of a kind besides the worst, and names the first few of their subjects: `2 more of
/// this kind: a and b`. `None` if there are no others. Empty subjects are counted only.
pub fn others(subjects: &[String]) -> Option<String> {
    if subjects.is_empty() {
        return None;
    }
    let count = format!("{} more of this kind", words::thousands(subjects.len() as u64));
    if subjects.iter().any(String::is_empty) {
        return Some(count);
    }
    Some(format!("{count}: {}", words::list(subjects, NAMED_MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_keep_the_order_of_their_first_values() {
        let groups = grouped([("b", 1), ("a", 2), ("b", 3)]);
        assert_eq!(groups, [("b", vec![1, 3]), ("a", vec![2])]);
    }

    #[test]
    fn the_first_few_others_are_named() {
        let of =
            |names: &[&str]| others(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["a"]).as_deref(), Some("1 more of this kind: a"));
        let five = of(&["a", "b", "c", "d", "e"]);
        assert_eq!(five.as_deref(), Some("5 more of this kind: a, b, c and 2 more"));
        assert_eq!(of(&["", ""]).as_deref(), Some("2 more of this kind"));
    }
}
