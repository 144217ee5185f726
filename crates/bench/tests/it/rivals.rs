//! Each rival in small cases, beside Muster in the same case.

use muster_bench::rivals::{AcceptedTerms, Market, PerPodTerms, Rival, Run, SerialTerms, run};
use muster_core::order::ClaimFailure;
use muster_core::pool::PoolSpec;
use muster_core::time::{Span, Time};
use muster_plan::Policy;
use muster_sim::accounts::Outcome;
use muster_sim::accounts::{State, Tally, Work};
use muster_sim::cloud::{CloudModel, StockModel};
use muster_sim::{Job, Setup, Sim, SimOptions};
use muster_testkit::build;

use crate::two_zones::{exact_cloud, job, two_zones};

fn per_pod() -> Rival {
    Rival::PerPod(PerPodTerms::default())
}
fn accepted() -> Rival {
    Rival::AcceptedIsReady(AcceptedTerms::default())
}
fn serial() -> Rival {
    Rival::SerialFailover(SerialTerms::default())
}

fn market(pools: Vec<(PoolSpec, CloudModel)>, seed: u64) -> Market {
    Market { pools, gang_failures: None, seed }
}

/// Zones `a` and `b` with 8-GPU nodes that boot in exactly three minutes, except for these.
fn play(rival: &Rival, failures: &[(&str, u32, ClaimFailure)], jobs: &[Job]) -> Run {
    let Setup { pools, .. } = two_zones(64, exact_cloud(failures));
    run(rival, market(pools, 1), jobs, Time::MAX).expect("comparable jobs")
}

fn eight_by_eight() -> Vec<Job> {
    vec![job(build::gang("train", 8, 8), 0, 600)]
}

/// Seconds each job waited.
fn waits(run: &Run) -> Vec<u64> {
    let wait = |outcome: &Outcome| outcome.wait().expect("it started").0 / 1_000;
    run.accounts.outcomes().iter().map(wait).collect()
}

fn work(run: &Run) -> Work {
    run.accounts.meter().work()
}
fn bought(run: &Run) -> Tally {
    run.accounts.meter().bought()
}

fn hours(gpu_ms: u64) -> f64 {
    gpu_ms as f64 / 3_600_000.0
}

#[test]
fn per_pod_seven_members_wait_at_the_barrier_for_a_node_that_never_joins() {
    let run = play(&per_pod(), &[("a", 8, ClaimFailure::BootFailed)], &eight_by_eight());
    // Ready after 3 minutes; the eighth is given up after 15 and requested again.
    assert_eq!(waits(&run), [900 + 180]);
    assert_eq!(work(&run).partial_starts, 1);
    assert_eq!(hours(work(&run).wasted_gpu_ms), 7.0 * 8.0 * 900.0 / 3_600.0);
    assert_eq!(run.accounts.meter().claims(), 9);
}

#[test]
fn per_pod_node_without_gpus_hides_the_demand_until_it_is_deleted() {
    let run = play(&per_pod(), &[("a", 8, ClaimFailure::GpusMissing)], &eight_by_eight());
    assert_eq!(waits(&run), [180 + 3_600 + 180]);
    assert_eq!(hours(work(&run).wasted_gpu_ms), 7.0 * 8.0 * 3_780.0 / 3_600.0);
}

#[test]
fn per_pod_stock_out_moves_on_to_the_next_cheapest_at_once() {
    let run = play(&per_pod(), &[("a", 8, ClaimFailure::StockOut)], &eight_by_eight());
    assert_eq!(waits(&run), [4 + 180]);
    assert_eq!(hours(work(&run).wasted_gpu_ms), 7.0 * 8.0 * 4.0 / 3_600.0);
}

#[test]
fn accepted_members_start_before_the_missing_node_times_out() {
    for failure in [ClaimFailure::GpusMissing, ClaimFailure::BootFailed] {
        let run = play(&accepted(), &[("a", 8, failure)], &eight_by_eight());
        // The timeout is 15 minutes; then it is requested in the other zone.
        assert_eq!(waits(&run), [900 + 180]);
        assert_eq!(work(&run).partial_starts, 1);
        assert_eq!(hours(work(&run).wasted_gpu_ms), 7.0 * 8.0 * 900.0 / 3_600.0);
    }
}

#[test]
fn accepted_rest_of_a_gang_goes_to_another_zone_after_a_stock_out() {
    let short = [("a", 7, ClaimFailure::StockOut), ("a", 8, ClaimFailure::StockOut)];
    let run = play(&accepted(), &short, &eight_by_eight());
    assert_eq!(waits(&run), [4 + 180]);
    assert_eq!(run.accounts.meter().claims(), 10);
    assert_eq!(work(&run).partial_starts, 1);
}

#[test]
fn serial_one_failure_releases_all_and_the_next_zone_is_tried() {
    let run = play(&serial(), &[("a", 8, ClaimFailure::BootFailed)], &eight_by_eight());
    // As Muster without top-ups: the eighth fails after 211 seconds, the others are ready after 180.
    assert_eq!(waits(&run), [211 + 180]);
    assert_eq!(work(&run).partial_starts, 0);
    assert_eq!(work(&run).wasted_gpu_ms, 0);
    assert_eq!((run.accounts.meter().claims(), run.accounts.rollbacks), (16, 1));
    // Seven nodes were ready for half a minute and released.
    assert_eq!(bought(&run).empty_node_ms() / 1_000, 7 * 31 + 5);
}

