//! Properties of a workload, over a few thousand jobs of one seed.

use muster_core::time::Time;

use crate::workload::generate::*;
use crate::workload::preset::Preset;

fn jobs(change: impl FnOnce(&mut WorkloadSpec)) -> Vec<Job> {
    let mut spec = WorkloadSpec { jobs: 4_000, ..Preset::Mixed.spec() };
    change(&mut spec);
    spec.generate(7).unwrap()
}

fn share(jobs: &[Job], of: impl Fn(&Job) -> bool) -> f64 {
    jobs.iter().filter(|job| of(job)).count() as f64 / jobs.len() as f64
}

#[test]
fn same_seed_gives_the_same_jobs_and_another_seed_others() {
    for preset in Preset::ALL {
        let text = |seed| format!("{:?}", preset.spec().generate(seed).unwrap());
        assert_eq!(text(7), text(7), "{preset}");
        assert_ne!(text(7), text(8), "{preset}");
    }
}

/// Fixed values, so that an upgrade or another platform that draws differently is noticed.
#[test]
fn jobs_of_a_seed_never_change() {
    let line = |job: &Job| {
        let role = &job.gang.roles[0];
        let estimate = job.gang.expected_duration.unwrap();
        let (submit, run) = (job.submit.0, job.run);
        format!(
            "{submit} {}..{} {run} of {estimate} {} {}",
            role.min, role.max, job.gang.queue, job.gang.priority
        )
    };
    let lines: Vec<String> = jobs(|_| {}).iter().take(6).map(line).collect();
    let expected = [
        "12666 32..32 3m38s of 4m57s product 0",
        "260179 1..1 22m42s of 26m55s research 0",
        "488282 2..2 14m15s of 42m9s research 0",
        "576681 1..1 8m29s of 14m9s research 100",
        "608441 1..1 2h1m12s of 3h26m20s product 100",
        "658592 1..1 6m31s of 11m32s product 0",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn jobs_are_sorted_by_submit_time() {
    let jobs = jobs(|_| {});
    assert!(jobs.is_sorted_by_key(|job| job.submit));
    assert!(jobs[0].submit > Time::ZERO);
}

#[test]
fn changed_setting_changes_only_its_own_trait() {
    let plain = |spec: &mut WorkloadSpec| {
        spec.elastic_fraction = 0.0;
        spec.topology = None;
    };
    let rigid = jobs(plain);
    let mut changed = jobs(|spec| spec.elastic_fraction = 0.9);
    for job in &mut changed {
        job.gang.roles[0].min = job.gang.roles[0].max;
        job.gang.closeness = None;
    }
    assert_eq!(rigid, changed);
}

#[test]
fn shares_of_traits_are_as_specified() {
    let jobs = jobs(|spec| {
        spec.elastic_fraction = 0.25;
        spec.topology = Some(Topology { level: "rack".into(), required: 0.2, preferred: 0.5 });
    });
    let (multi, single): (Vec<Job>, Vec<Job>) =
        jobs.into_iter().partition(|job| job.gang.roles[0].max > 1);
    let near =
        |got: f64, asked: f64| assert!((got - asked).abs() < 0.05, "{got} is not near {asked}");
    near(single.len() as f64 / 4_000.0, 0.7);
    near(share(&multi, |job| job.gang.roles[0].min < job.gang.roles[0].max), 0.25);
    near(share(&multi, |job| matches!(job.gang.closeness, Some(Closeness::Required(_)))), 0.2);
    near(share(&multi, |job| matches!(job.gang.closeness, Some(Closeness::Preferred(_)))), 0.5);
    near(share(&multi, |job| &*job.gang.queue == "research"), 2.0 / 3.0);
    near(share(&multi, |job| job.gang.priority == 100), 0.2);
    assert!(single.iter().all(|job| job.gang.closeness.is_none() && job.gang.roles[0].min == 1));
}

#[test]
fn run_times_have_the_specified_median_and_spread() {
    let jobs = jobs(|spec| {
        spec.run_median = Span::hours(1);
        spec.run_sigma = 1.0;
    });
    let mut runs: Vec<f64> = jobs.iter().map(|job| job.run.as_secs_f64()).collect();
    runs.sort_by(f64::total_cmp);
    let at = |quantile: f64| runs[(quantile * runs.len() as f64) as usize];
    assert!((3_400.0..3_800.0).contains(&at(0.5)), "{}", at(0.5));
    let spread = (at(0.8413) / at(0.5)).ln();
    assert!((0.92..1.08).contains(&spread), "one sigma up is a factor of e, not e^{spread}");
}

#[test]
fn estimates_have_the_specified_factor_and_are_never_too_low() {
    let jobs = jobs(|spec| spec.estimate_factor = 3.0);
    let factor =
        |job: &Job| job.gang.expected_duration.unwrap().as_secs_f64() / job.run.as_secs_f64();
    let mean = jobs.iter().map(factor).sum::<f64>() / jobs.len() as f64;
    assert!((2.9..3.1).contains(&mean), "{mean}");
    assert!(jobs.iter().all(|job| job.gang.expected_duration.unwrap() >= job.run));
    let exact = crate::workload::generate::tests::jobs(|spec| spec.estimate_factor = 1.0);
    assert!(exact.iter().all(|job| job.gang.expected_duration == Some(job.run)));
}

#[test]
fn members_request_the_specified_gpus_or_none() {
    assert!(jobs(|_| {}).iter().all(|job| job.gang.roles[0].request.gpu_milli() == 8_000));
    assert!(
        jobs(|spec| spec.gpus_per_member = 0)
            .iter()
            .all(|job| job.gang.roles[0].request.gpu.is_none())
    );
}
