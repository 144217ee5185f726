//! The cloud alone: independence of what a strategy requests, and its statistics over long times.

use muster_core::id::{ClaimId, OfferingRef, PoolIdx};
use muster_core::money::Money;
use muster_core::order::ClaimFailure;
use muster_core::pool::{OfferingSpec, PoolLimits, PoolSpec};
use muster_core::resource::NamedAmounts;
use muster_core::time::{Span, Time};

use crate::cloud::{Availability, Cloud, CloudModel, Stage, StockModel};

const STOCK: StockModel = StockModel { mean_up: Span::hours(10), mean_down: Span::hours(2) };

fn offering(zone: &str, region: &str) -> OfferingSpec {
    OfferingSpec {
        instance_type: "gpu".into(),
        zone: zone.into(),
        region: region.into(),
        capacity_type: "spot".into(),
        price: Money(1),
        allocatable: NamedAmounts::new(),
        gpu: None,
        gpus: 8,
        labels: Default::default(),
        taints: Vec::new(),
        max: None,
        boot_time: Span::secs(255),
        start_time: None,
    }
}

/// Zones a and b in the west, c in the east.
fn cloud(model: CloudModel, seed: u64) -> Cloud {
    let pool = PoolSpec {
        name: "pool".into(),
        tier: "spot".into(),
        offerings: vec![offering("a", "west"), offering("b", "west"), offering("c", "east")],
        limits: PoolLimits::default(),
        idle_after: Span::mins(10),
        ..PoolSpec::default()
    };
    Cloud::new(vec![(pool, model)], seed)
}

fn at(slot: u16) -> OfferingRef {
    OfferingRef { pool: PoolIdx(0), slot }
}

fn mins(mins: u64) -> Time {
    Time::ZERO + Span::mins(mins)
}

/// Requests the machine of a claim; returns why it is refused, if it is.
fn refused(cloud: &mut Cloud, now: Time, claim: u32, slot: u16) -> Option<ClaimFailure> {
    match cloud.request(now, ClaimId(claim), at(slot))[..] {
        [(_, Stage::Fails(failure))] => Some(failure),
        _ => None,
    }
}

fn recorded(counts: &[u32]) -> CloudModel {
    let record = Availability::new(Span::mins(10), counts.to_vec()).unwrap();
    CloudModel { recorded: [("a".into(), record.into())].into(), ..CloudModel::default() }
}

/// Whether each of the three is in stock, every twenty minutes for a long time.
fn samples(seed: u64) -> Vec<[bool; 3]> {
    let mut cloud = cloud(CloudModel { stock: Some(STOCK), ..CloudModel::default() }, seed);
    let mut sample = |now| [0, 1, 2].map(|slot| cloud.supply.is_up(now, at(slot)));
    (0..300_000).map(|step| sample(mins(step * 20))).collect()
}

#[test]
fn offering_is_out_of_stock_as_modelled_region_and_provider_included() {
    let samples = samples(1);
    for slot in 0..3 {
        let out = samples.iter().filter(|up| !up[slot]).count() as f64 / samples.len() as f64;
        assert!((out - 1.0 / 6.0).abs() < 0.01, "out {out} of the time, not 2 h of 12");
        // Sampling misses outages that lie between two samples, so this is a little above two hours.
        let ends = samples.windows(2).filter(|two| !two[0][slot] && two[1][slot]).count();
        let mean = out * samples.len() as f64 / ends as f64 / 3.0;
        assert!((1.9..2.6).contains(&mean), "an outage lasts {mean} hours");
    }
}

#[test]
fn zones_of_a_region_are_correlated_as_measured_and_regions_less_so() {
    let samples = samples(2);
    let number = samples.len() as f64;
    let correlation = |one: usize, other: usize| {
        let mean = |of: &dyn Fn(&[bool; 3]) -> bool| {
            samples.iter().filter(|up| of(up)).count() as f64 / number
        };
        let (p, q) = (mean(&|up| up[one]), mean(&|up| up[other]));
        let both = mean(&|up| up[one] && up[other]);
        (both - p * q) / (p * (1.0 - p) * q * (1.0 - q)).sqrt()
    };
    let (within, between) = (correlation(0, 1), correlation(0, 2));
    assert!((within - 0.4).abs() < 0.04, "within a region: {within}");
    assert!((between - 0.14).abs() < 0.04, "between regions: {between}");
}

