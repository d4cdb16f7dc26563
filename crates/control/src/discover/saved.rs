//! The file with the last servers of all sources, for a start while a source does not answer.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use discovery::consul::tags::SavedRoute;
use discovery::{Saved, SavedService};
use model::Moment;
use os::plain_file;

/// Changes are written this long after the first of them, so that many need one write.
const WRITE_AFTER: Duration = Duration::from_secs(5);
/// Maximum size of the file that is read: 100,000 servers take a fifth of it.
const FILE_MAX_BYTES: u64 = 128 << 20;

/// The file, and what it held when the process started.
pub(super) struct StateFile {
    path: Option<PathBuf>,
    saved: Saved,
    write_at: Option<Moment>,
    progress: Arc<Progress>,
}

#[derive(Default)]
struct Progress {
    /// Locked while the file is written.
    file: Mutex<()>,
    /// A thread writes the file, or is about to.
    is_writing: AtomicBool,
    /// The last write failed; that has been logged.
    has_failed: AtomicBool,
}

impl StateFile {
    /// Reads the file, if there is one.
    pub(super) fn read(path: Option<PathBuf>) -> StateFile {
        let saved = path.as_deref().map(read).unwrap_or_default();
        StateFile { path, saved, write_at: None, progress: Arc::default() }
    }

    /// Returns what an earlier process has saved of a service.
    pub(super) fn saved(&self, service: &str) -> Option<&SavedService> {
        self.saved.services.get(service)
    }

    /// Returns the routes that an earlier process has saved.
    pub(super) fn saved_routes(&self) -> &[SavedRoute] {
        &self.saved.routes
    }

    /// Forgets what an earlier process has saved.
    pub(super) fn forget(&mut self) {
        self.saved = Saved::default();
    }

    /// Notes that servers have changed.
    pub(super) fn changed(&mut self, now: Moment) {
        if self.path.is_some() {
            self.write_at.get_or_insert(now + WRITE_AFTER);
        }
    }

    /// Returns whether the file lacks changes, or is still being written.
    pub(super) fn is_behind(&self) -> bool {
        self.write_at.is_some() || self.progress.is_writing.load(SeqCst)
    }

    /// Returns when the file is to be written.
    pub(super) fn next_due(&self) -> Option<Moment> {
        self.write_at
    }

    /// Writes the file on a thread for files; later, if it is being written.
    pub(super) fn write(&mut self, saved: Saved, now: Moment) {
        let Some(path) = self.path.clone() else { return };
        if self.progress.is_writing.swap(true, SeqCst) {
            self.write_at = Some(now + WRITE_AFTER);
            return;
        }
        self.write_at = None;
        let progress = Arc::clone(&self.progress);
        tokio::task::spawn_blocking(move || {
            progress.write(&path, &saved);
            progress.is_writing.store(false, SeqCst);
        });
    }

    /// Writes the file before it returns.
    pub(super) fn write_now(&mut self, saved: &Saved) {
        if let Some(path) = &self.path {
            self.write_at = None;
            self.progress.write(path, saved);
        }
    }
}

impl Progress {
    fn write(&self, path: &Path, saved: &Saved) {
        let _file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        // During an upgrade there are two processes.
        let new = path.with_added_extension(format!("{}.new", std::process::id()));
        let written = plain_file::replace(path, &new, &saved.bytes());
        let is_new = !self.has_failed.swap(written.is_err(), SeqCst);
        if let Err(error) = written
            && is_new
        {
            let path = path.display().to_string();
            tracing::warn!(
                path, %error,
                "cannot save the servers and routes of sources; a start while a source does not answer will lack them"
            );
        }
    }
}

/// Reads the file; empty if there is none, or if it cannot be read, which is logged.
pub(super) fn read(path: &Path) -> Saved {
    let read = match plain_file::read(path, FILE_MAX_BYTES) {
        Ok((bytes, _)) => Saved::parse(&bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Saved::default()),
        Err(error) => Err(error.to_string()),
    };
    read.unwrap_or_else(|error| {
        let path = path.display().to_string();
        tracing::warn!(path, error, "cannot read the saved servers and routes; they are not used");
        Saved::default()
    })
}
