//! Lists that share most of their elements, such as the routes of two configurations of which the second is a change of the
//! first.

use std::collections::HashSet;
use std::sync::Arc;

/// The elements that only one of two lists has.
#[derive(Debug)]
pub struct Differing<'a, T> {
    /// Those of the first list.
    pub gone: Vec<&'a Arc<T>>,
    /// Those of the second list.
    pub new: Vec<&'a Arc<T>>,
}

/// Returns the elements that are not shared: the same values at another place in memory are other elements. What the lists
/// have in common at their ends costs a comparison of pointers.
pub fn differing<'a, T>(before: &'a [Arc<T>], now: &'a [Arc<T>]) -> Differing<'a, T> {
    let is_same = |(one, other): &(&Arc<T>, &Arc<T>)| Arc::ptr_eq(one, other);
    let start = before.iter().zip(now).take_while(is_same).count();
    let (before, now) = (&before[start..], &now[start..]);
    let end = before.iter().rev().zip(now.iter().rev()).take_while(is_same).count();
    let (before, now) = (&before[..before.len() - end], &now[..now.len() - end]);
    let places = |list: &[Arc<T>]| -> HashSet<*const T> { list.iter().map(Arc::as_ptr).collect() };
    let only = |of: &'a [Arc<T>], without: &[Arc<T>]| -> Vec<&'a Arc<T>> {
        if of.is_empty() || without.is_empty() {
            return of.iter().collect();
        }
        let without = places(without);
        of.iter().filter(|one| !without.contains(&Arc::as_ptr(one))).collect()
    };
    Differing { gone: only(before, now), new: only(now, before) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_told_apart_by_their_places() {
        let all: Vec<Arc<char>> = "abcdef".chars().map(Arc::new).collect();
        let list = |text: &str| -> Vec<Arc<char>> {
            let at = |letter: char| text.find(letter).map(|_| letter as usize - 'a' as usize);
            text.chars().filter_map(at).map(|at| Arc::clone(&all[at])).collect()
        };
        for (before, now, gone, new) in [
            ("", "", "", ""),
            ("", "ab", "", "ab"),
            ("ab", "", "ab", ""),
            ("abcd", "abcd", "", ""),
            ("abd", "abcd", "", "c"),
            ("abcd", "abd", "c", ""),
            ("abcd", "aefd", "bc", "ef"),
            ("abcd", "dcba", "", ""),
            ("abc", "bcd", "a", "d"),
        ] {
            let (before, now) = (list(before), list(now));
            let found = differing(&before, &now);
            let shown = |all: &[&Arc<char>]| all.iter().map(|one| ***one).collect::<String>();
            assert_eq!((shown(&found.gone), shown(&found.new)), (gone.into(), new.into()));
        }
        let other = [Arc::new('a')];
        assert_eq!(differing(&all[..1], &other).new.len(), 1);
    }
}
