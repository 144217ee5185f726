//! Progress: one live line per module on a terminal, and a line now and then elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Often enough to see in a log that it is alive.
const BETWEEN_LINES: Duration = Duration::from_secs(20);

pub(super) struct Progress {
    name: String,
    began: Instant,
    said: Instant,
    done: u64,
    most: u64,
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(super) fn new(name: String) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{spinner} testbed: {msg}, {elapsed}");
            let bar = ProgressBar::new_spinner().with_style(style.expect("a valid template"));
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        let now = Instant::now();
        Self { name, began: now, said: now, done: 0, most: 0, bar }
    }

    /// A new step, always said.
    pub(super) fn step(&mut self, what: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(format!("{}: {what}", self.name)),
            None => eprintln!("testbed: {}: {what}", self.name),
        }
    }

    /// How many packages there are; those in Go's own cache are never counted as done.
    pub(super) fn expect(&mut self, packages: u64) {
        self.most = packages;
    }

    pub(super) fn compiled_one(&mut self) {
        self.done += 1;
        self.alive();
    }

    /// Says where it stands, if it has been quiet for long enough.
    pub(super) fn alive(&mut self) {
        let state = format!("{}: {} of at most {} packages", self.name, self.done, self.most);
        match &self.bar {
            Some(bar) => bar.set_message(state),
            None if self.said.elapsed() < BETWEEN_LINES => {}
            None => {
                self.said = Instant::now();
                eprintln!("testbed: {state}, {} s", self.began.elapsed().as_secs());
            }
        }
    }

    pub(super) fn done(self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        let took = self.began.elapsed().as_secs();
        eprintln!("testbed: {}: built, {} packages compiled, {took} s", self.name, self.done);
    }
}
