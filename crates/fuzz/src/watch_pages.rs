//! What the API server answers to lists and watches: an object that cannot be read hides no other, and none makes a reader panic.

use muster_kube::fuzzing::{check_line, check_page};
use muster_kube::objects::Pod;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "watch_pages",
    run,
    words: &[
        "{\"a\":",
        "[",
        "]",
        "}",
        "null",
        "\"\"",
        "-1",
        "1e400",
        "18446744073709551616",
        "\"items\":",
        "\"metadata\":",
        "\"name\":",
        "\"namespace\":",
        "\"annotations\":",
        "\"labels\":",
        "\"ownerReferences\":",
        "\"finalizers\":",
        "\"resourceVersion\":",
        "\"continue\":",
        "\"spec\":",
        "\"status\":",
        "\"containers\":",
        "\"resources\":",
        "\"requests\":",
        "\"schedulingGates\":",
        "\"nodeName\":",
        "\"taints\":",
        "\"conditions\":",
        "\"allocatable\":",
        "\"type\":\"ADDED\"",
        "\"type\":\"DELETED\"",
        "\"type\":\"BOOKMARK\"",
        "\"type\":\"ERROR\"",
        "\"object\":",
        "\"creationTimestamp\":",
        "\"deletionTimestamp\":",
        "\"2026-11-17T00:00:00Z\"",
        "\"muster.sh/assigned-node\":",
        "\"muster.sh/gang\":",
        "\"kubernetes.io/hostname\":",
        "\\u0000",
        "\\ud800",
    ],
    rounds: 6_000,
};

fn run(data: &[u8]) {
    let look = |pod: &mut Pod| {
        pod.unpin();
        pod.hold();
        let _ = (pod.node(), pod.seat(), pod.is_over(), pod.has_succeeded(), pod.is_leaving());
        let _ = (pod.is_sent_away(), pod.is_shy(), pod.has_gate(), pod.is_held());
    };
    check_page(data, look);
    for line in String::from_utf8_lossy(data).lines() {
        check_line(line, look);
    }
}
