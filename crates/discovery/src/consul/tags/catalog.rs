//! The tags that are about routes, for each service in the answer. No other tags are kept.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use model::RouteTagFormat;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::route::{SERVICE_TAGS_MAX, TAG_BYTES_MAX};
use super::{fabio, traefik, weir};
use crate::row::reason;

/// The tags of a service, without repetitions.
#[derive(Default)]
pub(super) struct Tags {
    /// By format, then by text; at most [`SERVICE_TAGS_MAX`], the first ones in this order. So the order in the
    /// answer, which Consul does not define, has no effect.
    pub(super) kept: BTreeSet<Tag>,
    /// How many more there are.
    pub(super) excess: u64,
    /// The first one of those in the same order.
    pub(super) excess_example: Option<Tag>,
}

/// A tag.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tag {
    pub(super) format: RouteTagFormat,
    /// As it was written. If it is longer than [`TAG_BYTES_MAX`], its first bytes, which are still longer.
    pub(super) text: String,
}

/// Reads an answer: all its services with the tags that are about routes in one of `formats`.
///
/// # Errors
/// It is not of this format. One line, bounded and escaped.
pub(super) fn read(
    body: &[u8],
    formats: &[RouteTagFormat],
) -> Result<BTreeMap<String, Tags>, String> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let services = Services { formats }.deserialize(&mut json);
    let services = services.and_then(|services| json.end().map(|()| services));
    services.map_err(|error| reason(&error.to_string()))
}

impl Tags {
    fn add(&mut self, tag: Tag) {
        self.kept.insert(tag);
        if self.kept.len() > SERVICE_TAGS_MAX {
            self.excess += 1;
            let last = self.kept.pop_last();
            self.excess_example = self.excess_example.take().into_iter().chain(last).min();
        }
    }
}

impl Tag {
    /// Returns the tag, if it is about routes.
    fn of(text: &str, formats: &[RouteTagFormat]) -> Option<Tag> {
        let begin = text.trim_start();
        let is_of = |format: &RouteTagFormat| match format {
            RouteTagFormat::Weir => begin.starts_with(weir::PREFIX),
            RouteTagFormat::Fabio => begin.starts_with(fabio::PREFIX),
            RouteTagFormat::Traefik => traefik::is_about_routes(begin),
        };
        let format = *formats.iter().find(|format| is_of(format))?;
        let end = (TAG_BYTES_MAX + 1..text.len()).find(|at| text.is_char_boundary(*at));
        let text = end.and_then(|end| text.get(..end)).unwrap_or(text);
        Some(Tag { format, text: text.to_owned() })
    }

    /// Returns whether it is longer than a tag may be.
    pub(super) fn is_too_long(&self) -> bool {
        self.text.len() > TAG_BYTES_MAX
    }
}

struct Services<'f> {
    formats: &'f [RouteTagFormat],
}

impl<'de> DeserializeSeed<'de> for Services<'_> {
    type Value = BTreeMap<String, Tags>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Services<'_> {
    type Value = BTreeMap<String, Tags>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("services with their tags")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut services: Self::Value = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            let mut tags = services.remove(&name).unwrap_or_default();
            map.next_value_seed(TagList { formats: self.formats, tags: &mut tags })?;
            services.insert(name, tags);
        }
        Ok(services)
    }
}

/// Adds the tags of a list.
struct TagList<'f, 't> {
    formats: &'f [RouteTagFormat],
    tags: &'t mut Tags,
}

impl<'de> DeserializeSeed<'de> for TagList<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TagList<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of tags")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(text) = list.next_element::<Cow<'_, str>>()? {
            if let Some(tag) = Tag::of(&text, self.formats) {
                self.tags.add(tag);
            }
        }
        Ok(())
    }

    /// `null` is an empty list in Go.
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
