//! What an event makes of the state, and what is to be done about it outside.

use std::time::Duration;

use model::{Administrative, Moment};

use super::action::Change;
use super::pages::scroll_max;
use super::picture::Picture;
use super::state::{Input, Lost, Notice, State};
use super::view::Place;

/// How long the answer to a change is shown.
const NOTICE: Duration = Duration::from_secs(8);

/// A question that has not been on the screen for this long has not been read.
const READING_MIN: Duration = Duration::from_millis(200);

/// The longest text to search for.
const FILTER_CHARS_MAX: usize = 60;

/// What can happen.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Key(Key),
    /// Text was pasted. It is text, whatever keys it would be.
    Pasted(String),
    /// The terminal has this many columns and lines now.
    Resized(u16, u16),
    /// Time has passed.
    Tick,
    /// What the balancer answered, or why it did not, and when the first request for it was sent.
    Fetched(Result<Box<Picture>, String>, Moment),
    /// The answer to a change.
    Changed(Result<String, String>),
}

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Escape,
    Backspace,
    Tab,
    BackTab,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-L.
    Redraw,
    Char(char),
}

/// What the program is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Quit,
    /// Draw the whole screen again: another program has written to the terminal.
    Redraw,
    /// Ask the balancer for a change; its answer is an [`Event::Changed`].
    Change(Change),
}

impl State {
    /// Takes an event, at the time `now`.
    pub(crate) fn update(&mut self, event: Event, now: Moment) -> Option<Effect> {
        self.now = now;
        if self.notice.as_ref().is_some_and(|notice| now.since(notice.since) >= NOTICE) {
            self.notice = None;
        }
        let is_fetched = matches!(event, Event::Fetched(Ok(_), _));
        let before = self.view().clone();
        let effect = self.take(event);
        // Making a table of thousands of rows for every key would be slow.
        if is_fetched || !self.view().has_same_rows(&before) {
            self.arrange();
        }
        let scroll_max = scroll_max(self);
        if let Some(view) = self.views.last_mut() {
            view.follow(&self.table.rows);
            view.scroll = view.scroll.min(scroll_max);
        }
        effect
    }

    fn take(&mut self, event: Event) -> Option<Effect> {
        match event {
            Event::Key(Key::Interrupt) => return Some(Effect::Quit),
            Event::Key(Key::Redraw) => return Some(Effect::Redraw),
            Event::Key(key) => return self.key(key),
            Event::Pasted(text) if self.input == Input::Find => {
                text.chars().for_each(|char| self.find(Key::Char(char)));
            }
            Event::Pasted(_) | Event::Tick => {}
            Event::Resized(columns, lines) => self.size = (columns, lines),
            Event::Fetched(Ok(picture), began) => {
                self.lost = None;
                if self.paused.is_none() || self.picture.is_none() {
                    self.show(*picture, began);
                }
            }
            Event::Fetched(Err(why), _) => {
                let since = self.lost.as_ref().map_or(self.now, |lost| lost.since);
                self.lost = Some(Lost { why, since });
            }
            Event::Changed(result) => {
                self.is_changing = false;
                let is_error = result.is_err();
                let (Ok(text) | Err(text)) = result;
                self.notice = Some(Notice { text, is_error, since: self.now });
            }
        }
        None
    }

    fn key(&mut self, key: Key) -> Option<Effect> {
        match self.input.clone() {
            Input::Help => {
                self.input = Input::Normal;
                // The key that opens it closes it, like any other but q.
                if key == Key::Char('q') { Some(Effect::Quit) } else { None }
            }
            Input::Find => {
                self.find(key);
                None
            }
            Input::Confirm { change, shown_at } => self.confirm(key, change, shown_at),
            Input::Normal => self.command(key),
        }
    }

    /// Agrees to a change only with this one key, and only after its question was on the screen: keys that
    /// were typed ahead, or pasted where a terminal does not mark it, agree to nothing.
    fn confirm(&mut self, key: Key, change: Change, shown_at: Option<Moment>) -> Option<Effect> {
        let agrees = matches!(key, Key::Char('y' | 'Y'));
        let is_read = shown_at.is_some_and(|shown_at| self.now.since(shown_at) >= READING_MIN);
        if agrees && !is_read {
            return None;
        }
        self.input = Input::Normal;
        if !agrees {
            return None;
        }
        if let Some(why) = self.obstacle(&change) {
            self.refuse(&why);
            return None;
        }
        self.is_changing = true;
        Some(Effect::Change(change))
    }

    fn command(&mut self, key: Key) -> Option<Effect> {
        self.notice = None;
        match key {
            Key::Char('q') if self.is_changing => {
                self.refuse("The change has not been answered yet; ctrl-C quits all the same");
            }
            Key::Char('q') => return Some(Effect::Quit),
            Key::Char('?') => self.input = Input::Help,
            Key::Char('/') if !self.is_page() => self.input = Input::Find,
            Key::Up | Key::Char('k') => self.step(-1),
            Key::Down | Key::Char('j') => self.step(1),
            Key::PageUp => self.step_half(-1),
            Key::PageDown => self.step_half(1),
            Key::Home | Key::Char('g') => self.step(isize::MIN),
            Key::End | Key::Char('G') => self.step(isize::MAX),
            Key::Enter | Key::Char('l') => self.open(),
            Key::Escape | Key::Backspace | Key::Char('h') => self.back(),
            Key::Tab => self.turn(1),
            Key::BackTab => self.turn(Place::TABS.len() - 1),
            Key::Char('c') => self.go_to(&Place::Causes),
            Key::Char('e') => self.go_to(&Place::Findings),
            Key::Char(digit @ '1'..='7') => {
                let at = digit as usize - '1' as usize;
                self.go_to(&Place::TABS[at].0);
            }
            Key::Char(' ') => {
                self.paused = if self.paused.is_some() { None } else { Some(self.now) };
            }
            Key::Char('s') => self.sort(false),
            Key::Char('S') => self.sort(true),
            Key::Char('d') => self.ask(Administrative::Drain),
            Key::Char('r') => self.ask(Administrative::Ready),
            Key::Char('m') => self.ask(Administrative::Maintenance),
            Key::Char(_) | Key::Interrupt | Key::Redraw => {}
        }
        None
    }

    fn find(&mut self, key: Key) {
        let Some(view) = self.views.last_mut() else { return };
        match key {
            Key::Char(char) => {
                let has_room = view.filter.chars().count() < FILTER_CHARS_MAX;
                view.filter.extend(Some(char).filter(|char| has_room && !char.is_control()));
            }
            Key::Backspace => {
                view.filter.pop();
            }
            Key::Escape => {
                view.filter.clear();
                self.input = Input::Normal;
            }
            Key::Enter => self.input = Input::Normal,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
