//! Gangs that grow and shrink, as processes: they save, stop, and restart with another size.

use serde_json::{Value, json};

use super::control_plane::{ControlPlane, TestDir};

const NODE: &str = "
kind: Node
metadata: {name: box}
spec:
  allocatable: {cpu: 64, memory: 256Gi}
  gpu: {model: H100, memory: 80Gi, count: 4}
";

fn gang(name: &str, priority: i32, bounds: &str, gpus: u32, script: &str) -> String {
    format!(
        "
kind: Gang
metadata: {{name: {name}}}
spec:
  priority: {priority}
  roles:
  - name: worker
    {bounds}
    resources: {{nvidia.com/gpu: {gpus}}}
    run: {{command: [sh, -c, '{script}']}}
  disruption: {{grace: 5s, checkpoint: {{signal: SIGUSR1}}}}
  expectedDuration: 2m
"
    )
}

#[test]
fn elastic_gang_saves_and_shrinks_for_higher_priority_gang() {
    let place = TestDir::new("elastic");
    let log = place.0.join("sizes");
    let up = ControlPlane::start(&place.data(), &["--no-local"]);
    // On the checkpoint signal a worker writes down the size of the gang; its next start would read its saved work.
    let script = format!(
        "trap \"echo saved $RANK/$WORLD_SIZE >> {0}; exit 0\" USR1; echo began $RANK/$WORLD_SIZE >> {0}; \
         while :; do sleep 0.05; done",
        log.display()
    );
    let text = format!("{NODE}---{}", gang("stretchy", 0, "min: 1\n    max: 4", 1, &script));
    let (code, answer) = up.apply(&text, None).expect("an answer");
    assert_eq!(code, 200, "{answer}");
    let seen = || std::fs::read_to_string(&log).unwrap_or_default();
    up.until("all four run", |_| {
        (seen().matches("began").count() >= 4 && seen().contains("began 3/4")).then_some(())
    });
    let rigid = gang("rigid", 10, "min: 2", 1, "sleep 1");
    let (code, answer) = up.apply(&rigid, None).expect("an answer");
    assert_eq!(code, 200, "{answer}");
    let over = up.until_over("rigid");
    assert_eq!(over["status"]["phase"], "Succeeded", "{over}");
    let all = seen();
    for rank in 0..4 {
        assert!(all.contains(&format!("saved {rank}/4")), "{all}");
    }
    let smaller = ["began 0/2", "began 1/2"];
    assert!(smaller.iter().all(|line| all.contains(line)), "two go on: {all}");
    let (code, answer) = up.post("/v1/namespaces/default/gangs/stretchy/cancel", "");
    assert_eq!(code, 200, "{answer}");
    up.until_over("stretchy");
}

/// A gang is not resized again soon after a resize, in simulated time: so that time runs faster.
const FAST: [&str; 3] = ["--no-local", "--speed", "60"];

/// A gang of one to four members that resizes itself. Its members write down when they begin, what they are told, and
/// when they leave.
struct Stretchy {
    place: TestDir,
    up: ControlPlane,
}

impl Stretchy {
    fn start(name: &str, on_leaving: &str) -> Self {
        let place = TestDir::new(name);
        let up = ControlPlane::start(&place.data(), &FAST);
        let log = place.0.join("said");
        let script = format!(
            "trap \"cat $MUSTER_WORLD >> {0}\" USR2; trap \"{on_leaving}\" USR1; \
             echo began $MUSTER_MEMBER as $RANK/$WORLD_SIZE in $MUSTER_RUN >> {0}; while :; do sleep 0.05; done",
            log.display()
        );
        let gang = gang("stretchy", 0, "min: 1\n    max: 4", 1, &script)
            .replace("expectedDuration: 2m", "expectedDuration: 100h\n  resizeSignal: SIGUSR2");
        let (code, answer) = up.apply(&format!("{NODE}---{gang}"), None).expect("an answer");
        assert_eq!(code, 200, "{answer}");
        let one = Self { place, up };
        // All four have set their traps: before that a signal ends a member.
        for member in 0..4 {
            one.until(&format!("began {member} as {member}/4 in 1"));
        }
        one
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.place.0.join("said")).unwrap_or_default()
    }

    fn until(&self, line: &str) {
        self.up.until(line, |_| self.said().contains(line).then_some(()));
    }

    /// Occupies two of its seats for a second.
    fn make_way(&self, name: &str) {
        let rigid = gang(name, 10, "min: 2", 1, "sleep 1");
        let (code, answer) = self.up.apply(&rigid, None).expect("an answer");
        assert_eq!(code, 200, "{answer}");
    }

    /// The same with another control plane, after the first was killed.
    fn killed(self) -> Self {
        let Self { place, up } = self;
        up.kill();
        let up = ControlPlane::start(&place.data(), &FAST);
        Self { place, up }
    }

    fn cancel(&self) {
        let (code, answer) = self.up.post("/v1/namespaces/default/gangs/stretchy/cancel", "");
        assert_eq!(code, 200, "{answer}");
        self.up.until_over("stretchy");
    }
}

