//! The loads of services: every member measures its own and sends it to all others, so that each can add them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fleet::StartId;
use model::Moment;
use scaling::{Load, wire};
use tokio::sync::Notify;

/// How old a load of another member may be: it sends one every five seconds, and two may be lost.
const FRESH: Duration = Duration::from_secs(16);

/// The latest loads of this process, and those of the other members.
#[derive(Debug, Default)]
pub struct Loads {
    state: Mutex<State>,
    news: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    own: HashMap<Arc<str>, Load>,
    /// Whether `own` has not been sent yet.
    are_new: bool,
    others: HashMap<StartId, HashMap<Arc<str>, (Moment, Load)>>,
}

impl Loads {
    /// Returns what is notified when there is something to send.
    pub(crate) fn news(&self) -> &Arc<Notify> {
        &self.news
    }

    /// Sets the loads of this process, by service. Loads of other services are not taken from others.
    pub fn set_own(&self, own: HashMap<Arc<str>, Load>) {
        let mut state = self.state();
        state.are_new = !own.is_empty();
        state.own = own;
        let State { own, others, .. } = &mut *state;
        for of_member in others.values_mut() {
            of_member.retain(|name, _| own.contains_key(name));
        }
        if state.are_new {
            self.news.notify_one();
        }
    }

    /// Returns the loads of a service that other members have sent lately, one for each of them.
    pub fn of_others(&self, service: &str, now: Moment) -> Vec<Load> {
        let state = self.state();
        let of_service = state.others.values().filter_map(|member| member.get(service));
        of_service.filter(|(at, _)| now.since(*at) <= FRESH).map(|(_, load)| *load).collect()
    }

    /// Returns messages with the loads of this process if they have not been sent.
    pub(super) fn take(&self) -> Vec<Vec<u8>> {
        let mut state = self.state();
        if !std::mem::take(&mut state.are_new) {
            return Vec::new();
        }
        wire::write(state.own.iter().map(|(name, load)| (&**name, *load)))
    }

    /// Takes a message of a member. Returns whether it is one.
    pub(super) fn on_message(&self, from: StartId, bytes: &[u8], now: Moment) -> bool {
        let Ok(loads) = wire::read(bytes) else { return false };
        let mut state = self.state();
        let State { own, others, .. } = &mut *state;
        for (name, load) in loads {
            let Some((name, _)) = own.get_key_value(&*name) else { continue };
            others.entry(from).or_default().insert(Arc::clone(name), (now, load));
        }
        true
    }

    /// Forgets all members but these.
    pub(super) fn retain(&self, is_member: impl Fn(StartId) -> bool) {
        self.state().others.retain(|member, _| is_member(*member));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: StartId = StartId([1; StartId::BYTES]);
    const TWO: StartId = StartId([2; StartId::BYTES]);

    fn load(arrivals: f64) -> Load {
        Load { arrivals, ..Load::default() }
    }

    fn at(seconds: u64) -> Moment {
        Moment::ZERO + Duration::from_secs(seconds)
    }

    fn arrivals(loads: &Loads, service: &str, second: u64) -> f64 {
        loads.of_others(service, at(second)).into_iter().sum::<Load>().arrivals
    }

    #[test]
    fn loads_of_others_are_added_while_they_are_fresh_and_known() {
        let [here, there] = [(); 2].map(|()| Loads::default());
        assert!(there.take().is_empty());
        there.set_own([("a".into(), load(3.0)), ("unknown".into(), load(9.0))].into());
        here.set_own([("a".into(), load(1.0)), ("b".into(), load(1.0))].into());
        let messages = there.take();
        assert!(there.take().is_empty(), "sent once");
        for message in &messages {
            assert!(here.on_message(ONE, message, at(100)));
            assert!(here.on_message(TWO, message, at(110)));
        }
        assert!(!here.on_message(ONE, b"\0", at(100)));
        assert!((arrivals(&here, "a", 111) - 6.0).abs() < 1e-6);
        assert!((arrivals(&here, "a", 120) - 3.0).abs() < 1e-6, "one is old");
        assert!(here.of_others("unknown", at(111)).is_empty());
        here.retain(|member| member == ONE);
        assert!(here.of_others("a", at(120)).is_empty());
        for message in &messages {
            here.on_message(ONE, message, at(120));
        }
        here.set_own([("b".into(), load(1.0))].into());
        assert!(here.of_others("a", at(120)).is_empty(), "it is no service any more");
    }
}
