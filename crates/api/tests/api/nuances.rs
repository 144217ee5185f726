//! Valid manifests whose meaning is easy to get wrong.

use muster_api::{Autoscaler, Fault, Provider, SimulatedCloud};
use muster_core::constraint::{Effect, Test};
use muster_core::device::WHOLE;
use muster_core::time::Span;

use crate::good;

fn role(fields: &str) -> muster_core::gang::RoleSpec {
    let text = format!(
        "kind: Gang\nmetadata: {{name: g}}\nspec:\n  roles:\n  - name: r\n    min: 2\n{fields}"
    );
    good(&text).gangs[0].spec.roles[0].clone()
}

#[test]
fn role_without_max_is_rigid_and_gang_without_queue_is_in_default() {
    let gang =
        &good("{kind: Gang, metadata: {name: g}, spec: {roles: [{name: r, min: 3}]}}").gangs[0];
    assert_eq!((gang.spec.roles[0].min, gang.spec.roles[0].max), (3, 3));
    assert_eq!((&*gang.spec.name, &*gang.spec.queue), ("default/g", "default"));
    assert_eq!((gang.submit_after, gang.run_time), (Span::ZERO, None));
}

#[test]
fn whole_gpus_are_devices_and_a_fraction_is_one_device() {
    for (written, count, share) in [
        ("8", 8, WHOLE),
        ("500m", 1, 500),
        ("0.25", 1, 250),
        ("2000m", 2, WHOLE),
        ("1k", 1000, WHOLE),
    ] {
        let gpu = role(&format!("    resources: {{amd.com/gpu: {written}}}")).request.gpu.unwrap();
        assert_eq!(
            (gpu.count, gpu.share, &*gpu.resource),
            (count, share, "amd.com/gpu"),
            "{written}"
        );
    }
    assert_eq!(role("    resources: {nvidia.com/gpu: 0}").request.gpu, None);
}

#[test]
fn constraints_are_read_as_in_a_pod() {
    let role = role(
        r#"    nodeSelector: {disk: ssd}
    affinity:
      nodeAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - matchExpressions:
            - {key: zone, operator: In, values: [a, b]}
            - {key: cores, operator: Gt, values: ["8"]}
          - matchExpressions: [{key: old, operator: DoesNotExist}]
        preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 7
          preference: {matchExpressions: [{key: fast, operator: Exists}]}
    tolerations:
    - {key: gpu, operator: Exists, effect: NoSchedule}
    - {key: team, value: nlp}
    - {operator: Exists}
"#,
    );
    let constraints = role.constraints;
    assert_eq!(constraints.all[0].test, Test::In(vec!["ssd".into()]));
    assert_eq!(constraints.any.len(), 2);
    assert_eq!(constraints.any[0][1].test, Test::Gt(8));
    assert_eq!(constraints.any[1][0].test, Test::DoesNotExist);
    assert_eq!(
        (constraints.prefer[0].weight, &constraints.prefer[0].term[0].test),
        (7, &Test::Exists)
    );
    let [exists, equal, everything] = constraints.tolerations.as_slice() else { panic!() };
    assert_eq!((exists.value.as_deref(), exists.effect), (None, Some(Effect::NoSchedule)));
    assert_eq!((equal.key.as_deref(), equal.value.as_deref()), (Some("team"), Some("nlp")));
    assert_eq!((&everything.key, &everything.value, everything.effect), (&None, &None, None));
}

#[test]
fn node_with_a_count_is_several_nodes() {
    let nodes = good(
        "kind: Node
metadata: {name: dgx}
spec:
  count: 3
  labels: {topology.kubernetes.io/zone: a}
  taints: [{key: gpu, effect: NoSchedule}]
  allocatable: {cpu: 96, memory: 1Ti, nvidia.com/gpu: 8}
  gpu: {model: H100, memory: 80Gi}
---
{kind: Node, metadata: {name: head}, spec: {allocatable: {cpu: 4}}}
",
    )
    .nodes;
    let names: Vec<&str> = nodes.iter().map(|node| &*node.name).collect();
    assert_eq!(names, ["dgx-0", "dgx-1", "dgx-2", "head"]);
    assert!(nodes.iter().all(|node| node.ready && node.claim.is_none()));
    let gpu = nodes[0].gpu.as_ref().unwrap();
    assert_eq!((nodes[0].gpus, &*gpu.model, &*gpu.resource), (8, "H100", "nvidia.com/gpu"));
    assert!(!nodes[0].allocatable.contains_key("nvidia.com/gpu"));
    assert_eq!((nodes[3].gpus, &nodes[3].gpu), (0, &None));
}

fn pool(provider: &str) -> muster_api::PoolManifest {
    let text = format!(
        "kind: Pool
metadata: {{name: p}}
spec:
  tier: spot
{provider}
  offerings: [{{instanceType: m, zone: z, allocatable: {{cpu: 8, amd.com/gpu: 4}}, labels: {{topology.kubernetes.io/zone: own}}}}]
"
    );
    good(&text).pools.remove(0)
}

