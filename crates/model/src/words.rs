//! Enums with words: one table with each variant, its comment and the word that configurations,
//! logs and the API use for it.
//!
//! [`words!`](crate::words!) generates the enum and its conversions from that table, so that a
//! parser, a schema and output code cannot disagree, and a new variant cannot be forgotten.
//! [`word_of!`](crate::word_of!) is for an enum some of whose variants have fields; it can also
//! generate an enum of the words alone, for code that parses a word before the rest.

/// A word that is not in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownWord {
    /// The known words, in order of the enum.
    pub known: &'static [&'static str],
}

impl std::fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "not one of {}", self.known.join(", "))
    }
}

impl std::error::Error for UnknownWord {}

/// An enum that has a table of words: what `words!` and `word_of!` make, for generic code.
pub trait Words {
    /// Every word, in order of the enum.
    const ALL_WORDS: &'static [&'static str];

    /// Returns the stable word of this variant.
    fn word(&self) -> &'static str;
}

/// Generates an enum of plain variants from a table `Variant = "word"`: the enum, `ALL`, `WORDS`,
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

            /// Returns the variant with exactly that word, or the known words.
            fn from_str(text: &str) -> Result<$name, $crate::UnknownWord> {
                match text {
                    $($word => Ok($name::$variant),)+
                    _ => Err($crate::UnknownWord { known: $name::WORDS }),
                }
            }
        }
    };
}

/// Gives an enum `WORDS` and `as_str` from a table `Variant = "word"`, where variants may have
/// fields. With `as Word`, it also generates the enum `Word`: the same variants without their
/// fields, with everything that [`words!`](crate::words!) generates. A parser matches on it, so
/// that a variant that it does not handle is a compile error.
#[macro_export]
macro_rules! word_of {
    ($(#[$of:meta])* $name:ident as $word_name:ident {
        $($variant:ident $(($($field:tt)+))? $({$($fields:tt)+})? = $word:literal,)+
    }) => {
        $crate::word_of! { $name {
            $($variant $(($($field)+))? $({$($fields)+})? = $word,)+
        } }

        $crate::words! {
            $(#[$of])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum $word_name {
                $(#[doc = concat!("`", $word, "`")] $variant = $word,)+
            }
        }
    };
    ($name:ident { $($variant:ident $(($($field:tt)+))? $({$($fields:tt)+})? = $word:literal,)+ }) => {
        impl $name {
            /// Every word, in order of the enum.
            pub const WORDS: &'static [&'static str] = &[$($word,)+];

            /// Returns the stable word: configuration, log, metric label, API.
            pub const fn as_str(&self) -> &'static str {
                match self {
                    $($name::$variant $(($($field)+))? $({$($fields)+})? => $word,)+
                }
            }
        }

        impl $crate::Words for $name {
            const ALL_WORDS: &'static [&'static str] = $name::WORDS;

            fn word(&self) -> &'static str {
                self.as_str()
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::{
        Administrative, Balance, BalanceWord, CheckWord, HashKey, HashOn, Health, ProtocolWord,
        TlsVersion, UnknownWord,
    };

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
    fn an_unknown_word_lists_the_known_ones() {
        let unknown: UnknownWord = "Ready".parse::<Administrative>().unwrap_err();
        assert_eq!(unknown.to_string(), "not one of ready, drain, maintenance");
    }

    #[test]
    fn a_variant_with_fields_has_a_word_too() {
        let hash = Balance::Hash(HashKey { on: HashOn::Client, load_factor: 1.0 });
        assert_eq!(hash.as_str(), "hash");
        assert_eq!(Balance::Random.as_str(), "random");
    }

    #[test]
    fn an_enum_with_fields_has_one_of_its_words() {
        assert_eq!(Balance::WORDS, BalanceWord::WORDS);
        for word in BalanceWord::ALL {
            assert_eq!(word.as_str().parse(), Ok(*word));
        }
        for word in CheckWord::ALL {
            assert_eq!(word.as_str().parse(), Ok(*word));
        }
        assert_eq!("tcp".parse(), Ok(ProtocolWord::Tcp));
    }

    #[test]
    fn what_a_hash_is_taken_of_is_written_as_in_a_configuration() {
        for (on, text) in [
            (HashOn::Client, "client"),
            (HashOn::Field("x-tenant".to_owned()), "header:x-tenant"),
            (HashOn::Cookie("session".to_owned()), "cookie:session"),
            (HashOn::Path, "path"),
            (HashOn::Parameter("id".to_owned()), "query:id"),
        ] {
            assert_eq!(on.to_string(), text);
        }
    }
}
