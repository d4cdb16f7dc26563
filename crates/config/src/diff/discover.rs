//! Changes of where servers, or members of the fleet, come from.

use model::units::show_duration;
use model::{Discover, Hold, ServerSource};

use super::{Words, or, time, yes_no};

/// Adds the changes of the source at `key`: `discover`, or with the name of its table.
pub(super) fn words(key: &str, old: Option<&Discover>, new: Option<&Discover>, words: &mut Words) {
    words.value(key, &old, &new, |discover| or(discover.map(|discover| &discover.source), "none"));
    let (Some(old), Some(new)) = (old, new) else { return };
    let Discover { source, port, limits, hold: Hold { share, max }, saved, kept_max } = old;
    let below = |name: &str| format!("{key}.{name}");
    if let (
        ServerSource::HttpSd { peer, interval },
        ServerSource::HttpSd { peer: new_peer, interval: new_interval },
    ) = (source, &new.source)
    {
        words.hidden(&below("ca"), &peer.ca, &new_peer.ca);
        words.value(&below("interval"), interval, new_interval, time);
    }
    words.value(&below("port"), port, &new.port, |port| or(port.as_ref(), "the source's"));
    words.value(&below("in_flight"), limits, &new.limits, |it| it.as_str().to_owned());
    words.value(&below("hold_share"), share, &new.hold.share, f64::to_string);
    words.value(&below("hold_max"), max, &new.hold.max, time);
    words.value(&below("saved"), saved, &new.saved, yes_no);
    words.value(&below("kept_max"), kept_max, &new.kept_max, |time| {
        or(time.map(show_duration), "without end")
    });
}