#[test]
fn requests_at_different_times_meet_the_same_outages() {
    let model = CloudModel { stock: Some(STOCK), ..CloudModel::default() };
    let (mut eager, mut patient) = (cloud(model.clone(), 7), cloud(model, 7));
    for step in 0..500 {
        eager.request(mins(step * 7), ClaimId(step as u32), at((step % 2) as u16));
        eager.failure(mins(step * 7), at(0));
        eager.release(mins(step * 7), ClaimId(step as u32));
    }
    for step in 500..5_000 {
        for slot in 0..3 {
            let now = mins(step * 7);
            assert_eq!(eager.supply.is_up(now, at(slot)), patient.supply.is_up(now, at(slot)));
        }
    }
}

#[test]
fn nth_machine_of_an_offering_is_the_same_whenever_it_is_requested() {
    let model = CloudModel { boot_failed: 0.2, gpus_missing: 0.2, ..CloudModel::default() };
    let (mut one, mut other) = (cloud(model.clone(), 7), cloud(model, 7));
    for claim in 0..50 {
        let life = one.request(Time::ZERO, ClaimId(claim), at(0));
        other.request(mins(3), ClaimId(1_000 + claim), at(1));
        let later = other.request(mins(9), ClaimId(claim), at(0));
        let back = |(at, stage): &(Time, Stage)| (*at - Span::mins(9), *stage);
        assert_eq!(life, later.iter().map(back).collect::<Vec<_>>());
    }
}

#[test]
fn sometimes_few_machines_are_left_and_released_ones_are_available_again() {
    let model = CloudModel { stock: Some(STOCK), ..CloudModel::default() };
    let mut few = 0;
    for seed in 0..200 {
        let mut cloud = cloud(model.clone(), seed);
        let granted = (0..20)
            .take_while(|claim| refused(&mut cloud, Time::ZERO, *claim, 0).is_none())
            .count();
        if (1..20).contains(&granted) {
            few += 1;
            assert!(cloud.release(Time::ZERO, ClaimId(0)).is_some());
            assert_eq!(refused(&mut cloud, Time::ZERO, 100, 0), None);
            let again = refused(&mut cloud, Time::ZERO, 101, 0);
            assert_eq!(again, Some(ClaimFailure::StockOut));
        }
    }
    assert!((10..50).contains(&few), "{few} of 200 times");
}

#[test]
fn recorded_zone_grants_as_many_machines_as_recorded() {
    let mut cloud = cloud(recorded(&[2, 0, 3]), 1);
    let out = Some(ClaimFailure::StockOut);
    assert_eq!([0, 1, 2].map(|claim| refused(&mut cloud, mins(0), claim, 0)), [None, None, out]);
    assert_eq!(refused(&mut cloud, mins(0), 3, 1), None, "nothing is recorded of zone b");
    assert!(cloud.release(mins(5), ClaimId(0)).is_some());
    assert_eq!([4, 5].map(|claim| refused(&mut cloud, mins(5), claim, 0)), [None, out]);
    assert_eq!(refused(&mut cloud, mins(15), 6, 0), out);
    assert_eq!([7, 8].map(|claim| refused(&mut cloud, mins(25), claim, 0)), [None, out]);
    // The record starts over: two are available again, and three are held.
    assert_eq!(refused(&mut cloud, mins(30), 9, 0), out);
}

#[test]
fn youngest_machines_are_reclaimed_when_the_record_drops() {
    let mut cloud = cloud(recorded(&[3, 1, 0]), 1);
    for claim in 0..3 {
        assert_eq!(refused(&mut cloud, mins(2 * u64::from(claim)), claim, 0), None);
    }
    assert_eq!((cloud.reclaimed(mins(9)), cloud.next_reclaim(mins(9))), (vec![], Some(mins(10))));
    assert_eq!(cloud.reclaimed(mins(10)), [ClaimId(2), ClaimId(1)]);
    assert_eq!(cloud.reclaimed(mins(10)), [], "each is named once");
    let wanted_back = |claim| cloud.machines[&ClaimId(claim)].is_wanted_back();
    assert!(wanted_back(1) && !wanted_back(0));
    // Releasing a reclaimed machine returns nothing to the stock.
    assert!(cloud.release(mins(11), ClaimId(1)).is_some());
    assert_eq!(refused(&mut cloud, mins(11), 3, 0), Some(ClaimFailure::StockOut));
    assert_eq!(cloud.next_reclaim(mins(11)), Some(mins(20)));
    cloud.stop_faults();
    assert_eq!((cloud.reclaimed(mins(20)), cloud.next_reclaim(mins(20))), (vec![], None));
}

