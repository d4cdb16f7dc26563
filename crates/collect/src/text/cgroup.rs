//! Parses the files of a cgroup's CPU controller (v1 and v2).

use diagnose::facts::{Cgroup, CgroupVersion, Known};

/// What a cgroup's files say; a file that could not be read, why.
pub(crate) struct Files<'a> {
    /// v2: `cpu.max`. v1: `cpu.cfs_quota_us`.
    pub(crate) quota: Result<&'a str, &'a str>,
    /// v1: `cpu.cfs_period_us`.
    pub(crate) period: Result<&'a str, &'a str>,
    /// `cpu.stat`.
    pub(crate) stat: Result<&'a str, &'a str>,
}

/// Puts together what they say.
pub(crate) fn read(version: CgroupVersion, files: &Files<'_>) -> Cgroup {
    let (quota_us, period_us) = match version {
        CgroupVersion::V2 => match files.quota {
            // `max 100000` or `20000 100000`.
            Ok(text) => {
                let mut words = text.split_ascii_whitespace();
                let quota = match words.next() {
                    Some("max") => Known::Is(None),
                    word => known(word).map(Some),
                };
                (quota, known(words.next()))
            }
            Err(why) => (Known::unknown(why), Known::unknown(why)),
        },
        CgroupVersion::V1 => (
            match files.quota.map(str::trim) {
                Ok("-1") => Known::Is(None),
                quota => number(quota).map(Some),
            },
            number(files.period.map(str::trim)),
        ),
    };
    let stat = |name: &str| match files.stat {
        Ok(text) => known(text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))),
        Err(why) => Known::unknown(why),
    };
    Cgroup {
        version,
        quota_us,
        period_us,
        periods: stat("nr_periods"),
        throttled_periods: stat("nr_throttled"),
        throttled_us: match version {
            CgroupVersion::V2 => stat("throttled_usec"),
            CgroupVersion::V1 => stat("throttled_time").map(|nanoseconds| nanoseconds / 1000),
        },
        ..Cgroup::default()
    }
}

/// Whether anything is to be said about it: it has a quota, or has been throttled.
pub(crate) fn is_limited(cgroup: &Cgroup) -> bool {
    matches!(cgroup.quota_us, Known::Is(Some(_)))
        || cgroup.throttled_periods.get().is_some_and(|&count| count > 0)
}

fn known(word: Option<&str>) -> Known<u64> {
    match word.map(|word| (word, word.parse())) {
        Some((_, Ok(number))) => Known::Is(number),
        Some((word, Err(_))) => Known::unknown(format!("`{word}` is not a number")),
        None => Known::unknown("the kernel does not tell"),
    }
}

fn number(text: Result<&str, &str>) -> Known<u64> {
    match text {
        Ok(text) => known(Some(text)),
        Err(why) => Known::unknown(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_interface_keeps_quota_and_period_in_one_file() {
        let files = Files {
            quota: Ok("20000 100000\n"),
            period: Err("not of this interface"),
            stat: Ok(
                "usage_usec 900\nuser_usec 1\nnr_periods 40\nnr_throttled 12\nthrottled_usec 5500\n",
            ),
        };
        let cgroup = read(CgroupVersion::V2, &files);
        assert_eq!(cgroup.quota_us, Known::Is(Some(20_000)));
        assert_eq!(cgroup.period_us, Known::Is(100_000));
        assert_eq!(cgroup.periods, Known::Is(40));
        assert_eq!(
            (cgroup.throttled_periods.get(), cgroup.throttled_us.get()),
            (Some(&12), Some(&5500))
        );
        assert!(is_limited(&cgroup));
    }

    #[test]
    fn the_first_interface_counts_in_nanoseconds() {
        let files = Files {
            quota: Ok("50000\n"),
            period: Ok("100000\n"),
            stat: Ok("nr_periods 3\nnr_throttled 2\nthrottled_time 7000999\n"),
        };
        let cgroup = read(CgroupVersion::V1, &files);
        assert_eq!(cgroup.quota_us, Known::Is(Some(50_000)));
        assert_eq!(cgroup.throttled_us, Known::Is(7_000));
    }

    #[test]
    fn no_quota_is_known_and_an_unreadable_one_is_not() {
        let none = |quota| Files { quota, period: Ok("100000"), stat: Ok("nr_throttled 0\n") };
        for (version, text) in [(CgroupVersion::V1, "-1\n"), (CgroupVersion::V2, "max 100000\n")] {
            let cgroup = read(version, &none(Ok(text)));
            assert_eq!(cgroup.quota_us, Known::Is(None), "{text}");
            assert!(!is_limited(&cgroup));
        }
        let cgroup = read(CgroupVersion::V2, &none(Err("no permission")));
        assert_eq!(cgroup.quota_us.as_result(), Err("no permission"));
        assert_eq!(cgroup.periods.as_result(), Err("the kernel does not tell"));
        let odd = read(CgroupVersion::V2, &none(Ok("many few")));
        assert_eq!(odd.quota_us.as_result(), Err("`many` is not a number"));
    }
}
