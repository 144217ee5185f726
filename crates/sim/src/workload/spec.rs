//! The parameters of a synthetic workload.

use std::sync::Arc;

use muster_core::device::MAX_DEVICES;
use muster_core::time::Span;

/// Values and how often each is drawn, relative to the others. Whole weights keep the draw exact.
pub type Weighted<T> = Vec<(T, u32)>;

/// How gangs arrive.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Arrival {
    /// At a constant rate.
    Poisson {
        /// Arrivals in a mean hour.
        per_hour: f64,
    },
    /// More by day than by night, along a sine that peaks at 14:00; the first arrival is just after 00:00.
    Diurnal {
        /// Arrivals in a mean hour.
        per_hour: f64,
        /// The rate at the peak over the rate twelve hours later; 1 is [`Arrival::Poisson`].
        peak_ratio: f64,
    },
}

/// Which multi-node gangs have a topology constraint.
#[derive(Clone, PartialEq, Debug)]
pub struct Topology {
    /// The level they name, such as `rack`.
    pub level: Arc<str>,
    /// The share of multi-node gangs that require it.
    pub required: f64,
    /// The share that prefer it; `required` and `preferred` together are at most 1.
    pub preferred: f64,
}

/// A synthetic workload. Start from a [`super::Preset`] or the default, and change what matters.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkloadSpec {
    /// How many jobs.
    pub jobs: usize,
    /// How they arrive.
    pub arrival: Arrival,
    /// Members of a gang, one to a node.
    pub sizes: Weighted<u32>,
    /// Whole GPUs each member asks for; none when 0. Every member also asks for one CPU.
    pub gpus_per_member: u16,
    /// Half of the jobs run longer than this (run times are log-normal).
    pub run_median: Span,
    /// How widely run times spread: the standard deviation of their logarithm.
    pub run_sigma: f64,
    /// The mean of expected over true run time. Estimates are spread evenly from exact to twice that excess;
    /// 1 makes all of them exact.
    pub estimate_factor: f64,
    /// Queues the gangs wait in.
    pub queues: Weighted<Arc<str>>,
    /// Priorities.
    pub priorities: Weighted<i32>,
    /// The share of multi-node gangs that can start with half of their members.
    pub elastic_fraction: f64,
    /// Topology constraints; none when `None`.
    pub topology: Option<Topology>,
}

impl Default for WorkloadSpec {
    /// Sizes have the shape that published GPU clusters share (Microsoft's Philly and ITP, SenseTime's Helios,
    /// Alibaba's PAI): most jobs fit one node, sizes are powers of two, and the few gangs of 8 nodes and more
    /// hold half of the GPUs. It is heavier in gangs than those logs (in ITP 2.5% of jobs leave their node),
    /// because gangs are what is studied here. Run times are wide: the mean is five times the median.
    fn default() -> Self {
        Self {
            jobs: 1_000,
            arrival: Arrival::Poisson { per_hour: 30.0 },
            sizes: vec![(1, 700), (2, 120), (4, 90), (8, 55), (16, 20), (32, 10), (64, 5)],
            gpus_per_member: 8,
            run_median: Span::mins(30),
            run_sigma: 1.8,
            estimate_factor: 2.0,
            queues: vec![("default".into(), 1)],
            priorities: vec![(0, 1)],
            elastic_fraction: 0.0,
            topology: None,
        }
    }
}

/// Why a workload cannot be drawn.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WorkloadError {
    /// No value has a weight.
    #[error("workload {field}: at least one value needs a weight above 0")]
    NothingToDraw {
        /// Which list.
        field: &'static str,
    },
    /// A number that makes no sense.
    #[error("workload {field}: {value} is not {wanted}")]
    OutOfRange {
        /// Which number.
        field: &'static str,
        /// What it is.
        value: f64,
        /// What it should be.
        wanted: &'static str,
    },
}

impl WorkloadSpec {
    /// Whether jobs can be drawn from this.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let Self { jobs: _, arrival, sizes, gpus_per_member, run_median: _, .. } = self;
        let Self {
            run_sigma, estimate_factor, queues, priorities, elastic_fraction, topology, ..
        } = self;
        match arrival {
            Arrival::Poisson { per_hour } => check_rate(*per_hour)?,
            Arrival::Diurnal { per_hour, peak_ratio } => {
                check_rate(*per_hour)?;
                check("peak_ratio", *peak_ratio, 1.0..=1e6, "between 1 and a million")?;
            }
        }
        check_weights("sizes", sizes)?;
        check_weights("queues", queues)?;
        check_weights("priorities", priorities)?;
        if sizes.iter().any(|(size, _)| *size == 0) {
            return Err(WorkloadError::OutOfRange {
                field: "sizes",
                value: 0.0,
                wanted: "at least 1",
            });
        }
        let most = MAX_DEVICES as f64;
        check(
            "gpus_per_member",
            f64::from(*gpus_per_member),
            0.0..=most,
            "what one node can have",
        )?;
        check("run_sigma", *run_sigma, 0.0..=5.0, "between 0 and 5")?;
        check("estimate_factor", *estimate_factor, 1.0..=1e3, "between 1 and 1000")?;
        check_share("elastic_fraction", *elastic_fraction)?;
        if let Some(Topology { level: _, required, preferred }) = topology {
            check_share("topology.required", *required)?;
            check_share("topology.preferred", *preferred)?;
            check_share("topology.required + preferred", required + preferred)?;
        }
        Ok(())
    }
}

fn check(
    field: &'static str,
    value: f64,
    range: std::ops::RangeInclusive<f64>,
    wanted: &'static str,
) -> Result<(), WorkloadError> {
    if range.contains(&value) {
        Ok(())
    } else {
        Err(WorkloadError::OutOfRange { field, value, wanted })
    }
}

/// From one a century to a thousand a millisecond.
fn check_rate(per_hour: f64) -> Result<(), WorkloadError> {
    check("per_hour", per_hour, 1e-6..=3.6e9, "an hourly rate above 0")
}

fn check_share(field: &'static str, value: f64) -> Result<(), WorkloadError> {
    check(field, value, 0.0..=1.0, "a share between 0 and 1")
}

fn check_weights<T>(field: &'static str, values: &Weighted<T>) -> Result<(), WorkloadError> {
    let any = values.iter().any(|(_, weight)| *weight > 0);
    if any { Ok(()) } else { Err(WorkloadError::NothingToDraw { field }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(change: impl FnOnce(&mut WorkloadSpec)) -> String {
        let mut spec = WorkloadSpec::default();
        change(&mut spec);
        spec.check().unwrap_err().to_string()
    }

    #[test]
    fn invalid_workload_is_refused_by_field() {
        assert_eq!(WorkloadSpec::default().check(), Ok(()));
        let cases = [
            (
                refusal(|spec| spec.sizes.clear()),
                "workload sizes: at least one value needs a weight above 0",
            ),
            (refusal(|spec| spec.sizes.push((0, 1))), "workload sizes: 0 is not at least 1"),
            (
                refusal(|spec| spec.run_sigma = f64::NAN),
                "workload run_sigma: NaN is not between 0 and 5",
            ),
            (
                refusal(|spec| spec.arrival = Arrival::Poisson { per_hour: 0.0 }),
                "workload per_hour: 0 is not an hourly rate above 0",
            ),
            (
                refusal(|spec| {
                    spec.topology =
                        Some(Topology { level: "rack".into(), required: 0.75, preferred: 0.5 });
                }),
                "workload topology.required + preferred: 1.25 is not a share between 0 and 1",
            ),
        ];
        for (refusal, expected) in cases {
            assert_eq!(refusal, expected);
        }
    }
}
