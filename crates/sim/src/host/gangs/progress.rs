//! The true progress of a gang, which only the cluster knows: never visible to the World.
//!
//! Work is measured in the time it takes with every role at its `max`. A gang makes no progress while it pauses: after a
//! restart from a checkpoint and after a resize.

use muster_core::time::{Span, Time};

/// The progress of one job, over all of its runs.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Progress {
    /// Work in milliseconds that was saved before this run.
    kept: f64,
    /// Work in milliseconds that was done in this run.
    did: f64,
    /// Until when `did` is counted; later than now while it pauses.
    since: Time,
    /// The start of its pause.
    stands: Time,
    /// Its speed from `since` on; zero while it does not run.
    pace: f64,
    /// Times it was told to leave seats or take more: each is a random draw of its own.
    pub(crate) asked: u32,
    /// Whether its speed-up was measured.
    pub(crate) measured: bool,
}

impl Progress {
    /// Starts, or restarts from a checkpoint, which takes `restart`.
    pub(crate) fn begin(&mut self, now: Time, pace: f64, restart: Span) {
        let pause = if self.kept > 0.0 { restart } else { Span::ZERO };
        (self.did, self.pace, self.stands, self.since) = (0.0, pace, now, now + pause);
    }

    /// Counts the work until now; returns the length of the pause in it.
    pub(crate) fn count(&mut self, now: Time) -> Span {
        if self.pace == 0.0 {
            return Span::ZERO;
        }
        let stood = now.min(self.since).since(self.stands);
        self.stands = now.max(self.stands);
        if now > self.since {
            self.did += now.since(self.since).0 as f64 * self.pace;
            self.since = now;
        }
        stood
    }

    /// Goes on at another speed, after a pause. The work until now has been counted.
    pub(crate) fn change(&mut self, now: Time, pace: f64, pause: Span) {
        self.pace = pace;
        // Two overlapping pauses last as long as the longer one.
        self.since = self.since.max(now + pause);
    }

    /// When all work is done, if nothing changes.
    pub(crate) fn end(&self, all: Span) -> Time {
        let left = (all.0 as f64 - self.kept - self.did).max(0.0);
        self.since + Span((left / self.pace).round() as u64)
    }

    /// Stops, or falls back to a checkpoint; only the part of this run's work that `saved` returns is kept. Returns how
    /// long it had worked, at its present speed, on the lost part.
    pub(crate) fn lose(&mut self, saved: impl Fn(Span) -> Span) -> Span {
        let kept = (saved(Span(self.did.round() as u64)).0 as f64).min(self.did);
        let lost = if self.pace > 0.0 { (self.did - kept) / self.pace } else { 0.0 };
        (self.kept, self.did) = (self.kept + kept, 0.0);
        Span(lost.round() as u64)
    }

    /// Stops.
    pub(crate) fn stop(&mut self) {
        self.pace = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(mins: u64) -> Time {
        Time::ZERO + Span::mins(mins)
    }

    #[test]
    fn rigid_gang_takes_exactly_its_run_time_however_often_it_starts() {
        let run = Span(3_599_999);
        let mut progress = Progress::default();
        for start in [0, 7, 100] {
            progress.begin(at(start), 1.0, Span::mins(5));
            assert_eq!(progress.end(run), at(start) + run);
            progress.count(at(start + 3));
            assert_eq!(progress.end(run), at(start) + run, "counting changes nothing");
            assert_eq!(progress.lose(|_| Span::ZERO), Span::mins(3));
            progress.stop();
        }
    }

    #[test]
    fn saved_work_is_not_repeated_but_costs_the_restart_time() {
        let mut progress = Progress::default();
        progress.begin(at(0), 1.0, Span::mins(2));
        progress.count(at(25));
        assert_eq!(progress.lose(|did| Span(did.0 / 600_000 * 600_000)), Span::mins(5));
        progress.stop();
        progress.begin(at(40), 1.0, Span::mins(2));
        assert_eq!(progress.end(Span::mins(60)), at(40 + 2 + 40));
        assert_eq!(progress.count(at(41)), Span::mins(1), "stopped while it loads");
        assert_eq!(progress.lose(|did| did), Span::ZERO);
        progress.stop();
        progress.begin(at(50), 1.0, Span::mins(2));
        assert_eq!(progress.end(Span::mins(60)), at(50 + 2 + 40));
    }

    #[test]
    fn change_of_speed_costs_its_pause_and_nothing_else() {
        let mut progress = Progress::default();
        progress.begin(at(0), 0.5, Span::ZERO);
        assert_eq!(progress.end(Span::mins(60)), at(120));
        assert_eq!(progress.count(at(20)), Span::ZERO);
        progress.change(at(20), 1.0, Span::mins(1));
        assert_eq!(progress.end(Span::mins(60)), at(71));
        assert_eq!(progress.count(at(31)), Span::mins(1));
        progress.change(at(31), 0.25, Span::mins(1));
        assert_eq!(progress.end(Span::mins(60)), at(32 + 160));
    }
}
