//! Priorities (RFC 9218).

/// A response's priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Priority {
    /// 0, the most urgent, to 7.
    pub(crate) urgency: u8,
    /// The client can process it as it arrives, so it shares bandwidth with others of its urgency.
    pub(crate) incremental: bool,
}

/// RFC 9218 section 4.1.
pub(crate) const URGENCY_DEFAULT: u8 = 3;

impl Priority {
    /// Parses a Priority field's value (section 4).
    pub(crate) fn parse(value: &[u8]) -> Priority {
        Priority { urgency: URGENCY_DEFAULT, incremental: false }.joined(value)
    }

    /// Returns the priority with another line of the field joined to it, whose members replace
    /// earlier ones (RFC 9651 section 4.2). Unknown parameters, invalid values and a value that is
    /// not a dictionary are ignored, as RFC 9218 section 4 requires.
    pub(crate) fn joined(mut self, value: &[u8]) -> Priority {
        for member in value.split(|&byte| byte == b',') {
            // Parameters of a member have no meaning here.
            let member = member.split(|&byte| byte == b';').next().unwrap_or_default();
            match member.trim_ascii() {
                [b'u', b'=', digit @ b'0'..=b'7'] => self.urgency = digit - b'0',
                b"i" | b"i=?1" => self.incremental = true,
                b"i=?0" => self.incremental = false,
                _ => {}
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_that_are_known_and_valid_count() {
        for (value, urgency, incremental) in [
            ("", 3, false),
            ("u=0", 0, false),
            ("u=5, i", 5, true),
            ("i=?0,u=7", 7, false),
            ("i;x=1, u=2;y", 2, true),
            ("u=8", 3, false),
            ("u=-1, i=1, foo", 3, false),
            ("u=1, u=4", 4, false),
        ] {
            let priority = Priority::parse(value.as_bytes());
            assert_eq!(priority, Priority { urgency, incremental }, "{value:?}");
        }
        let joined = Priority::parse(b"u=5").joined(b"i").joined(b"u=2");
        assert_eq!(joined, Priority { urgency: 2, incremental: true });
    }
}
