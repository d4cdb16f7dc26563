//! Namespaces that the start skips because Weir may not read all of them: nothing in them is served until it can.

use std::sync::Arc;

use super::Manager;
use crate::event::Event;
use crate::hidden;
use crate::item::Item;
use crate::kinds::Source;

impl Manager {
    /// Takes a complete list.
    pub(super) fn list(&mut self, source: &Source, items: Vec<Item>) {
        let Some(hidden) = self.hidden.of(source) else {
            self.store.replace(source, items);
            return;
        };
        *hidden = items.into_iter().map(|item| (item.key.clone(), item)).collect();
        self.reveal_complete();
    }

    /// Takes away all objects of a namespace. Those that were listed are listed again.
    pub(super) fn hide(&mut self, namespace: Arc<str>) {
        let sources: Vec<Source> =
            self.watches.keys().filter(|one| hidden::is_of(one, &namespace)).cloned().collect();
        for source in sources {
            self.store.replace(&source, Vec::new());
            self.relists.ended(&source);
            if self.watches.get(&source).is_some_and(|running| running.is_listed)
                && let Some(running) = self.watches.remove(&source)
            {
                running.task.abort();
            }
        }
        self.store.set_hidden(&namespace, true);
        self.hidden.hide(Arc::clone(&namespace));
        (self.events)(Event::Skipped { namespace });
        let versions = self.discovered.versions.clone();
        self.watch(&versions);
        self.set_references();
    }

    /// Serves the hidden namespaces of which everything has been listed.
    pub(super) fn reveal_complete(&mut self) {
        let is_complete = |namespace: &str| {
            let mut of_it = self.watches.iter().filter(|(one, _)| hidden::is_of(one, namespace));
            of_it.all(|(one, running)| running.is_read() || !one.kind.is_awaited())
        };
        let namespaces = self.hidden.namespaces();
        let complete: Vec<Arc<str>> = namespaces.filter(|one| is_complete(one)).cloned().collect();
        for namespace in complete {
            for (source, items) in self.hidden.reveal(&namespace) {
                self.store.replace(&source, items);
            }
            self.store.set_hidden(&namespace, false);
            self.has_unread = true;
            (self.events)(Event::Included { namespace });
        }
    }
}
