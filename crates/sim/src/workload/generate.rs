//! Draws the jobs of a workload.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use muster_core::device::{GpuRequest, WHOLE};
use muster_core::gang::{Closeness, GangSpec, Provisioning, Request, RoleSpec};
use muster_core::resource::{CPU, NamedAmounts};
use muster_core::time::Span;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::job::Job;
use crate::workload::arrival::Arrivals;
use crate::workload::spec::{Topology, Weighted, WorkloadError, WorkloadSpec};

/// Some 30 years: longer than any job, short enough that its estimate does not overflow.
const LONGEST_SECS: f64 = 1e9;

impl WorkloadSpec {
    /// The jobs of this workload for one seed, by submit time and named `job-1`, `job-2`, ...
    ///
    /// Every trait has random numbers of its own, so that a changed setting changes nothing else:
    /// with more elastic gangs the same gangs still arrive at the same moments.
    pub fn generate(&self, seed: u64) -> Result<Vec<Job>, WorkloadError> {
        self.check()?;
        let mut draw = Draw::new(self, seed);
        Ok((1..=self.jobs).map(|number| draw.job(number)).collect())
    }
}

/// A trait with random numbers of its own. The order is part of what a seed means: append only.
#[derive(Clone, Copy)]
enum Trait {
    Arrival,
    Size,
    Run,
    Estimate,
    Queue,
    Priority,
    Elastic,
    Topology,
}

fn numbers_for(drawn: Trait, seed: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(drawn as u64);
    rng
}

struct Draw<'a> {
    spec: &'a WorkloadSpec,
    arrivals: Arrivals,
    size: ChaCha8Rng,
    run: ChaCha8Rng,
    estimate: ChaCha8Rng,
    queue: ChaCha8Rng,
    priority: ChaCha8Rng,
    elastic: ChaCha8Rng,
    topology: ChaCha8Rng,
    nobody: Arc<str>,
    role: Arc<str>,
    request: Request,
}

impl<'a> Draw<'a> {
    fn new(spec: &'a WorkloadSpec, seed: u64) -> Self {
        let gpus = GpuRequest {
            resource: "nvidia.com/gpu".into(),
            count: spec.gpus_per_member,
            share: WHOLE,
        };
        Self {
            spec,
            arrivals: Arrivals::new(spec.arrival, numbers_for(Trait::Arrival, seed)),
            size: numbers_for(Trait::Size, seed),
            run: numbers_for(Trait::Run, seed),
            estimate: numbers_for(Trait::Estimate, seed),
            queue: numbers_for(Trait::Queue, seed),
            priority: numbers_for(Trait::Priority, seed),
            elastic: numbers_for(Trait::Elastic, seed),
            topology: numbers_for(Trait::Topology, seed),
            nobody: "".into(),
            role: "worker".into(),
            request: Request {
                amounts: NamedAmounts::from([(CPU.into(), 1_000)]),
                gpu: (spec.gpus_per_member > 0).then_some(gpus),
            },
        }
    }

    fn job(&mut self, number: usize) -> Job {
        let spec = self.spec;
        let size = *pick(&spec.sizes, &mut self.size);
        let run = self.run();
        // Both are drawn for gangs of one as well, to keep the draws of later gangs in place.
        let elastic = self.elastic.random_bool(spec.elastic_fraction) && size > 1;
        let closeness = self.closeness().filter(|_| size > 1);
        let role = RoleSpec {
            name: self.role.clone(),
            min: if elastic { size / 2 } else { size },
            max: size,
            request: self.request.clone(),
            constraints: Default::default(),
            spread: Vec::new(),
        };
        let gang = GangSpec {
            name: format!("job-{number}").into(),
            queue: pick(&spec.queues, &mut self.queue).clone(),
            user: self.nobody.clone(),
            priority: *pick(&spec.priorities, &mut self.priority),
            priority_is_declared: false,
            roles: vec![role],
            closeness,
            provisioning: Provisioning::default(),
            expected_duration: Some(self.estimate(run)),
            deadline: None,
            cost_of_waiting: None,
            disruption: muster_core::gang::Disruption::default(),
            scaling: Default::default(),
        };
        Job::new(gang, self.arrivals.next(), run)
    }

    /// Whole seconds, at least one.
    fn run(&mut self) -> Span {
        let normal: f64 = StandardNormal.sample(&mut self.run);
        let secs = self.spec.run_median.as_secs_f64() * (self.spec.run_sigma * normal).exp();
        Span::from_secs_f64(secs.round().clamp(1.0, LONGEST_SECS))
    }

    /// Whole seconds, never less than the true run time.
    fn estimate(&mut self, run: Span) -> Span {
        let excess = 2.0 * (self.spec.estimate_factor - 1.0) * self.estimate.random::<f64>();
        Span::from_secs_f64((run.as_secs_f64() * (1.0 + excess)).round())
    }

    fn closeness(&mut self) -> Option<Closeness> {
        let Topology { level, required, preferred } = self.spec.topology.as_ref()?;
        let dice = self.topology.random::<f64>();
        if dice < *required {
            Some(Closeness::Required(level.clone()))
        } else {
            (dice < required + preferred).then(|| Closeness::Preferred(level.clone()))
        }
    }
}

/// One of the values, by weight. The spec was checked: some weight is above zero.
fn pick<'a, T>(values: &'a Weighted<T>, rng: &mut ChaCha8Rng) -> &'a T {
    let total: u64 = values.iter().map(|(_, weight)| u64::from(*weight)).sum();
    let mut dice = rng.random_range(0..total);
    for (value, weight) in values {
        match dice.checked_sub(u64::from(*weight)) {
            None => return value,
            Some(rest) => dice = rest,
        }
    }
    unreachable!("the dice stay below the sum of the weights")
}
