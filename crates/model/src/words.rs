//! One table of words per enum: the variant, its comment and the word that configurations, logs and
//! the API use for it.
//!
//! [`words!`](crate::words!) makes the enum and what can be asked of it from that table, so that a
//! reader, a schema and whatever prints a value can't disagree, and a new variant can't be forgotten.
//! [`word_of!`](crate::word_of!) is for an enum some of whose variants hold more.

/// A word that is none of the table's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownWord {
    /// The words that are known, in order of the enum.
    pub known: &'static [&'static str],
}

impl std::fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "not one of {}", self.known.join(", "))
    }
}

impl std::error::Error for UnknownWord {}

/// Makes an enum of plain variants from a table `Variant = "word"`: the enum, `ALL`, `WORDS`,
/// `as_str` and `FromStr`. The words are stable: metrics, logs and the API use them.
#[macro_export]
macro_rules! words {
    (
        $(#[$of:meta])*
        pub enum $name:ident {
            $($(#[$doc:meta])+ $variant:ident = $word:literal,)+
        }
    ) => {
        $(#[$of])*
        pub enum $name { $($(#[$doc])+ $variant,)+ }

        impl $name {
            /// Every variant, in order of the enum.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];
        }

        $crate::word_of! { $name { $($variant = $word,)+ } }

        impl std::str::FromStr for $name {
            type Err = $crate::UnknownWord;

            /// The variant of exactly that word, or the words that there are.
            fn from_str(text: &str) -> Result<$name, $crate::UnknownWord> {
                match text {
                    $($word => Ok($name::$variant),)+
                    _ => Err($crate::UnknownWord { known: $name::WORDS }),
                }
            }
        }
    };
}

/// Gives an enum `WORDS` and `as_str` from a table `Variant = "word"`, where variants may hold
/// fields.
#[macro_export]
macro_rules! word_of {
    ($name:ident { $($variant:ident $(($($field:tt)+))? $({$($fields:tt)+})? = $word:literal,)+ }) => {
        impl $name {
            /// Every word, in order of the enum.
            pub const WORDS: &'static [&'static str] = &[$($word,)+];

            /// The stable word: configuration, log, metric label, API.
            pub const fn as_str(&self) -> &'static str {
                match self {
                    $($name::$variant $(($($field)+))? $({$($fields)+})? => $word,)+
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::{Administrative, Balance, HashKey, HashOn, Health, TlsVersion, UnknownWord};

    #[test]
    fn every_word_reads_back_as_its_variant() {
        for health in Health::ALL {
            assert_eq!(health.as_str().parse(), Ok(*health));
        }
        for version in TlsVersion::ALL {
            assert_eq!(version.as_str().parse(), Ok(*version));
        }
    }

    #[test]
    fn an_unknown_word_says_which_there_are() {
        let unknown: UnknownWord = "Ready".parse::<Administrative>().unwrap_err();
        assert_eq!(unknown.to_string(), "not one of ready, drain, maintenance");
    }

    #[test]
    fn a_variant_with_fields_has_a_word_too() {
        assert_eq!(Balance::WORDS.last(), Some(&"hash"));
        for word in Balance::WORDS {
            let key = HashKey { on: HashOn::Client, load_factor: 1.0 };
            assert_eq!(Balance::from_word(word, key).map(|read| read.as_str()), Some(*word));
        }
    }
}
