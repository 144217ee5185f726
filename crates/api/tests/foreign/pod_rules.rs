//! Rules of pods that core does not support directly.

use std::collections::BTreeMap;

use muster_api::pod::PodSpec;
use serde_json::Value;

use crate::{table, yaml};

fn spec(value: &Value) -> PodSpec {
    PodSpec::read(value, "spec").unwrap()
}

#[test]
fn host_ports() {
    let pod = spec(&yaml(
        "containers: [{ports: [{containerPort: 80}, {hostPort: 8080}, {hostPort: 53, protocol: UDP, hostIP: 10.0.0.1}]}]
initContainers: [{ports: [{hostPort: 1}]}, {restartPolicy: Always, ports: [{hostPort: 2, protocol: '', hostIP: ''}]}, {restartPolicy: Always, ports: [{hostPort: 99999}]}]",
    ));
    let ports: Vec<String> = pod
        .host_ports()
        .iter()
        .map(|port| format!("{}:{}/{}", port.ip, port.port, port.protocol))
        .collect();
    assert_eq!(ports, ["0.0.0.0:8080/TCP", "10.0.0.1:53/UDP", "0.0.0.0:2/TCP"]);
    let ports = pod.host_ports();
    assert!(ports[0].conflicts_with(&ports[0]) && !ports[0].conflicts_with(&ports[1]));
    let everywhere = muster_api::pod::HostPort { ip: "0.0.0.0", ..ports[1].clone() };
    assert!(everywhere.conflicts_with(&ports[1]));
}

#[test]
fn volume_claims_and_resource_claims() {
    let pod = spec(&yaml(
        "volumes: [{name: tmp, emptyDir: {}}, {name: data, persistentVolumeClaim: {claimName: shared}}, {name: scratch, ephemeral: {volumeClaimTemplate: {spec: {}}}}]
resourceClaims: [{name: gpu, resourceClaimTemplateName: t}]",
    ));
    assert_eq!(pod.claims("worker-0"), ["shared", "worker-0-scratch"]);
    assert_eq!(pod.resource_claims[0].resource_claim_template_name.as_deref(), Some("t"));
}

#[test]
fn required_topology_spread() {
    let pod = spec(&yaml(
        "topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}, {topologyKey: rack, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}]",
    ));
    assert_eq!(pod.required_spread_over("zone").map(|rule| rule.max_skew), Some(1));
    assert_eq!(pod.required_spread_over("rack"), None);
    assert!(!pod.is_gated());
    assert!(spec(&yaml("{schedulingGates: [{name: kueue.x-k8s.io/admission}]}")).is_gated());
}

#[test]
fn required_pod_anti_affinity() {
    let labels = BTreeMap::from([("app".to_owned(), "db".to_owned())]);
    let cases = [
        ("no affinity", "[]"),
        (
            "itself, per node",
            "[{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: db}}}]",
        ),
        (
            "itself, by expression",
            "[{topologyKey: rack, labelSelector: {matchExpressions: [{key: app, operator: In, values: [db, web]}]}}]",
        ),
        ("every pod", "[{topologyKey: rack, labelSelector: {}}]"),
        ("no selector matches no pod", "[{topologyKey: rack}]"),
        ("others", "[{topologyKey: rack, labelSelector: {matchLabels: {app: web}}}]"),
        (
            "its own namespace by name",
            "[{topologyKey: rack, namespaces: [a, ns], labelSelector: {matchLabels: {app: db}}}]",
        ),
        (
            "another namespace",
            "[{topologyKey: rack, namespaces: [other], labelSelector: {matchLabels: {app: db}}}]",
        ),
        (
            "every namespace",
            "[{topologyKey: rack, namespaceSelector: {}, labelSelector: {matchLabels: {app: db}}}]",
        ),
        (
            "those of another hash",
            "[{topologyKey: rack, mismatchLabelKeys: [hash], labelSelector: {matchLabels: {app: db}}}]",
        ),
        (
            "node and zone: the wider",
            "[{topologyKey: kubernetes.io/hostname, labelSelector: {}}, {topologyKey: zone, labelSelector: {}}]",
        ),
        (
            "an unknown operator",
            "[{topologyKey: rack, labelSelector: {matchExpressions: [{key: app, operator: Gt, values: ['1']}]}}]",
        ),
    ];
    let alone = |terms: &Value| {
        let term = serde_json::json!({"requiredDuringSchedulingIgnoredDuringExecution": terms});
        let pod = spec(&serde_json::json!({"affinity": {"podAntiAffinity": term}}));
        let minds =
            if pod.has_other_inter_pod_rules(&labels, "ns") { ", minds others" } else { "" };
        format!("{:?}{minds}", pod.self_anti_affinity_key(&labels, "ns"))
    };
    insta::assert_snapshot!(table(&cases, alone), @r#"
    no affinity
        None
    itself, per node
        Some("kubernetes.io/hostname")
    itself, by expression
        Some("rack")
    every pod
        Some("rack")
    no selector matches no pod
        None, minds others
    others
        None, minds others
    its own namespace by name
        Some("rack")
    another namespace
        None, minds others
    every namespace
        Some("rack")
    those of another hash
        None, minds others
    node and zone: the wider
        Some("zone")
    an unknown operator
        None, minds others
    "#);
}
