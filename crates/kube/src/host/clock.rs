//! What time it is for the World: wall-clock time as it was at the start, and what has passed since.
//!
//! Deadlines and ages are spans that were lived through. A clock on the wall that is set ahead would let all of them pass
//! at once, and one that is set back again would have those that were counted meanwhile wait until it gets there once more.
//! So the wall is read once. When it has told another time for a while it is believed, and everything is counted anew.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use muster_core::time::Time;

/// Small steps make no difference to anybody: no deadline is shorter than some seconds.
const SMALL: Duration = Duration::from_secs(5);
/// How long the wall must tell another time before it is believed. Clocks that are set by mistake, or by two who disagree,
/// are set again sooner than that.
const BELIEVED: Duration = Duration::from_secs(60);

/// The host's clock.
#[derive(Debug)]
pub(super) struct Clock {
    wall: Timestamp,
    began: Instant,
    /// Since when the wall tells another time.
    apart: Option<Instant>,
}

impl Clock {
    pub(super) fn new() -> Self {
        Self::at(Timestamp::now(), Instant::now())
    }

    fn at(wall: Timestamp, began: Instant) -> Self {
        Self { wall, began, apart: None }
    }

    /// Unix time.
    pub(super) fn now(&self) -> Time {
        self.time(Instant::now())
    }

    fn time(&self, instant: Instant) -> Time {
        let passed = instant.saturating_duration_since(self.began).as_millis();
        let passed = i64::try_from(passed).unwrap_or(i64::MAX);
        Time(self.wall.as_millisecond().saturating_add(passed))
    }

    /// Whether the wall has told another time for so long that it is right and this clock is not.
    pub(super) fn is_wrong(&mut self) -> bool {
        let wall = Timestamp::now();
        let is_wrong = self.is_wrong_by(wall, Instant::now());
        if is_wrong {
            tracing::warn!(%wall, "the clock was set; everything is counted anew");
        }
        is_wrong
    }

    fn is_wrong_by(&mut self, wall: Timestamp, instant: Instant) -> bool {
        let difference = wall.as_millisecond().abs_diff(self.time(instant).0);
        if u128::from(difference) <= SMALL.as_millis() {
            self.apart = None;
            return false;
        }
        let since = *self.apart.get_or_insert(instant);
        instant.saturating_duration_since(since) >= BELIEVED
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    /// What a clock that began at zero says after so many seconds, when the wall says so many: its own time, and whether it
    /// is wrong.
    fn told(steps: &[(u64, i64)]) -> Vec<(i64, bool)> {
        let (wall, began) = (Timestamp::UNIX_EPOCH, Instant::now());
        let mut clock = Clock::at(wall, began);
        let tell = |(passed, on_wall): &(u64, i64)| {
            let instant = began + Duration::from_secs(*passed);
            let wall = wall + SignedDuration::from_secs(*on_wall);
            (clock.time(instant).0 / 1_000, clock.is_wrong_by(wall, instant))
        };
        steps.iter().map(tell).collect()
    }

    #[test]
    fn a_wall_that_jumps_ahead_and_back_is_not_followed() {
        let year = 365 * 24 * 3_600;
        let steps =
            [(10, 10), (20, year), (70, year + 50), (75, 75), (100, 100 - year), (110, 108)];
        let own = [10, 20, 70, 75, 100, 110].map(|passed| (passed, false));
        assert_eq!(told(&steps), own);
    }

    #[test]
    fn a_wall_that_keeps_telling_another_time_is_right() {
        for apart in [-600, 600] {
            let steps = [(10, 10 + apart), (69, 69 + apart), (70, 70 + apart)];
            assert_eq!(told(&steps), [(10, false), (69, false), (70, true)]);
        }
    }
}
