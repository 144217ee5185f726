//! Objects that Muster writes are read back as they were written.

use kube::ResourceExt;
use kube::api::DynamicObject;
use muster_api::Autoscaler;
use muster_core::device::GpuKind;
use muster_core::id::{ClaimId, OrderId};
use muster_core::money::Money;
use muster_core::pool::OfferingSpec;
use muster_core::time::Span;
use serde_json::json;

use crate::objects::node::Node;
use crate::provision::requests_issued::node_annotations::*;
use crate::provision::requests_issued::request_object::*;

fn offering(gpus: u16) -> OfferingSpec {
    let gpu = GpuKind { resource: "nvidia.com/gpu".into(), model: "H100".into(), memory: 0 };
    let labels =
        [("node.kubernetes.io/instance-type", "gpu8"), ("muster.sh/capacity-type", "spot")];
    OfferingSpec {
        instance_type: "gpu8".into(),
        zone: "zone-a".into(),
        region: "".into(),
        capacity_type: "spot".into(),
        price: Money::ZERO,
        allocatable: [("cpu".into(), 64_000), ("memory".into(), 1 << 30), ("pods".into(), 110)]
            .into(),
        gpu: (gpus > 0).then_some(gpu),
        gpus,
        labels: labels.map(|(key, value)| (key.into(), value.into())).into(),
        taints: Vec::new(),
        max: None,
        boot_time: Span::secs(60),
        start_time: None,
    }
}

fn issued_request<'a>(offering: &'a OfferingSpec, autoscaler: &'a Autoscaler) -> IssuedRequest<'a> {
    IssuedRequest {
        namespace: "muster-system",
        claims: vec![ClaimId(7), ClaimId(8)],
        order: Some(OrderId(3)),
        pool: "gpu",
        owner: None,
        autoscaler,
        offering,
        existing_nodes: vec!["n0".to_owned()],
    }
}

#[test]
fn issued_request_and_template_are_read_back_as_written() {
    let (offering, autoscaler) = (offering(8), Autoscaler::default());
    let one = issued_request(&offering, &autoscaler);
    for object in [one.request(), one.template()] {
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        let claims = vec![ClaimId(7), ClaimId(8)];
        let read = RequestScope {
            pool: "gpu".into(),
            offering: "gpu8/zone-a/spot".into(),
            claims,
            order: Some(OrderId(3)),
        };
        assert_eq!(
            (object.name_any(), request_scope(&object)),
            ("muster-7".to_owned(), Some(read))
        );
    }
}

#[test]
fn template_pod_fills_a_node_and_avoids_existing_nodes() {
    let autoscaler = Autoscaler::default();
    let requests = |gpus: u16| {
        let offering = offering(gpus);
        let template = issued_request(&offering, &autoscaler).template();
        template.pointer("/template/spec/containers/0/resources/requests").cloned()
    };
    assert_eq!(requests(8), Some(json!({"nvidia.com/gpu": "8"})));
    assert_eq!(requests(0), Some(json!({"cpu": "32001m", "memory": "536870913"})));
    let offering = offering(8);
    let template = issued_request(&offering, &autoscaler).template();
    let selector = template.pointer("/template/spec/nodeSelector");
    assert_eq!(selector, Some(&json!({"node.kubernetes.io/instance-type": "gpu8"})));
    assert!(template.to_string().contains(r#""operator":"NotIn","values":["n0"]"#));
}

#[test]
fn assigned_node_is_annotated_until_it_is_released() {
    let offering = offering(8);
    let taken = assign_patch(ClaimId(7), "gpu", &offering);
    assert_eq!(taken["metadata"]["labels"], json!({"muster.sh/capacity-type": "spot"}));
    let node: Node = serde_json::from_value(taken).expect("a node");
    let identity = assigned_claim_identity(&node).expect("annotations");
    assert_eq!((identity.id, &*identity.offering), (ClaimId(7), "gpu8/zone-a/spot"));
    assert!(!matches_offering(&node, &offering) && was_never_assigned(&node));
    let undone = release_patch();
    let left = json!({"metadata": {"annotations": {RELEASED: undone["metadata"]["annotations"][RELEASED]}}});
    assert!(!was_never_assigned(&serde_json::from_value(left).expect("a node")));
    for key in node.metadata.annotations.expect("annotations").keys() {
        assert!(undone["metadata"]["annotations"].get(key).is_some(), "{key}");
    }
}
