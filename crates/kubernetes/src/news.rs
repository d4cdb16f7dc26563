//! What requests and watches learn of each other about the API server. Numbers that only grow, so that nothing is missed by
//! a task that does something else at that moment. Pure.
//!
//! A *generation* begins when an API server answers after an outage, and when one has older data than before. What was
//! read in an earlier generation is checked or listed again.

/// See above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// The newest generation.
    pub(crate) generation: u64,
    /// The generation in which older data were found last. What was listed before is of another history.
    history: u64,
    /// How often waits after failures were ended.
    pub(crate) retries: u64,
}

/// What a watch does whose objects were last read in a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Nothing has happened since.
    Current,
    /// There was an outage: check that the server's version is not older.
    Unchecked,
    /// The server has older data: list again, whatever its version is by now.
    Outdated,
}

impl News {
    /// Notes that an API server answers after an outage.
    pub(crate) fn recovered(&mut self) {
        self.generation += 1;
        self.retries += 1;
    }

    /// Notes that the server's version is older than one that was known in the generation `known_at`. Returns whether that
    /// is news: the versions of a history that is known to be over say nothing.
    pub(crate) fn older_data(&mut self, known_at: u64) -> bool {
        let is_news = known_at >= self.history;
        if is_news {
            self.generation += 1;
            self.history = self.generation;
        }
        is_news
    }

    /// Returns what is to be done with objects that were last read in the generation `known_at`.
    pub(crate) fn standing(self, known_at: u64) -> Standing {
        if known_at < self.history {
            Standing::Outdated
        } else if known_at < self.generation {
            Standing::Unchecked
        } else {
            Standing::Current
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_data_make_all_lists_necessary_and_an_outage_all_checks() {
        let mut news = News::default();
        assert_eq!(news.standing(0), Standing::Current);
        news.recovered();
        assert_eq!((news.standing(0), news.standing(1)), (Standing::Unchecked, Standing::Current));
        // One watch finds older data. Another one that was checked in this generation has to list, too.
        assert!(news.older_data(1));
        assert_eq!((news.standing(1), news.standing(2)), (Standing::Outdated, Standing::Current));
        // All others find the same: that is no reason to list everything once more.
        assert!(!news.older_data(1) && !news.older_data(0));
        assert_eq!(news.generation, 2);
        news.recovered();
        assert_eq!((news.standing(1), news.standing(2)), (Standing::Outdated, Standing::Unchecked));
        assert!(news.older_data(2), "restored once more");
    }
}
