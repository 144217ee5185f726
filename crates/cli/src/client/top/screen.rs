//! The terminal of the live view, and its keys.

use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::{DefaultTerminal, Frame};
use tokio::sync::mpsc;

/// How often the thread that reads keys checks whether its channel is closed.
const LOOK: Duration = Duration::from_millis(200);

/// The terminal. It is restored when this is dropped, also on a panic.
pub(crate) struct Screen {
    terminal: DefaultTerminal,
    keys: mpsc::Receiver<Key>,
}

/// What a key does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Key {
    Quit,
    Up(usize),
    Down(usize),
    /// The screen was resized, or a key without a meaning was pressed.
    Other,
}

impl Screen {
    /// Takes over the terminal.
    pub(crate) fn open() -> std::io::Result<Self> {
        let terminal = ratatui::try_init()?;
        let (send, keys) = mpsc::channel(16);
        std::thread::spawn(move || listen(&send));
        Ok(Self { terminal, keys })
    }

    /// Waits for the next key.
    pub(crate) async fn key(&mut self) -> Key {
        // Without the thread that reads keys there is no other way to quit.
        self.keys.recv().await.unwrap_or(Key::Quit)
    }

    /// Draws a frame.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> std::io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

fn listen(send: &mpsc::Sender<Key>) {
    loop {
        match event::poll(LOOK) {
            Ok(false) if send.is_closed() => return,
            Ok(false) => {}
            Ok(true) => match event::read() {
                Ok(read) if send.blocking_send(meaning(&read)).is_ok() => {}
                _ => return,
            },
            Err(_) => return,
        }
    }
}

fn meaning(read: &Event) -> Key {
    let Event::Key(key) = read else { return Key::Other };
    if key.kind == KeyEventKind::Release {
        return Key::Other;
    }
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Key::Quit,
        KeyCode::Char('q') | KeyCode::Esc => Key::Quit,
        KeyCode::Up | KeyCode::Char('k') => Key::Up(1),
        KeyCode::Down | KeyCode::Char('j') => Key::Down(1),
        KeyCode::PageUp => Key::Up(10),
        KeyCode::PageDown => Key::Down(10),
        KeyCode::Home => Key::Up(usize::MAX),
        KeyCode::End => Key::Down(usize::MAX),
        _ => Key::Other,
    }
}
