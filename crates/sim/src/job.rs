//! A job: one gang of a trace or a generated workload.

use muster_core::gang::{GangSpec, Seat};
use muster_core::time::{Span, Time};
use muster_core::work::Scaling;

/// A gang, when it arrives, and how long it truly runs.
///
/// The planner sees only the gang; `run` and `nature` are known to the simulator alone, as in reality.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    /// The gang that is submitted.
    pub gang: GangSpec,
    /// When it is submitted.
    pub submit: Time,
    /// How long it runs with every role at its `max`; an elastic gang that runs with fewer takes longer.
    pub run: Span,
    /// How it truly behaves with more members.
    pub nature: Nature,
}

/// How a gang truly behaves with more members, whatever its submitter declares.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Nature {
    /// The true speed-up of twice the members as a part of twice the speed, in thousandths; as declared when absent.
    pub efficiency: Option<u16>,
    /// How often it declines more members, in thousandths of the offers.
    pub declines: u16,
}

impl Job {
    /// A gang that behaves as its submitter declares.
    pub fn new(gang: GangSpec, submit: Time, run: Span) -> Self {
        Self { gang, submit, run, nature: Nature::default() }
    }
    /// Its true speed in these seats, as a part of its highest speed.
    pub(crate) fn speed_in(&self, seats: &[Seat]) -> f64 {
        if self.gang.is_rigid() {
            return 1.0;
        }
        let elastic = |seat: &&Seat| {
            let role = &self.gang.roles[usize::from(seat.role)];
            role.min < role.max
        };
        let members = seats.iter().filter(elastic).map(|seat| u32::from(seat.members)).sum();
        let declared = self.gang.scaling;
        let efficiency = self.nature.efficiency.unwrap_or(declared.efficiency);
        Scaling { efficiency, ..declared }.speed(members, self.gang.most_elastic())
    }
}
