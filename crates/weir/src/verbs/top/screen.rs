//! The terminal: switched to its alternate screen, and restored however the program ends.

use std::io::{self, BufWriter, Stdout, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::cursor::{Hide, Show};
use ratatui_crossterm::crossterm::event::{
    self, DisableBracketedPaste, EnableBracketedPaste, Event as Input, KeyCode, KeyEventKind,
    KeyModifiers,
};
use ratatui_crossterm::crossterm::execute;
use ratatui_crossterm::crossterm::style::force_color_output;
use ratatui_crossterm::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use crate::top::{Event, Key, Palette, State, draw};

/// A frame is written at once: over ssh, each write may be a packet.
const FRAME_BYTES: usize = 64 * 1024;

/// Whether the terminal is switched to the alternate screen.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal, while this exists.
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    palette: Palette,
}

impl Screen {
    /// Switches to the alternate screen.
    pub(super) fn open(palette: Palette) -> io::Result<Screen> {
        restore_before_panics();
        // `--color` decides, which takes NO_COLOR into account.
        force_color_output(palette.has_colours);
        enable_raw_mode()?;
        IS_TAKEN.store(true, Ordering::Relaxed);
        let open = || {
            let mut stdout = io::stdout();
            // `Terminal::clear` would ask the terminal where its cursor is, and not all answer in time.
            execute!(
                stdout,
                EnterAlternateScreen,
                Clear(ClearType::All),
                Hide,
                EnableBracketedPaste
            )?;
            let writer = BufWriter::with_capacity(FRAME_BYTES, stdout);
            let terminal = Terminal::new(CrosstermBackend::new(writer))?;
            Ok(Screen { terminal, palette })
        };
        open().inspect_err(|_| restore())
    }

    /// Its columns and lines.
    pub(super) fn size(&self) -> io::Result<(u16, u16)> {
        self.terminal.size().map(|size| (size.width, size.height))
    }

    /// Clears the terminal, so that the next frame is drawn in full.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        execute!(io::stdout(), Clear(ClearType::All))?;
        // Forgets the last frame. `Terminal::clear` asks for the cursor's place, as above.
        self.terminal.swap_buffers();
        Ok(())
    }

    /// Draws what has changed since the last frame. Returns whether the question about a change is on it.
    pub(super) fn draw(&mut self, state: &State) -> io::Result<bool> {
        // A thread that panicked has restored the terminal, and its message stands there.
        if !IS_TAKEN.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let palette = self.palette;
        let mut has_question = false;
        self.terminal.draw(|frame| has_question = draw(state, palette, frame.buffer_mut()))?;
        Ok(has_question)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal, once: a second time would move the cursor back over what was printed since. What
/// fails cannot be repaired, so the rest is tried.
fn restore() {
    if !IS_TAKEN.swap(false, Ordering::Relaxed) {
        return;
    }
    let mut stdout = io::stdout();
    let _ = execute!(stdout, DisableBracketedPaste, LeaveAlternateScreen, Show);
    let _ = stdout.flush();
    let _ = disable_raw_mode();
}

/// Ends the program although its terminal takes no output: only the modes are restored, which is no output.
#[expect(clippy::disallowed_methods, reason = "the thread that would return hangs in a write")]
pub(super) fn abandon() -> ! {
    let _ = disable_raw_mode();
    std::process::exit(1)
}

/// Restores the terminal before a panic is printed, or the alternate screen would swallow it.
fn restore_before_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            print(panic);
        }));
    });
}

/// Waits for the keyboard, or for another size of the terminal. `None`: for something without a meaning here.
pub(super) fn read() -> io::Result<Option<Event>> {
    Ok(match event::read()? {
        Input::Key(key) if key.kind != KeyEventKind::Release => {
            self::key(key.code, key.modifiers).map(Event::Key)
        }
        Input::Resize(columns, lines) => Some(Event::Resized(columns, lines)),
        Input::Paste(text) => Some(Event::Pasted(text)),
        _ => None,
    })
}

fn key(code: KeyCode, modifiers: KeyModifiers) -> Option<Key> {
    // With these, a letter is another key.
    if modifiers.intersects(KeyModifiers::ALT | KeyModifiers::SUPER | KeyModifiers::META) {
        return None;
    }
    if modifiers.contains(KeyModifiers::CONTROL) {
        return match code {
            KeyCode::Char('c') => Some(Key::Interrupt),
            KeyCode::Char('l') => Some(Key::Redraw),
            KeyCode::Char('f') => Some(Key::PageDown),
            KeyCode::Char('b') => Some(Key::PageUp),
            // Many terminals send it for the backspace key.
            KeyCode::Char('h') => Some(Key::Backspace),
            _ => None,
        };
    }
    Some(match code {
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter | KeyCode::Right => Key::Enter,
        KeyCode::Esc | KeyCode::Left => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Char(char) => Key::Char(char),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_their_meaning() {
        let plain = |code| key(code, KeyModifiers::NONE);
        let control = |char| key(KeyCode::Char(char), KeyModifiers::CONTROL);
        assert_eq!(plain(KeyCode::Char('d')), Some(Key::Char('d')));
        assert_eq!(key(KeyCode::Char('G'), KeyModifiers::SHIFT), Some(Key::Char('G')));
        assert_eq!((plain(KeyCode::Esc), plain(KeyCode::F(5))), (Some(Key::Escape), None));
        // Drains nothing: it is another key.
        assert_eq!((control('c'), control('d')), (Some(Key::Interrupt), None));
        assert_eq!(key(KeyCode::Char('d'), KeyModifiers::ALT), None);
    }
}
