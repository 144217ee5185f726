//! The clock of a host: wall time as it was at the start, plus the boot-time clock since then.
//!
//! Deadlines and ages are measured spans. A wall clock that is set ahead would let all of them pass at once, and one
//! that is set back again would stop those counted meanwhile. So the wall clock is read once, and the time that passes
//! is the system's boot-time clock, which cannot be set and which counts suspended time. When the wall clock has shown
//! one other time for long enough, it is taken to be right, and the host decides what follows from that.

use std::time::Duration;

use jiff::Timestamp;
use muster_core::time::Time;
use rustix::time::{ClockId, clock_gettime};

/// Smaller differences are drift: no deadline is shorter than some seconds.
const SMALL_MS: u64 = 5_000;

/// A reading of the system's clocks at one instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The wall clock, in Unix milliseconds.
    pub wall_ms: i64,
    /// Time since the system was started, suspended or not.
    pub boot: Duration,
}

impl Reading {
    /// Reads both clocks.
    pub fn now() -> Self {
        Self { wall_ms: Timestamp::now().as_millisecond(), boot: since_boot() }
    }
}

/// Time since the system was started, suspended or not. The same for every process of the system.
pub fn since_boot() -> Duration {
    let at = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(at.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(at.tv_nsec).unwrap_or_default())
}

/// Wall time that does not jump.
#[derive(Clone, Debug)]
pub struct SteadyClock {
    anchor: Reading,
    /// How long the wall clock must show another time before it is believed.
    believed_after: Duration,
    /// Since when the wall clock is off, and by how many milliseconds.
    apart: Option<(Duration, i64)>,
}

impl SteadyClock {
    /// A clock that believes the wall clock as it is now, and a later jump only after a while. Clocks that are set by
    /// mistake, or by two programs that disagree, are set again sooner than that.
    pub fn new(believed_after: Duration) -> Self {
        Self::at(Reading::now(), believed_after)
    }

    /// A clock anchored at this reading.
    pub fn at(anchor: Reading, believed_after: Duration) -> Self {
        Self { anchor, believed_after, apart: None }
    }

    /// The reading that time is counted from.
    pub fn anchor(&self) -> Reading {
        self.anchor
    }

    /// Unix time.
    pub fn now(&self) -> Time {
        self.time(since_boot())
    }

    /// Unix time, so long after the system was started.
    pub fn time(&self, boot: Duration) -> Time {
        let ms = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        Time(self.anchor.wall_ms.saturating_add(ms(boot).saturating_sub(ms(self.anchor.boot))))
    }

    /// Whether the wall clock has shown one other time for so long that it is right and this clock is not.
    pub fn is_wrong(&mut self) -> bool {
        self.is_wrong_by(Reading::now())
    }

    /// The same, by this reading.
    pub fn is_wrong_by(&mut self, reading: Reading) -> bool {
        let off = reading.wall_ms.saturating_sub(self.time(reading.boot).0);
        if off.unsigned_abs() <= SMALL_MS {
            self.apart = None;
            return false;
        }
        // A wall clock that jumps from one wrong time to another has shown neither for long.
        let same = self.apart.filter(|(_, known)| known.abs_diff(off) <= SMALL_MS);
        let (since, _) = *self.apart.insert(same.unwrap_or((reading.boot, off)));
        let is_wrong = reading.boot.saturating_sub(since) >= self.believed_after;
        if is_wrong {
            tracing::warn!(
                wall_ms = reading.wall_ms,
                off_ms = off,
                "the wall clock was set and is believed now"
            );
        }
        is_wrong
    }

    /// Believes the wall clock from here on.
    pub fn believe(&mut self, reading: Reading) {
        (self.anchor, self.apart) = (reading, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// The readings of a clock that began at zero after so many seconds, when the wall clock shows so many: its own
    /// time, and whether it is wrong.
    fn readings(steps: &[(u64, i64)]) -> Vec<(i64, bool)> {
        // The system was started an hour before.
        let started = Duration::from_secs(3_600);
        let mut clock = SteadyClock::at(Reading { wall_ms: 0, boot: started }, MINUTE);
        let tell = |(passed, on_wall): &(u64, i64)| {
            let boot = started + Duration::from_secs(*passed);
            let reading = Reading { wall_ms: on_wall * 1_000, boot };
            (clock.time(boot).0 / 1_000, clock.is_wrong_by(reading))
        };
        steps.iter().map(tell).collect()
    }

    #[test]
    fn wall_clock_that_jumps_ahead_and_back_is_ignored() {
        let year = 365 * 24 * 3_600;
        let steps =
            [(10, 10), (20, year), (70, year + 50), (75, 75), (100, 100 - year), (110, 108)];
        let own = [10, 20, 70, 75, 100, 110].map(|passed| (passed, false));
        assert_eq!(readings(&steps), own);
    }

    #[test]
    fn wall_clock_that_keeps_another_time_is_believed() {
        for apart in [-600, 600] {
            let steps = [(10, 10 + apart), (69, 69 + apart), (70, 70 + apart)];
            assert_eq!(readings(&steps), [(10, false), (69, false), (70, true)]);
        }
    }

    #[test]
    fn wall_clock_that_jumps_between_times_is_not_believed() {
        let day = 24 * 3_600;
        let steps = [(10, day), (50, 2 * day), (80, 3 * day), (120, day), (150, day + 30)];
        assert!(readings(&steps).iter().all(|(_, wrong)| !wrong));
    }

    #[test]
    fn time_continues_from_a_believed_wall_clock() {
        let mut clock = SteadyClock::at(Reading { wall_ms: 0, boot: MINUTE }, MINUTE);
        clock.believe(Reading { wall_ms: 9_000_000, boot: 2 * MINUTE });
        assert_eq!(clock.time(3 * MINUTE), Time(9_060_000));
        assert!(!clock.is_wrong_by(Reading { wall_ms: 9_060_000, boot: 3 * MINUTE }));
    }
}
