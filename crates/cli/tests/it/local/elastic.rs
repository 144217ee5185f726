//! Gangs that grow and shrink, as processes: they save, stop, and start again as so many.

use super::stage::{Place, Up};

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
fn an_elastic_gang_saves_and_goes_on_with_fewer_when_another_needs_the_room() {
    let place = Place::new("elastic");
    let log = place.0.join("sizes");
    let up = Up::start(&place.data(), &["--no-local"]);
    // Told to save, a worker says how many they were; what it had done would be read again by its next start.
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

#[test]
fn a_gang_with_a_signal_for_it_is_told_by_it_that_it_is_resized_and_to_how_many() {
    let place = Place::new("resize-signal");
    let log = place.0.join("sizes");
    let up = Up::start(&place.data(), &["--no-local"]);
    let script = format!(
        "trap \"cat $MUSTER_WORLD >> {0}; exit 0\" USR2; echo began $RANK/$WORLD_SIZE >> {0}; \
         while :; do sleep 0.05; done",
        log.display()
    );
    let stretchy =
        gang("stretchy", 0, "min: 1\n    max: 4", 1, &script) + "  resizeSignal: SIGUSR2\n";
    let (code, answer) = up.apply(&format!("{NODE}---{stretchy}"), None).expect("an answer");
    assert_eq!(code, 200, "{answer}");
    let seen = || std::fs::read_to_string(&log).unwrap_or_default();
    up.until("all four run", |_| seen().contains("began 3/4").then_some(()));
    let rigid = gang("rigid", 10, "min: 2", 1, "sleep 1");
    let (code, answer) = up.apply(&rigid, None).expect("an answer");
    assert_eq!(code, 200, "{answer}");
    up.until("two go on", |_| seen().contains("began 1/2").then_some(()));
    let told = seen().matches("{\"size\": 4, \"next\": 2}").count();
    assert_eq!(told, 4, "each of the four knew what was to come: {}", seen());
    let (code, answer) = up.post("/v1/namespaces/default/gangs/stretchy/cancel", "");
    assert_eq!(code, 200, "{answer}");
    up.until_over("stretchy");
}
