//! What time it is for the World. It may run faster than the clock on the wall, so that simulated nodes boot in seconds.

use muster_api::crd::Stamp;
use muster_core::time::{Span, Time};

/// The World's time against the wall's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    wall: i64,
    world: i64,
    speed: f64,
}

impl Clock {
    /// A clock that stood at `world` when it was `wall`, both in Unix milliseconds.
    pub(crate) fn new(wall: i64, world: i64, speed: f64) -> Self {
        Self { wall, world, speed }
    }

    pub(crate) fn now(&self) -> Time {
        let passed = (wall_now() - self.wall).max(0);
        Time(self.world + (passed as f64 * self.speed) as i64)
    }

    /// When it was on the wall.
    pub(crate) fn stamp(&self, at: Time) -> Stamp {
        let passed = (at.0.saturating_sub(self.world)) as f64 / self.speed;
        Stamp(Time(self.wall.saturating_add(passed as i64)))
    }

    /// When it is for the World, at an instant on the wall.
    pub(crate) fn world_at(&self, wall: i64) -> Time {
        Time(self.world + ((wall - self.wall) as f64 * self.speed) as i64)
    }

    /// How long so many microseconds on the wall are for the World.
    pub(crate) fn world_span(&self, us: u64) -> Span {
        Span((us as f64 / 1_000.0 * self.speed) as u64)
    }

    /// How long something of the World takes on the wall, in milliseconds.
    pub(crate) fn wall_ms(&self, span: Span) -> u64 {
        (span.0 as f64 / self.speed) as u64
    }
}

pub(crate) fn wall_now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
