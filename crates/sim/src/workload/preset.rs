//! Workloads by name.

use std::fmt;
use std::str::FromStr;

use muster_core::time::Span;

use crate::workload::spec::{Arrival, Topology, WorkloadSpec};

/// A named workload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Preset {
    /// A pretraining cluster: few, large, hours-long gangs of whole 8-GPU nodes, most of which want one rack.
    /// Keeps some 2,600 GPUs busy.
    Training,
    /// A shared cluster: the published mix of sizes from two teams, more by day, some of it elastic. Keeps
    /// some 1,600 GPUs busy.
    Mixed,
    /// A working-hours rush: short gangs, twenty times as many in the afternoon as at night. Keeps some 300
    /// GPUs busy on average, and twice that at the peak.
    Bursty,
}

impl Preset {
    /// All presets, in the order in which they are listed.
    pub const ALL: [Self; 3] = [Self::Training, Self::Mixed, Self::Bursty];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Training => "training",
            Self::Mixed => "mixed",
            Self::Bursty => "bursty",
        }
    }

    /// The workload, to be used as it is or changed.
    pub fn spec(self) -> WorkloadSpec {
        match self {
            Self::Training => WorkloadSpec {
                arrival: Arrival::Poisson { per_hour: 4.0 },
                sizes: vec![(1, 15), (2, 15), (4, 20), (8, 25), (16, 15), (32, 7), (64, 3)],
                run_median: Span::hours(4),
                run_sigma: 1.2,
                topology: Some(Topology { level: "rack".into(), required: 0.25, preferred: 0.5 }),
                ..WorkloadSpec::default()
            },
            Self::Mixed => WorkloadSpec {
                arrival: Arrival::Diurnal { per_hour: 30.0, peak_ratio: 3.0 },
                queues: vec![("research".into(), 2), ("product".into(), 1)],
                priorities: vec![(0, 8), (100, 2)],
                elastic_fraction: 0.3,
                topology: Some(Topology { level: "rack".into(), required: 0.1, preferred: 0.3 }),
                ..WorkloadSpec::default()
            },
            Self::Bursty => WorkloadSpec {
                arrival: Arrival::Diurnal { per_hour: 60.0, peak_ratio: 20.0 },
                sizes: vec![(1, 60), (2, 20), (4, 12), (8, 6), (16, 2)],
                run_median: Span::mins(10),
                run_sigma: 1.0,
                ..WorkloadSpec::default()
            },
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No workload has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a workload: known are {known}", known = Preset::ALL.map(Preset::name).join(", "))]
pub struct UnknownPreset(pub String);

impl FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(text: &str) -> Result<Self, UnknownPreset> {
        let found = Self::ALL.into_iter().find(|preset| preset.name() == text);
        found.ok_or_else(|| UnknownPreset(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_found_by_its_name_and_can_be_drawn() {
        for preset in Preset::ALL {
            assert_eq!(preset.to_string().parse(), Ok(preset));
            assert_eq!(preset.spec().generate(1).map(|jobs| jobs.len()), Ok(1_000), "{preset}");
        }
    }

    #[test]
    fn unknown_name_is_refused_with_the_known_ones() {
        let refusal = "Mixed".parse::<Preset>().unwrap_err().to_string();
        assert_eq!(refusal, "`Mixed` is not a workload: known are training, mixed, bursty");
    }
}