#[test]
fn serial_tries_every_zone_and_then_pauses() {
    let out = [("a", 1, ClaimFailure::StockOut), ("b", 1, ClaimFailure::StockOut)];
    let run = play(&serial(), &out, &[job(build::gang("train", 1, 8), 0, 600)]);
    assert_eq!(waits(&run), [4 + 4 + 30 + 180]);
}

#[test]
fn free_node_is_reused_except_by_serial() {
    let jobs =
        [job(build::gang("first", 1, 8), 0, 600), job(build::gang("second", 1, 4), 1_000, 60)];
    for rival in [per_pod(), accepted()] {
        let run = play(&rival, &[], &jobs);
        assert_eq!(waits(&run), [180, 0], "{rival:?}");
        assert_eq!(run.accounts.meter().claims(), 1);
        // Idle from 780 to 1,000 and ten minutes in the end; half of it stranded for a minute.
        assert_eq!(bought(&run).empty_node_ms() / 1_000, 220 + 600);
        assert_eq!(bought(&run).gpu_ms(State::Stranded) / 1_000, 4 * 60);
    }
    assert_eq!(waits(&play(&serial(), &[], &jobs)), [180, 180]);
}

#[test]
fn jobs_that_rivals_do_not_support_are_refused() {
    let Setup { pools, .. } = two_zones(8, exact_cloud(&[]));
    let giant = [job(build::gang("giant", 1, 9), 0, 60)];
    let refusal = run(&per_pod(), market(pools, 1), &giant, Time::MAX).unwrap_err().to_string();
    assert_eq!(refusal, "gang giant: no offering has 9 GPUs in one machine");
}

/// A cloud with every fault, and often.
fn storm() -> CloudModel {
    CloudModel {
        boot_failed: 0.1,
        gpus_missing: 0.05,
        stock: Some(StockModel { mean_up: Span::mins(40), mean_down: Span::mins(20) }),
        mean_time_to_failure: Some(Span::hours(6)),
        ..CloudModel::default()
    }
}

#[test]
fn every_job_ends_and_every_gpu_second_is_accounted_for_under_faults() {
    let jobs: Vec<Job> = (0..30)
        .map(|i| {
            let (members, gpus) = [(1, 1), (4, 8), (1, 4), (3, 2), (8, 8)][i as usize % 5];
            job(build::gang(&format!("g{i}"), members, gpus), 200 * i, 1_000 + 37 * i)
        })
        .collect();
    let asked = |job: &Job| {
        let role = &job.gang.roles[0];
        u64::from(role.min) * role.request.gpu_milli() * job.run.0 / 1_000
    };
    let asked: u64 = jobs.iter().map(asked).sum();
    for rival in [per_pod(), accepted(), serial()] {
        let mut restarts = 0;
        for seed in 0..4 {
            let Setup { pools, .. } = two_zones(64, storm());
            let run = run(&rival, market(pools, seed), &jobs, Time::MAX).unwrap();
            let (accounts, done, bought) = (&run.accounts, work(&run), bought(&run));
            let at = format!("{rival:?}, seed {seed}");
            assert!(accounts.outcomes().iter().all(|outcome| outcome.ended.is_some()), "{at}");
            assert_eq!(done.busy_gpu_ms - done.lost_gpu_ms, asked, "{at}");
            // A member that runs works, or waits at the barrier.
            assert_eq!(
                bought.gpu_ms(State::Running),
                done.busy_gpu_ms + done.wasted_gpu_ms,
                "{at}"
            );
            assert_eq!(bought.gpu[State::Gathering], 0, "{at}: rivals have no orders");
            let partial = matches!(rival, Rival::PerPod(_) | Rival::AcceptedIsReady(_));
            assert_eq!(done.partial_starts > 0, partial, "{at}");
            restarts += accounts.outcomes().iter().map(|outcome| outcome.restarts).sum::<u32>();
        }
        assert!(restarts > 0, "{rival:?}: the storm broke nothing");
    }
}

/// Machines fail under the work of gangs and not by themselves: the same gangs lose the same under every strategy.
#[test]
fn every_strategy_loses_the_same_work_to_gang_failures() {
    let jobs: Vec<Job> = (0..12)
        .map(|i| job(build::gang(&format!("g{i}"), 1 + i as u32 % 4, 8), 900 * i, 20_000 + 700 * i))
        .collect();
    let (gang_failures, setup) = (Some(Span::hours(200)), || two_zones(64, exact_cloud(&[])));
    for seed in 0..4 {
        let lost = |work: Work| work.lost_gpu_ms;
        let setup = Setup { gang_failures, jobs: jobs.clone(), ..setup() };
        let market = Market { pools: setup.pools.clone(), gang_failures, seed };
        let options = SimOptions { seed, check: true, ..SimOptions::default() };
        let mut sim = Sim::new(setup, Policy::default(), options).expect("a sound setup");
        sim.run(Time::MAX);
        assert_eq!(sim.violations(), []);
        let muster = lost(sim.accounts().meter().work());
        assert!(muster > 0, "seed {seed}: nothing was lost");
        for rival in [per_pod(), accepted(), serial()] {
            let run = run(&rival, market.clone(), &jobs, Time::MAX).expect("comparable jobs");
            assert_eq!(lost(work(&run)), muster, "{rival:?}, seed {seed}");
        }
    }
}
