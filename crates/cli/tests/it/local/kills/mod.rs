//! Kills the control plane at random instants while gangs of real processes run.
//!
//! `MUSTER_KILLS=200 MUSTER_SEED=7 cargo test -p muster-cli --test it kills` runs 200 kills from seed 7.

mod accounting;
mod test_gangs;

use std::time::{Duration, Instant, SystemTime};

use super::control_plane::{ControlPlane, TestDir};
use test_gangs::{Scenario, TestGang};

/// Kills in `make test`; a nightly run has 200.
const KILLS: u64 = 30;
const GANGS: u64 = 50;

/// Random numbers that depend on the seed only.
struct Random(u64);

impl Random {
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

#[test]
fn kills_leave_nothing_partial_orphaned_lost_or_run_twice() {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock");
    let seed = number("MUSTER_SEED", now.as_millis() as u64);
    let kills = number("MUSTER_KILLS", KILLS);
    eprintln!("seed {seed}, {kills} kills: MUSTER_SEED={seed} MUSTER_KILLS={kills} replays it");
    let mut random = Random(seed.max(1));
    let place = TestDir::new("kills");
    let log = place.0.join("workers.log");
    let mut gangs: Vec<TestGang> = Vec::new();
    for number in 0..GANGS {
        let (members, gpus) = (1 + random.roll(4), 1 + random.roll(8));
        let seconds = 0.2 + random.roll(1_500) as f64 / 1_000.0;
        let scenario = TestGang::scenario_of(number);
        gangs.push(TestGang { number, scenario, members, gpus, seconds });
    }
    let more = ["--speed", "60", "--no-local"];
    let apply = |up: &ControlPlane, gang: &TestGang| {
        let key = format!("key-{seed}-{}", gang.number);
        up.apply(&gang.manifest(&log.to_string_lossy()), Some(&key))
    };
    let mut next = 0;
    for round in 0..=kills {
        let up = ControlPlane::start(&place.data(), &more);
        if round == 0 {
            let (code, answer) = up.apply(SUPPLY, None).expect("an answer");
            assert_eq!(code, 200, "{answer}");
        }
        if round == kills {
            // Unanswered submissions are repeated; with the same key none is applied twice.
            for gang in &gangs[next..] {
                let (code, answer) = apply(&up, gang).expect("an answer");
                assert_eq!(code, 200, "{answer}");
            }
            gangs.iter().for_each(|gang| cancel_or_delete(&up, gang));
            accounting::settle(&up, &place, &log, &gangs);
            return;
        }
        let until = Instant::now() + Duration::from_millis(random.roll(400));
        let due = (GANGS * (round + 1)).div_ceil(kills) as usize;
        while next < gangs.len().min(due) && Instant::now() < until {
            if apply(&up, &gangs[next]).is_ok_and(|(code, _)| code == 200) {
                next += 1;
            }
        }
        let other = &gangs[random.roll(next.max(1) as u64) as usize];
        if random.roll(3) == 0 {
            cancel_or_delete(&up, other);
        }
        if random.roll(2) == 0 {
            kill_keeper(&place, &gangs);
        }
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        up.kill();
    }
}

/// Cancels or deletes a gang whose scenario says so. It may be over or removed already.
fn cancel_or_delete(up: &ControlPlane, gang: &TestGang) {
    let code = match gang.scenario {
        Scenario::Cancelled => up.post(&format!("{}/cancel", gang.path()), "").0,
        Scenario::Deleted => up.delete(&gang.path()),
        _ => return,
    };
    assert!(matches!(code, 200 | 204 | 404 | 409), "{code}");
}

/// Kills the keeper of a gang that is retried, if one runs.
fn kill_keeper(place: &TestDir, gangs: &[TestGang]) {
    let restarted = |name: &str| {
        gangs.iter().any(|gang| gang.scenario == Scenario::Restarted && gang.name() == name)
    };
    for (pid, command) in place.processes() {
        let Some((_, directory)) = command.split_once(" keep ") else { continue };
        let plan = std::path::Path::new(directory.trim()).join("run.json");
        let plan = std::fs::read_to_string(plan).unwrap_or_default();
        let plan: serde_json::Value = serde_json::from_str(&plan).unwrap_or_default();
        if plan["gang"].as_str().is_some_and(restarted) {
            let _ = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
            return;
        }
    }
}
