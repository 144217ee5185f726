//! The control plane is killed at random instants while gangs of real processes run.
//!
//! `MUSTER_KILLS=200 MUSTER_SEED=7 cargo test -p muster-cli --test it kills` does it that often, from that seed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime};

use super::stage::{Place, Up};

/// Kills in `make test`; a nightly run does 200.
const KILLS: u64 = 30;
const GANGS: u64 = 50;

/// Numbers that are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

const SUPPLY: &str = "
kind: Pool
metadata: {name: cloud}
spec:
  tier: on-demand
  provider: {simulated: {boot: {launch: 10s, register: 5s, gpus: 5s, sigma: 0.3}, failures: {bootFailed: 0.05}}}
  offerings:
  - {instanceType: big, zone: a, price: 10, gpu: {model: H100, memory: 80Gi, count: 8}, allocatable: {cpu: 64, memory: 512Gi}, bootTime: 20s}
  - {instanceType: big, zone: b, price: 11, gpu: {model: H100, memory: 80Gi, count: 8}, allocatable: {cpu: 64, memory: 512Gi}, bootTime: 20s}
  limits: {nodes: 6}
  idleAfter: 1m
";

/// A gang whose members write down that they began, work, and write down that they are done.
fn gang(number: u64, members: u64, gpus: u64, seconds: f64, log: &str) -> String {
    let script = format!(
        "echo start $MUSTER_GANG $MUSTER_RUN $RANK $(date +%s%N) >> {log}; sleep {seconds}; \
         echo end $MUSTER_GANG $MUSTER_RUN $RANK $(date +%s%N) >> {log}"
    );
    format!(
        "
kind: Gang
metadata: {{name: gang-{number}}}
spec:
  user: user-{}
  roles:
  - name: worker
    min: {members}
    resources: {{nvidia.com/gpu: {gpus}, cpu: 1}}
    run: {{command: [sh, -c, '{script}']}}
  expectedDuration: 1m
",
        number % 3
    )
}

/// What workers wrote down: by gang and run, the ranks that began and those that were done, and for how long.
#[derive(Default)]
struct Ran {
    began: BTreeMap<u32, u128>,
    done: BTreeMap<u32, u128>,
}

fn read_log(text: &str) -> BTreeMap<String, BTreeMap<u64, Ran>> {
    let mut all: BTreeMap<String, BTreeMap<u64, Ran>> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [what, gang, run, rank, at] = words.as_slice() else { panic!("half a line: {line}") };
        let (run, rank) = (run.parse().expect("a run"), rank.parse().expect("a rank"));
        let at = at.parse().expect("an instant");
        let ran = all.entry((*gang).to_owned()).or_default().entry(run).or_default();
        let seen = if *what == "start" { &mut ran.began } else { &mut ran.done };
        assert_eq!(seen.insert(rank, at), None, "rank {rank} of {gang} said {what} twice");
    }
    all
}

#[test]
fn whatever_is_killed_nothing_is_partial_orphaned_lost_or_run_twice() {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock");
    let seed = number("MUSTER_SEED", now.as_millis() as u64);
    let kills = number("MUSTER_KILLS", KILLS);
    eprintln!("seed {seed}, {kills} kills: MUSTER_SEED={seed} MUSTER_KILLS={kills} replays it");
    let mut dice = Dice(seed.max(1));
    let place = Place::new("kills");
    let log = place.0.join("workers.log");
    let mut sizes: BTreeMap<String, u64> = BTreeMap::new();
    let mut manifests: Vec<(String, String)> = Vec::new();
    for number in 0..GANGS {
        let (members, gpus) = (1 + dice.roll(4), 1 + dice.roll(8));
        let seconds = 0.2 + dice.roll(1_500) as f64 / 1_000.0;
        sizes.insert(format!("default/gang-{number}"), members);
        let text = gang(number, members, gpus, seconds, &log.to_string_lossy());
        manifests.push((format!("key-{seed}-{number}"), text));
    }
    let more = ["--speed", "60", "--no-local"];
    let mut next = 0;
    for round in 0..=kills {
        let up = Up::start(&place.data(), &more);
        if round == 0 {
            let (code, answer) = up.apply(SUPPLY, None).expect("an answer");
            assert_eq!(code, 200, "{answer}");
        }
        if round == kills {
            // Whoever was not answered asks again; whoever was is not submitted twice.
            for (key, text) in &manifests[next..] {
                let (code, answer) = up.apply(text, Some(key)).expect("an answer");
                assert_eq!(code, 200, "{answer}");
            }
            settle(&up, &place, &log, &sizes);
            return;
        }
        let until = Instant::now() + Duration::from_millis(dice.roll(400));
        let due = (GANGS * (round + 1)).div_ceil(kills) as usize;
        while next < manifests.len().min(due) && Instant::now() < until {
            let (key, text) = &manifests[next];
            if up.apply(text, Some(key)).is_ok_and(|(code, _)| code == 200) {
                next += 1;
            }
        }
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        up.kill();
    }
}

/// Waits until everything is over, and holds what the control plane says against what its workers wrote down.
fn settle(up: &Up, place: &Place, log: &std::path::Path, sizes: &BTreeMap<String, u64>) {
    for name in sizes.keys() {
        let short = name.trim_start_matches("default/");
        let gang = up.until_over(short);
        assert_eq!(gang["status"]["phase"], "Succeeded", "{gang}");
    }
    let ran = read_log(&std::fs::read_to_string(log).expect("a log"));
    assert_eq!(ran.keys().collect::<Vec<_>>(), sizes.keys().collect::<Vec<_>>(), "who ran");
    let mut worked = 0.0;
    for (name, runs) in &ran {
        assert_eq!(runs.len(), 1, "{name} ran more than once");
        for ran in runs.values() {
            let all: BTreeSet<u32> = (0..sizes[name] as u32).collect();
            assert_eq!(
                ran.began.keys().copied().collect::<BTreeSet<_>>(),
                all,
                "{name} is partial"
            );
            assert_eq!(
                ran.done.keys().copied().collect::<BTreeSet<_>>(),
                all,
                "{name} is not done"
            );
            let first = ran.began.values().min().expect("somebody began");
            let last = ran.done.values().max().expect("somebody is done");
            worked += (last - first) as f64 / 1e9 * sizes[name] as f64;
        }
    }
    // Accounts add up to what the processes wrote: a CPU for each member, from the first's start to the last's end.
    for by in ["queue", "user", "gang", "day"] {
        let usage = up.get(&format!("/v1/usage?by={by}"));
        let items = usage["items"].as_array().expect("items");
        let cpus: f64 = items.iter().map(|one| one["cpuSeconds"].as_f64().expect("a sum")).sum();
        let runs: u64 = items.iter().map(|one| one["runs"].as_u64().expect("a count")).sum();
        assert_eq!(runs, sizes.values().sum::<u64>(), "members that ran, by {by}");
        // Starting a process and hearing of its end takes a while on a busy machine, for each member.
        let slack = 1.0 * runs as f64;
        assert!(cpus >= worked * 0.98 && cpus <= worked + slack, "{cpus} of {worked} by {by}");
    }
    up.until("nobody is left over", |_| {
        let left = place.processes();
        let others = left.iter().filter(|(_, command)| !command.contains(" up "));
        (others.count() == 0).then_some(())
    });
}
