//! The jobs that wait for a thread, and which of them is next: plain data without threads or locks.
//!
//! Authentications take turns, and within each the clients do, so what one client sends delays
//! others by one job for each of their own. A client has a bounded number of places. If the queue is
//! full, the client or the authentication with the most jobs gives one up for one that has fewer.
//!
//! All steps search the whole queue, which is short.

use std::collections::VecDeque;

#[cfg(test)]
mod tests;

/// The most jobs that wait.
pub(super) const JOBS_MAX: usize = 64;
/// The most jobs of one client that wait, over all authentications.
pub(super) const CLIENT_JOBS_MAX: usize = JOBS_MAX / 8;

/// With whom a job shares its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// A hash of the authentication's name.
    pub(crate) authentication: u64,
    /// The client's key in rate limits, see [`decide::rate::rate_key`].
    pub(crate) client: u64,
}

/// Why a job may not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// Its client has [`CLIENT_JOBS_MAX`] waiting jobs.
    Client,
    /// [`JOBS_MAX`] jobs wait, and no other client or authentication has clearly more of them.
    Queue,
}

/// Waiting jobs.
#[derive(Debug)]
pub(super) struct Queue<J> {
    /// In the order of arrival.
    jobs: Vec<(Place, J)>,
    /// The authentications of the jobs, in the order of their turns.
    authentications: VecDeque<u64>,
    /// The places of the jobs, in the order of their turns within each authentication.
    places: VecDeque<Place>,
}

impl<J> Queue<J> {
    pub(super) fn new() -> Queue<J> {
        Queue {
            jobs: Vec::with_capacity(JOBS_MAX),
            authentications: VecDeque::new(),
            places: VecDeque::new(),
        }
    }

    /// Returns whether a job of this client is refused now, or has to displace another.
    pub(super) fn is_full_for(&self, client: u64) -> bool {
        self.jobs.len() >= JOBS_MAX || self.count_of_client(client) >= CLIENT_JOBS_MAX
    }

    /// Adds a job. Returns the job that gave way to it, if one had to.
    ///
    /// # Errors
    /// The job may not wait; nothing has changed.
    pub(super) fn push(&mut self, place: Place, job: J) -> Result<Option<J>, Full> {
        if self.count_of_client(place.client) >= CLIENT_JOBS_MAX {
            return Err(Full::Client);
        }
        let displaced = if self.jobs.len() >= JOBS_MAX {
            let at = self.displaced_by(place).ok_or(Full::Queue)?;
            Some(self.remove(at))
        } else {
            None
        };
        self.jobs.push((place, job));
        if !self.authentications.contains(&place.authentication) {
            self.authentications.push_back(place.authentication);
        }
        if !self.places.contains(&place) {
            self.places.push_back(place);
        }
        Ok(displaced)
    }

    /// Removes and returns the job whose turn it is.
    pub(super) fn take(&mut self) -> Option<J> {
        let authentication = self.authentications.pop_front()?;
        // Each of the three lists has what the others have.
        let at = self.places.iter().position(|place| place.authentication == authentication)?;
        let place = self.places.remove(at)?;
        let oldest = self.jobs.iter().position(|(of, _)| *of == place)?;
        let (_, job) = self.jobs.remove(oldest);
        // What has more jobs goes to the end of its round.
        if self.count(|of| of.authentication == authentication) > 0 {
            self.authentications.push_back(authentication);
        }
        if self.count(|of| of == place) > 0 {
            self.places.push_back(place);
        }
        Some(job)
    }

    /// Removes the jobs for which `is_wanted` is false. Those left keep their turns.
    pub(super) fn retain(&mut self, mut is_wanted: impl FnMut(&J) -> bool) {
        self.jobs.retain(|(_, job)| is_wanted(job));
        self.forget_empty();
    }

    /// Returns the position of the job that gives way to a new one.
    ///
    /// A client or an authentication gives way only if it has at least two more jobs than the newcomer,
    /// so that two of them cannot displace each other in turn, and the only job of a client never makes
    /// room for another client of its authentication.
    fn displaced_by(&self, newcomer: Place) -> Option<usize> {
        let of_client = self.count_of_client(newcomer.client);
        let of_authentication = self.count(|of| of.authentication == newcomer.authentication);
        let newest_of_largest = |count: &dyn Fn(Place) -> usize, own: usize| {
            let counted = self.jobs.iter().enumerate().map(|(at, (of, _))| (count(*of), at));
            let (most, newest) = counted.max()?;
            (most >= own + 2).then_some(newest)
        };
        newest_of_largest(&|of| self.count_of_client(of.client), of_client).or_else(|| {
            let count = |of: Place| self.count(|other| other.authentication == of.authentication);
            newest_of_largest(&count, of_authentication)
        })
    }

    fn count_of_client(&self, client: u64) -> usize {
        self.count(|of| of.client == client)
    }

    fn count(&self, is_counted: impl Fn(Place) -> bool) -> usize {
        self.jobs.iter().filter(|(of, _)| is_counted(*of)).count()
    }

    fn remove(&mut self, at: usize) -> J {
        let (_, job) = self.jobs.remove(at);
        self.forget_empty();
        job
    }

    /// Forgets the turns of those that have no jobs left.
    fn forget_empty(&mut self) {
        let jobs = &self.jobs;
        self.authentications.retain(|one| jobs.iter().any(|(of, _)| of.authentication == *one));
        self.places.retain(|place| jobs.iter().any(|(of, _)| of == place));
    }
}
