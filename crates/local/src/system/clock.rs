//! Clocks: wall time that does not jump, and the World's time relative to it, which may run faster so that simulated
//! nodes boot in seconds.

use std::sync::{LazyLock, PoisonError, RwLock};
use std::time::Duration;

use muster_api::crd::Stamp;
use muster_clock::{Reading, SteadyClock};
use muster_core::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// How long the wall clock must differ before it is followed. Records of weeks depend on it.
const BELIEVED_AFTER: Duration = Duration::from_secs(300);

/// One per process: all records use the same clock.
static WALL: LazyLock<RwLock<SteadyClock>> =
    LazyLock::new(|| RwLock::new(SteadyClock::new(BELIEVED_AFTER)));

/// Unix milliseconds by the steady wall clock.
pub(crate) fn wall_now() -> i64 {
    WALL.read().unwrap_or_else(PoisonError::into_inner).now().0
}

/// Unix milliseconds of an instant, given as time since boot.
pub(crate) fn wall_at(boot: Duration) -> i64 {
    WALL.read().unwrap_or_else(PoisonError::into_inner).time(boot).0
}

/// Unix milliseconds by the system's wall clock, right or wrong.
pub(crate) fn wall_read() -> i64 {
    Reading::now().wall_ms
}

/// The reference point of this clock, for another process of the system.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Anchor {
    /// Unix milliseconds.
    wall_ms: i64,
    /// Milliseconds since boot.
    boot_ms: u64,
    /// The boot id.
    boot: String,
}

/// The reference point with which another process agrees with this one.
pub(crate) fn anchor() -> Anchor {
    let Reading { wall_ms, boot } = WALL.read().unwrap_or_else(PoisonError::into_inner).anchor();
    Anchor { wall_ms, boot_ms: boot.as_millis() as u64, boot: boot_id() }
}

/// Synchronizes with the process that made this anchor, unless the system was rebooted since.
pub(crate) fn agree_with(anchor: &Anchor) {
    if anchor.boot == boot_id() {
        let boot = Duration::from_millis(anchor.boot_ms);
        let reading = Reading { wall_ms: anchor.wall_ms, boot };
        WALL.write().unwrap_or_else(PoisonError::into_inner).believe(reading);
    }
}

/// Follows the wall clock if it has differed for long: returns the time before and after.
pub(crate) fn follow_wall() -> Option<(i64, i64)> {
    let mut clock = WALL.write().unwrap_or_else(PoisonError::into_inner);
    let reading = Reading::now();
    if !clock.is_wrong_by(reading) {
        return None;
    }
    let was = clock.time(reading.boot).0;
    clock.believe(reading);
    Some((was, reading.wall_ms))
}

/// Identifies this boot of the system.
pub(crate) fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// The World's time relative to wall time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Clock {
    wall: i64,
    world: i64,
    speed: f64,
}

impl Clock {
    /// A clock that was at `world` when it was `wall`, both in Unix milliseconds.
    pub(crate) fn new(wall: i64, world: i64, speed: f64) -> Self {
        Self { wall, world, speed }
    }

    pub(crate) fn now(&self) -> Time {
        self.world_at(wall_now().max(self.wall))
    }

    /// Its stored form.
    pub(crate) fn parts(&self) -> (i64, i64, f64) {
        (self.wall, self.world, self.speed)
    }

    /// The wall clock was corrected. The World's time follows it forward, because dates in manifests are wall-clock
    /// dates, and never back: then it continues from where it is.
    pub(crate) fn wall_was_set(&mut self, was: i64, is: i64) {
        let ahead = if self.speed == 1.0 { is.saturating_sub(was).max(0) } else { 0 };
        let world = self.world_at(was).0.saturating_add(ahead);
        *self = Self::new(is, world, self.speed);
    }

    /// The wall-clock time of an instant of the World.
    pub(crate) fn stamp(&self, at: Time) -> Stamp {
        let passed = (at.0.saturating_sub(self.world)) as f64 / self.speed;
        Stamp(Time(self.wall.saturating_add(passed as i64)))
    }

    /// The World's time at a wall-clock instant.
    pub(crate) fn world_at(&self, wall: i64) -> Time {
        let passed = wall.saturating_sub(self.wall) as f64 * self.speed;
        Time(self.world.saturating_add(passed as i64))
    }

    /// A wall-clock duration in microseconds as a span of the World.
    pub(crate) fn world_span(&self, us: u64) -> Span {
        Span((us as f64 / 1_000.0 * self.speed) as u64)
    }

    /// A span of the World as a wall-clock duration in milliseconds.
    pub(crate) fn wall_ms(&self, span: Span) -> u64 {
        (span.0 as f64 / self.speed) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000;

    #[test]
    fn world_time_follows_the_wall_clock_forward_and_never_back() {
        let mut clock = Clock::new(1_000, 1_000, 1.0);
        clock.wall_was_set(2_000, 2_000 + DAY);
        assert_eq!(clock.world_at(3_000 + DAY), Time(3_000 + DAY));
        clock.wall_was_set(4_000 + DAY, 4_000);
        assert_eq!(clock.world_at(5_000), Time(5_000 + DAY), "a second later is a second later");
        assert_eq!(clock.stamp(Time(5_000 + DAY)).0, Time(5_000), "shown by the wall");
    }

    #[test]
    fn simulated_time_keeps_its_pace_when_the_wall_clock_is_set() {
        for is in [50_000 + DAY, 50_000 - DAY] {
            let mut clock = Clock::new(0, 0, 60.0);
            clock.wall_was_set(50_000, is);
            assert_eq!(clock.world_at(is + 1_000), Time(51_000 * 60));
        }
    }
}