#[test]
fn forced_outage_holds_in_its_region_until_it_ends() {
    let mut cloud = cloud(CloudModel::default(), 1);
    cloud.out_of_stock(Some("west"), mins(10));
    cloud.out_of_stock(Some("west"), mins(5));
    let out = Some(ClaimFailure::StockOut);
    assert_eq!(
        [0, 1, 2].map(|slot| refused(&mut cloud, mins(9), slot.into(), slot)),
        [out, out, None]
    );
    assert_eq!(refused(&mut cloud, mins(10), 3, 0), None);
    cloud.out_of_stock(None, mins(20));
    assert_eq!([4, 5].map(|claim| refused(&mut cloud, mins(19), claim, 2)), [out, out]);
    cloud.stop_faults();
    assert_eq!(refused(&mut cloud, mins(19), 6, 2), None);
}

#[test]
fn throttled_claim_can_be_retried() {
    let mut cloud = cloud(CloudModel { throttled: 0.5, ..CloudModel::default() }, 1);
    let mut tries = Vec::new();
    for claim in (0..200).map(ClaimId) {
        for n in 1.. {
            match cloud.request(mins(0), claim, at(0))[..] {
                [(when, Stage::Fails(failure))] => {
                    assert_eq!((when, failure), (mins(0) + Span::secs(3), ClaimFailure::Throttled));
                    assert!(failure.is_transient());
                    cloud.machines.remove(&claim);
                }
                _ => {
                    tries.push(n);
                    break;
                }
            }
        }
    }
    let mean = f64::from(tries.iter().sum::<u32>()) / tries.len() as f64;
    assert!((1.7..2.3).contains(&mean), "{mean} tries");
    assert!(cloud.request(mins(0), ClaimId(0), at(0)).is_empty(), "it has its machine");
}

#[test]
fn stopped_machine_starts_again_in_its_start_time() {
    let model = CloudModel { sigma: 0.0, ..CloudModel::default() };
    let mut cloud = cloud(model, 1);
    let claim = ClaimId(0);
    cloud.request(mins(0), claim, at(0));
    assert_eq!(cloud.stop(mins(1), claim), None, "it is not up yet");
    assert_eq!(cloud.start(mins(5), claim, Span::secs(51)), []);
    let stopped = cloud.stop(mins(5), claim).expect("it is up");
    assert!((mins(5)..mins(6)).contains(&stopped));
    assert_eq!(cloud.stop(mins(5), claim), None);
    assert_eq!(cloud.machines[&claim].billed_from, None);
    let after = |secs| mins(30) + Span::secs(secs);
    let expected =
        [(after(30), Stage::Launched), (after(39), Stage::Joined), (after(51), Stage::Shows(8))];
    assert_eq!(cloud.start(mins(30), claim, Span::secs(51)), expected);
    assert!(cloud.stop(mins(31), claim).is_some(), "and so again");
    assert!(cloud.release(mins(32), claim).is_some());
    assert_eq!(cloud.start(mins(33), claim, Span::secs(51)), []);
}

#[test]
fn stopped_machine_gives_up_its_place_and_may_not_start_again() {
    let mut cloud = cloud(recorded(&[1]), 1);
    assert_eq!(refused(&mut cloud, mins(0), 0, 0), None);
    assert_eq!(refused(&mut cloud, mins(30), 1, 0), Some(ClaimFailure::StockOut));
    assert!(cloud.stop(mins(30), ClaimId(0)).is_some());
    assert_eq!(refused(&mut cloud, mins(40), 2, 0), None);
    let start = cloud.start(mins(50), ClaimId(0), Span::mins(1));
    assert_eq!(start, [(mins(50) + Span::secs(4), Stage::Fails(ClaimFailure::StockOut))]);
    assert!(cloud.release(mins(60), ClaimId(2)).is_some());
    assert_eq!(cloud.start(mins(60), ClaimId(0), Span::mins(1)).len(), 3);
    assert_eq!(refused(&mut cloud, mins(60), 3, 0), Some(ClaimFailure::StockOut));
}
