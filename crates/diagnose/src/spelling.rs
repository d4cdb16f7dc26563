//! What was probably meant by a name that does not exist.

/// Names further away than this share of their length are not suggested.
const SIMILARITY_MIN: f64 = 0.75;

/// The candidate that is nearest to `name`, if one is near.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (strsim::normalized_damerau_levenshtein(name, candidate), candidate))
        .filter(|&(similarity, _)| similarity >= SIMILARITY_MIN)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn only_what_is_near_is_suggested() {
        let names = ["net.core.somaxconn", "net.core.rmem_max", "net.core.wmem_max"];
        assert_eq!(nearest("net.core.somaxcon", names), Some("net.core.somaxconn"));
        assert_eq!(nearest("net.core.rmem_maxx", names), Some("net.core.rmem_max"));
        assert_eq!(nearest("kernel.panic", names), None);
    }
}
