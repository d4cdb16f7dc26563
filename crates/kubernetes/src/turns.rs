//! The namespaces take turns where there is a limit: users of one must not use up what others need. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Orders objects: first one of each namespace, then a second one of each, and so on. `taken`: how many each namespace
/// has already.
pub(crate) fn in_turns<T>(
    all: impl IntoIterator<Item = T>,
    namespace: impl Fn(&T) -> &Arc<str>,
    mut taken: BTreeMap<Arc<str>, usize>,
) -> impl Iterator<Item = T> {
    let numbered = all.into_iter().map(|one| {
        let number = taken.entry(Arc::clone(namespace(&one))).or_default();
        *number += 1;
        (*number, one)
    });
    let mut numbered: Vec<_> = numbered.collect();
    numbered.sort_by_key(|(number, _)| *number);
    numbered.into_iter().map(|(_, one)| one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_namespace_has_its_turn() {
        let all = ["a1", "a2", "a3", "b1", "b2", "c1"];
        let all = all.map(|name| (Arc::<str>::from(&name[..1]), name));
        let order = |taken| {
            let names = in_turns(all.clone(), |(namespace, _)| namespace, taken);
            names.map(|(_, name)| name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(order(BTreeMap::new()), "a1 b1 c1 a2 b2 a3");
        assert_eq!(order([("a".into(), 1), ("c".into(), 2)].into()), "b1 a1 b2 a2 c1 a3");
    }
}
