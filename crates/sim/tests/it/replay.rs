//! A recording replays to the same plans byte for byte; a changed one does not.

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

use muster_core::time::{Span, Time};
use muster_plan::Policy;
use muster_sim::faults::draw;
use muster_sim::record::{Recorder, ReplayError, replay};
use muster_sim::{Sim, SimOptions};

/// A writer whose content can be read afterwards.
#[derive(Clone, Default)]
struct Tape(Rc<RefCell<Vec<u8>>>);

impl Write for Tape {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn record(seed: u64) -> Vec<u8> {
    let tape = Tape::default();
    let recorder = Recorder::new(Box::new(tape.clone()));
    let options = SimOptions { seed, recorder: Some(recorder), ..SimOptions::default() };
    let mut sim = Sim::new(draw(seed).setup, Policy::default(), options)
        .expect("drawn worlds are well formed");
    sim.run(Time::ZERO + Span::hours(24));
    let plans = sim.recorder_mut().expect("it records").finish().expect("memory does not fail");
    assert!(plans > 20, "seed {seed} is too short to prove anything");
    tape.0.take()
}

#[test]
fn replay_gives_every_recorded_plan_byte_for_byte() {
    for seed in 0..4 {
        let tape = record(seed);
        let found = replay(tape.as_slice()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(found.difference, None, "seed {seed}");
        assert!(found.plans > 20 && found.events > 20, "seed {seed}: {found:?}");
    }
}

#[test]
fn recording_twice_gives_the_same_bytes() {
    assert_eq!(record(5), record(5));
}

#[test]
fn changed_plan_is_reported_with_its_line() {
    let text = String::from_utf8(record(3)).expect("recordings are text");
    let (at, line) = text
        .lines()
        .enumerate()
        .find(|(_, line)| line.starts_with(r#"{"Plan""#) && line.contains(r#""deadline":"#))
        .expect("something was ordered");
    let changed = line.replacen(r#""deadline":"#, r#""deadline":1"#, 1);
    let tampered = text.replacen(line, &changed, 1);
    let found = replay(tampered.as_bytes()).expect("it is still a recording");
    assert_eq!(found.difference.map(|difference| difference.line), Some(at + 1));
}

#[test]
fn input_that_is_no_recording_is_refused() {
    assert!(matches!(replay(&b""[..]), Err(ReplayError::NotARecording)));
    assert!(matches!(replay(&b"{}\n"[..]), Err(ReplayError::Malformed { line: 1, .. })));
    assert!(matches!(replay(&b"\"Tick\"\n"[..]), Err(ReplayError::Malformed { line: 1, .. })));
}