#[test]
fn pool_is_simulated_by_default_and_boots_as_its_cloud_does() {
    let bare = pool("");
    assert_eq!(bare.provider, Provider::Simulated(SimulatedCloud::default()));
    let offering = &bare.spec.offerings[0];
    assert_eq!((offering.boot_time, offering.gpus), (Span::secs(255), 4));
    assert_eq!(&*offering.labels["topology.kubernetes.io/zone"], "own");
    assert!(!offering.labels.contains_key("topology.kubernetes.io/region"));
    assert_eq!(pool("  provider: {simulated: }").provider, bare.provider);
    assert_eq!(pool("  provider: {local: {}}").provider, Provider::Local);
    for empty in ["{provisioningRequest: }", "{provisioningRequest: {}}"] {
        let provider = pool(&format!("  provider: {empty}")).provider;
        assert_eq!(provider, Provider::ProvisioningRequest(Autoscaler::default()));
    }
    let asked = pool(
        "  provider: {provisioningRequest: {className: queued-provisioning.gke.io, parameters: {maxRunDurationSeconds: '7200'}}}",
    );
    let Provider::ProvisioningRequest(Autoscaler { class, parameters }) = asked.provider else {
        panic!("{:?}", asked.provider)
    };
    assert_eq!(&*class, "queued-provisioning.gke.io");
    assert_eq!(&*parameters["maxRunDurationSeconds"], "7200");
}

#[test]
fn ambiguous_or_unsupported_autoscaler_settings_are_warnings() {
    let warnings = |class: &str, labels: &str| -> Vec<String> {
        let text = format!(
            "
kind: Pool
metadata: {{name: p}}
spec:
  tier: spot
  provider: {{provisioningRequest: {{{class}}}}}
  offerings:
  - {{instanceType: m, zone: z, capacityType: on-demand, allocatable: {{cpu: 8}}}}
  - {{instanceType: m, zone: z, capacityType: spot, allocatable: {{cpu: 8}}, labels: {{{labels}}}}}
"
        );
        good(&text).warnings.iter().map(ToString::to_string).collect()
    };
    assert_eq!(warnings("", "example.com/spot: yes-it-is"), [""; 0]);
    assert_eq!(
        warnings("className: check-capacity.autoscaling.x-k8s.io", ""),
        [
            "a.yaml:6:47: spec.provider.provisioningRequest.className: requests of this class never make a node",
            "a.yaml:9:5: spec.offerings[1]: its nodes look like those of offerings[0]: say in `labels` what tells them apart",
        ]
    );
}

#[test]
fn simulated_cloud_keeps_defaults_of_absent_fields() {
    let pool = pool(
        "  provider:
    simulated:
      boot: {launch: 60s}
      failures: {bootFailed: 0.02, throttled: 0.5}
      stockOut: {meanDown: 30m}
      inService: {}
      script: [{zone: z, claim: 7, fails: GpusMissing}]",
    );
    let Provider::Simulated(cloud) = pool.provider else { panic!() };
    assert_eq!(pool.spec.offerings[0].boot_time, Span::secs(165));
    assert_eq!((cloud.boot.launch, cloud.boot.register), (Span::secs(60), Span::secs(45)));
    assert_eq!((cloud.failures.boot_failed, cloud.failures.gpus_missing), (0.02, 0.0));
    assert_eq!(cloud.failures.throttled, 0.5);
    let stock = cloud.stock_out.as_ref().unwrap();
    assert_eq!((stock.mean_up, stock.mean_down), (Span::hours(10), Span::mins(30)));
    assert_eq!(cloud.in_service.as_ref().unwrap().mean_time_to_failure, Span::hours(6300));
    assert_eq!((cloud.script[0].claim, cloud.script[0].fails), (7, Fault::GpusMissing));
    let json = serde_json::to_string(&cloud).unwrap();
    assert_eq!(serde_json::from_str::<SimulatedCloud>(&json).unwrap(), cloud);
}

#[test]
fn levels_are_declared_or_default() {
    assert_eq!(good("{kind: Queue, metadata: {name: q}, spec: {}}").levels, Default::default());
    let text = "
kind: Topology
spec: {levels: [{name: hall, label: example.com/hall}, {name: row, label: example.com/row}]}
---
{kind: Gang, metadata: {name: g}, spec: {roles: [{name: r, min: 1}], topology: {preferred: row}}}
";
    let names: Vec<String> =
        good(text).levels.0.iter().map(|level| level.name.to_string()).collect();
    assert_eq!(names, ["hall", "row"]);
}

#[test]
fn empty_documents_between_valid_ones_are_ignored() {
    let text = "---\n# nothing\n---\n{kind: Queue, metadata: {name: q}, spec: {}}\n---\n";
    assert_eq!(good(text).queues.len(), 2);
    assert_eq!(good(&format!("\u{feff}{text}")).queues.len(), 2);
}

#[test]
fn pod_template_is_stored_as_written() {
    let text = r#"
kind: Gang
metadata: {name: g}
spec:
  roles:
  - name: worker
    min: 2
    template:
      metadata: {labels: {app: train, version: "8"}}
      spec:
        hostNetwork: true
        terminationGracePeriodSeconds: 30
        containers: [{name: main, resources: {limits: {nvidia.com/gpu: 8, cpu: 1.5}}, args: [~, .inf]}]
  - {name: launcher, min: 1}
"#;
    let manifests = good(text);
    let [Some(template), None] = &*manifests.gangs[0].templates else { panic!("{manifests:?}") };
    let template = serde_json::Value::Object(template.clone());
    insta::assert_snapshot!(format!("{template:#}"), @r#"
    {
      "metadata": {
        "labels": {
          "app": "train",
          "version": "8"
        }
      },
      "spec": {
        "containers": [
          {
            "args": [
              null,
              ".inf"
            ],
            "name": "main",
            "resources": {
              "limits": {
                "cpu": 1.5,
                "nvidia.com/gpu": 8
              }
            }
          }
        ],
        "hostNetwork": true,
        "terminationGracePeriodSeconds": 30
      }
    }
    "#);
    assert_eq!(manifests.warnings, []);
}
