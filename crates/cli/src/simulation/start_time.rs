//! The wall-clock time at which a simulation begins: manifests give deadlines as dates and schedules by the hour, a
//! simulation counts from zero.
//!
//! This is the only place where a simulation reads the wall clock.

use clap::Args;
use jiff::Timestamp;
use muster_api::{GangManifest, PoolManifest, instant};
use muster_core::time::Time;

/// `--begin`, an option of every command that simulates manifests.
#[derive(Args)]
pub(crate) struct StartTime {
    /// When the simulation begins, such as 2026-11-30T08:00:00Z; deadlines and schedules in manifests are counted from
    /// then. The current minute when absent
    #[arg(long, value_name = "TIME", value_parser = instant)]
    begin: Option<Time>,
}

impl StartTime {
    /// Turns dates into instants of the simulation, and returns the Unix time of its beginning, in milliseconds. A
    /// deadline before that is due at the beginning, and missed.
    pub(crate) fn resolve_dates(&self, gangs: &mut [GangManifest], pools: &[PoolManifest]) -> i64 {
        let scheduled = pools.iter().any(|pool| !pool.spec.ahead.schedules.is_empty());
        let mut deadlines: Vec<&mut Time> =
            gangs.iter_mut().filter_map(|gang| gang.spec.deadline.as_mut()).collect();
        if deadlines.is_empty() && !scheduled {
            return self.begin.map_or(0, |begin| begin.0);
        }
        let begin = self.begin.unwrap_or_else(|| {
            let now = this_minute();
            let what = if scheduled { "deadlines and schedules" } else { "deadlines" };
            eprintln!("{what} are counted from {now}, which is now; --begin sets another time");
            Time(now.as_millisecond())
        });
        for deadline in &mut deadlines {
            **deadline = Time::ZERO + deadline.since(begin);
        }
        begin.0
    }
}

/// The current time, cut to the minute.
fn this_minute() -> Timestamp {
    let now = Timestamp::now().as_second();
    Timestamp::from_second(now - now.rem_euclid(60)).expect("less than a minute ago")
}
