//! The control plane is killed at random instants while gangs of real processes run.
//!
//! `MUSTER_KILLS=200 MUSTER_SEED=7 cargo test -p muster-cli --test it kills` does it that often, from that seed.

mod accounting;
mod test_gangs;

use std::time::{Duration, Instant, SystemTime};

use super::control_plane::{Place, Up};
use test_gangs::{Part, Player};

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

#[test]
fn whatever_is_killed_nothing_is_partial_orphaned_lost_or_run_twice() {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a clock");
    let seed = number("MUSTER_SEED", now.as_millis() as u64);
    let kills = number("MUSTER_KILLS", KILLS);
    eprintln!("seed {seed}, {kills} kills: MUSTER_SEED={seed} MUSTER_KILLS={kills} replays it");
    let mut dice = Dice(seed.max(1));
    let place = Place::new("kills");
    let log = place.0.join("workers.log");
    let mut cast: Vec<Player> = Vec::new();
    for number in 0..GANGS {
        let (members, gpus) = (1 + dice.roll(4), 1 + dice.roll(8));
        let seconds = 0.2 + dice.roll(1_500) as f64 / 1_000.0;
        let part = Player::part_of(number);
        cast.push(Player { number, part, members, gpus, seconds });
    }
    let more = ["--speed", "60", "--no-local"];
    let apply = |up: &Up, player: &Player| {
        let key = format!("key-{seed}-{}", player.number);
        up.apply(&player.manifest(&log.to_string_lossy()), Some(&key))
    };
    let mut next = 0;
    for round in 0..=kills {
        let up = Up::start(&place.data(), &more);
        if round == 0 {
            let (code, answer) = up.apply(SUPPLY, None).expect("an answer");
            assert_eq!(code, 200, "{answer}");
        }
        if round == kills {
            // Whoever was not answered asks again; whoever was is not submitted twice.
            for player in &cast[next..] {
                let (code, answer) = apply(&up, player).expect("an answer");
                assert_eq!(code, 200, "{answer}");
            }
            cast.iter().for_each(|player| part_with(&up, player));
            accounting::settle(&up, &place, &log, &cast);
            return;
        }
        let until = Instant::now() + Duration::from_millis(dice.roll(400));
        let due = (GANGS * (round + 1)).div_ceil(kills) as usize;
        while next < cast.len().min(due) && Instant::now() < until {
            if apply(&up, &cast[next]).is_ok_and(|(code, _)| code == 200) {
                next += 1;
            }
        }
        let other = &cast[dice.roll(next.max(1) as u64) as usize];
        if dice.roll(3) == 0 {
            part_with(&up, other);
        }
        if dice.roll(2) == 0 {
            kill_a_keeper(&place, &cast);
        }
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        up.kill();
    }
}

/// Cancels or deletes a gang that is there to be. It may be over or gone by now.
fn part_with(up: &Up, player: &Player) {
    let code = match player.part {
        Part::Cancelled => up.post(&format!("{}/cancel", player.path()), "").0,
        Part::Deleted => up.delete(&player.path()),
        _ => return,
    };
    assert!(matches!(code, 200 | 204 | 404 | 409), "{code}");
}

/// Kills the keeper of a gang that can bear it, if one runs.
fn kill_a_keeper(place: &Place, cast: &[Player]) {
    let hardy =
        |name: &str| cast.iter().any(|player| player.part == Part::Hardy && player.name() == name);
    for (pid, command) in place.processes() {
        let Some((_, directory)) = command.split_once(" keep ") else { continue };
        let plan = std::path::Path::new(directory.trim()).join("run.json");
        let plan = std::fs::read_to_string(plan).unwrap_or_default();
        let plan: serde_json::Value = serde_json::from_str(&plan).unwrap_or_default();
        if plan["gang"].as_str().is_some_and(hardy) {
            let _ = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
            return;
        }
    }
}
