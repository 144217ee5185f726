//! Compares the control plane's records with what its workers wrote down.

use std::collections::{BTreeMap, BTreeSet};

use super::super::control_plane::{ControlPlane, TestDir};
use super::test_gangs::{Scenario, TestGang};

/// The records of the workers of one run: the ranks that began and those that ended, with their times; and the number
/// of ranks.
#[derive(Default)]
struct Ran {
    size: u64,
    began: BTreeMap<u64, u128>,
    done: BTreeMap<u64, u128>,
}

impl Ran {
    fn all(&self) -> BTreeSet<u64> {
        (0..self.size).collect()
    }

    fn is_done(&self) -> bool {
        self.done.keys().copied().collect::<BTreeSet<_>>() == self.all()
    }

    /// The time from the first start to the last end, times the number of members, in seconds.
    fn worked(&self) -> f64 {
        let first = self.began.values().min().copied().unwrap_or_default();
        let last = self.done.values().max().copied().unwrap_or(first);
        (last - first) as f64 / 1e9 * self.size as f64
    }
}

type Runs = BTreeMap<u64, Ran>;

fn read_log(text: &str) -> BTreeMap<String, Runs> {
    let mut all: BTreeMap<String, Runs> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [what, gang, run, rank, size, at] = words.as_slice() else {
            panic!("half a line: {line}")
        };
        let number = |text: &str| text.parse::<u64>().expect("a number");
        let ran = all.entry((*gang).to_owned()).or_default().entry(number(run)).or_default();
        ran.size = number(size);
        let seen = if *what == "start" { &mut ran.began } else { &mut ran.done };
        let before = seen.insert(number(rank), at.parse().expect("an instant"));
        assert_eq!(before, None, "rank {rank} of {gang} said {what} twice in run {run}");
    }
    all
}

/// Waits until everything is over, and checks all records.
pub(super) fn settle(
    up: &ControlPlane,
    place: &TestDir,
    log: &std::path::Path,
    gangs: &[TestGang],
) {
    for gang in gangs.iter().filter(|gang| gang.scenario != Scenario::Deleted) {
        let object = up.until_over(&gang.short());
        let expected = if gang.scenario == Scenario::Cancelled { "Cancelled" } else { "Succeeded" };
        assert_eq!(object["status"]["reason"], expected, "{:?}: {object}", gang.scenario);
    }
    up.until("the deleted are gone", |up| {
        let items = up.get("/v1/gangs?limit=1000")["items"].as_array().expect("items").len();
        let kept = gangs.iter().filter(|gang| gang.scenario != Scenario::Deleted).count();
        (items == kept).then_some(())
    });
    up.until("no process is left", |_| {
        let left = place.processes();
        let others = left.iter().filter(|(_, command)| !command.contains(" up "));
        (others.count() == 0).then_some(())
    });
    let ran = read_log(&std::fs::read_to_string(log).expect("a log"));
    let none = Runs::new();
    for gang in gangs {
        check_runs(gang, ran.get(&gang.name()).unwrap_or(&none));
    }
    check_accounts(up, gangs, &ran);
}

/// No run is partial or lost, and none runs more often than it should.
fn check_runs(gang: &TestGang, runs: &Runs) {
    let (name, scenario) = (gang.name(), gang.scenario);
    for (run, ran) in runs {
        // Members that are stopped early, or failed by another, may write nothing; in a complete run all members have
        // begun.
        let stopped = matches!(
            scenario,
            Scenario::Cancelled | Scenario::Deleted | Scenario::Restarted | Scenario::Elastic
        );
        let began: BTreeSet<u64> = ran.began.keys().copied().collect();
        let failed = scenario == Scenario::Flaky && !ran.is_done();
        assert!(stopped || failed || began == ran.all(), "run {run} of {name} is partial");
        assert!(scenario == Scenario::Elastic || ran.size == gang.members, "run {run} of {name}");
    }
    let done = runs.values().filter(|ran| ran.is_done()).count();
    match scenario {
        Scenario::Plain => assert_eq!((runs.len(), done), (1, 1), "{name}"),
        Scenario::Flaky => assert_eq!((runs.len(), done), (2, 1), "{name}: it fails once"),
        Scenario::Elastic | Scenario::Restarted => {
            // A keeper that is killed between the last line of its members and their end cannot record that they
            // succeeded; then the gang restarts, by its retry policy.
            let once = done == 1 || (scenario == Scenario::Restarted && done > 1);
            assert!(once, "{name}: it was done {done} times");
            let last = runs.values().next_back().expect("a run");
            assert!(last.is_done(), "{name} ran on after it was done");
        }
        Scenario::Cancelled | Scenario::Deleted => assert_eq!(done, 0, "{name}"),
    }
}

/// Usage adds up to what the processes wrote: a CPU for each member, from the first start to the last end.
fn check_accounts(up: &ControlPlane, gangs: &[TestGang], ran: &BTreeMap<String, Runs>) {
    let used = |by: &str| up.get(&format!("/v1/usage?by={by}"))["items"].clone();
    let by_gang = used("gang");
    let by_gang = by_gang.as_array().expect("items");
    for gang in gangs.iter().filter(|gang| gang.scenario == Scenario::Plain) {
        let name = gang.name();
        let sum = by_gang.iter().find(|one| one["key"] == name.as_str()).expect("a sum");
        let cpus = sum["cpuSeconds"].as_f64().expect("a sum");
        let worked: f64 = ran[&name].values().map(Ran::worked).sum();
        assert_eq!(sum["runs"], gang.members, "members that ran: {sum}");
        // Starting a process and noticing its end takes a while on a busy machine, for each member.
        let most = worked + 6.0 * gang.members as f64;
        assert!(cpus >= worked * 0.98 && cpus <= most, "{cpus} of {worked}: {sum}");
    }
    let deleted = gangs.iter().filter(|gang| gang.scenario == Scenario::Deleted);
    for name in deleted.map(TestGang::name).filter(|name| ran.contains_key(name)) {
        let kept = by_gang.iter().any(|one| one["key"] == name.as_str());
        assert!(kept, "{name} ran, and its accounts are gone");
    }
    for field in ["cpuSeconds", "gpuSeconds", "runs", "cost"] {
        let sum = |by: &str| -> f64 {
            let items = used(by);
            let items = items.as_array().expect("items").iter();
            items.map(|one| one[field].as_f64().expect("a number")).sum()
        };
        let whole = sum("gang");
        for by in ["queue", "user", "day"] {
            let same = (sum(by) - whole).abs() <= whole * 1e-9 + 1e-6;
            assert!(same, "{field} by {by} is {} and by gang {whole}", sum(by));
        }
    }
}
