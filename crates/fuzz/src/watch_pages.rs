//! Responses of the API server to lists and watches: an invalid object hides no other, and none makes a parser panic.

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
        pod.remove_added_selector();
        pod.count_allocated();
        let _ = (pod.node(), pod.assigned_node(), pod.is_finished(), pod.has_succeeded());
        let _ = (pod.is_terminating(), pod.is_evicted_by_muster(), pod.has_anti_affinity());
        let _ = (pod.has_gate(), pod.has_foreign_gate());
    };
    check_page(data, look);
    for line in String::from_utf8_lossy(data).lines() {
        check_line(line, look);
    }
}