#[test]
fn self_resizing_gang_continues_with_remaining_members() {
    let stretchy = Stretchy::start("resize-signal", "exit 3");
    stretchy.make_way("rigid");
    let over = stretchy.up.until_over("rigid");
    assert_eq!(over["status"]["phase"], "Succeeded", "{over}");
    // New members have numbers that were never used, and the ranks after the remaining members.
    stretchy.until("began 4 as 2/4 in 1");
    stretchy.until("began 5 as 3/4 in 1");
    let sizes = || -> Vec<Value> {
        let said = stretchy.said();
        said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    stretchy.up.until("the remaining members know", |_| (sizes().len() == 4).then_some(()));
    let sizes = sizes();
    let stay: Vec<u64> = serde_json::from_value(sizes[0]["members"].clone()).expect("numbers");
    assert_eq!((&sizes[0]["size"], stay.len()), (&json!(2), 2), "{sizes:?}");
    let all = [stay, vec![4, 5]].concat();
    assert_eq!(sizes[1], sizes[0]);
    assert_eq!(
        sizes[2..],
        [json!({"size": 4, "members": all}), json!({"size": 4, "members": all})]
    );
    assert_eq!(
        stretchy.said().matches("began").count(),
        6,
        "no member began twice: {}",
        stretchy.said()
    );
    let gang = stretchy.up.gang("stretchy");
    assert_eq!(gang["status"]["members"]["ready"], 4, "{gang}");
    stretchy.cancel();
    let used = stretchy.up.get("/v1/usage?by=gang");
    let used = used["items"].as_array().expect("items").iter();
    let used = used.clone().find(|one| one["key"] == "default/stretchy").expect("its account");
    assert_eq!(used["runs"], 6, "members that ran: {used}");
    let left = stretchy.place.processes();
    assert!(left.iter().all(|(_, command)| command.contains(" up ")), "{left:?}");
}

#[test]
fn surplus_member_that_does_not_leave_is_killed() {
    let stretchy = Stretchy::start("resize-stubborn", "");
    stretchy.make_way("rigid");
    let over = stretchy.up.until_over("rigid");
    assert_eq!(over["status"]["phase"], "Succeeded", "{over}");
    stretchy.until("began 4 as 2/4 in 1");
    stretchy.until("began 5 as 3/4 in 1");
    assert_eq!(stretchy.said().matches("began").count(), 6, "{}", stretchy.said());
}

#[test]
fn restarted_control_plane_continues_a_self_resize() {
    let mut stretchy = Stretchy::start("resize-kills", "sleep 0.3; exit 0");
    for (round, delay_ms) in [0u64, 20, 100, 250, 400, 700, 1_200].into_iter().enumerate() {
        let name = format!("rigid-{round}");
        stretchy.make_way(&name);
        std::thread::sleep(std::time::Duration::from_millis(delay_ms));
        stretchy = stretchy.killed();
        let over = stretchy.up.until_over(&name);
        assert_eq!(over["status"]["phase"], "Succeeded", "{over}");
        stretchy.until(&format!("began {} as 2/4 in 1", 4 + 2 * round));
        stretchy.until(&format!("began {} as 3/4 in 1", 5 + 2 * round));
    }
    let said = stretchy.said();
    for number in 0..18 {
        let began = said.matches(&format!("began {number} as")).count();
        assert_eq!(began, 1, "member {number} began once: {said}");
    }
    stretchy.cancel();
    let used = stretchy.up.get("/v1/usage?by=gang");
    let used = used["items"].as_array().expect("items").iter();
    let used = used.clone().find(|one| one["key"] == "default/stretchy").expect("its account");
    assert_eq!(used["runs"], 18, "members that ran: {used}");
}

#[test]
fn gang_ends_whole_when_keeper_is_killed_during_self_resize() {
    let stretchy = Stretchy::start("resize-keeper", "sleep 1; exit 0");
    stretchy.make_way("rigid");
    stretchy.up.until("it is told", |_| stretchy.said().contains("\"size\": 2").then_some(()));
    let keepers = stretchy.place.processes();
    let keeper =
        keepers.iter().find(|(_, what)| what.contains(" keep ") && what.contains("runs/1"));
    let pid = keeper.expect("a keeper").0.to_string();
    assert!(
        std::process::Command::new("kill").args(["-9", &pid]).status().expect("kill").success()
    );
    let over = stretchy.up.until_over("stretchy");
    assert_eq!(over["status"]["phase"], "Failed", "it has no retries: {over}");
    let over = stretchy.up.until_over("rigid");
    assert_eq!(over["status"]["phase"], "Succeeded", "{over}");
    let left = stretchy.place.processes();
    assert!(left.iter().all(|(_, command)| command.contains(" up ")), "{left:?}");
}
