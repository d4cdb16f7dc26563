//! What differs in the fleet.

use std::sync::Arc;

use model::Fleet;

use super::{Words, discover, joined, or};

pub(super) fn words(before: Option<&Fleet>, after: Option<&Fleet>, words: &mut Words) {
    words.value("fleet.address", &before, &after, |fleet| {
        or(fleet.map(|fleet| fleet.address), "no fleet")
    });
    let (Some(before), Some(after)) = (before, after) else { return };
    let Fleet { address: _, advertise, name, host, members, discover, keys, probers, tls } = before;
    let or_machine = |text: &Option<Arc<str>>| or(text.as_ref(), "the machine's");
    words.value("fleet.advertise", advertise, &after.advertise, ToString::to_string);
    words.value("fleet.name", name, &after.name, or_machine);
    words.value("fleet.host", host, &after.host, or_machine);
    words.value("fleet.members", members, &after.members, |members| {
        if members.is_empty() { "none".to_owned() } else { joined(members) }
    });
    discover::words("fleet.discover", discover.as_deref(), after.discover.as_deref(), words);
    words.hidden("fleet.keys", keys, &after.keys);
    words.value("fleet.probers", probers, &after.probers, u8::to_string);
    super::tls::fleet(tls.as_ref(), after.tls.as_ref(), words);
}
