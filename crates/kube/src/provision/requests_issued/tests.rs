//! What is written is what is read.

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
use crate::provision::requests_issued::node_marks::*;
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

fn requisition<'a>(offering: &'a OfferingSpec, autoscaler: &'a Autoscaler) -> IssuedRequest<'a> {
    IssuedRequest {
        namespace: "muster-system",
        claims: vec![ClaimId(7), ClaimId(8)],
        order: Some(OrderId(3)),
        pool: "gpu",
        owner: None,
        autoscaler,
        offering,
        there: vec!["n0".to_owned()],
    }
}

#[test]
fn what_was_written_is_read_again() {
    let (offering, autoscaler) = (offering(8), Autoscaler::default());
    let one = requisition(&offering, &autoscaler);
    for object in [one.request(), one.template()] {
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        let claims = vec![ClaimId(7), ClaimId(8)];
        let read = Asked {
            pool: "gpu".into(),
            offering: "gpu8/zone-a/spot".into(),
            claims,
            order: Some(OrderId(3)),
        };
        assert_eq!((object.name_any(), asked(&object)), ("muster-7".to_owned(), Some(read)));
    }
}

#[test]
fn two_of_its_pods_never_share_a_node_and_none_goes_to_one_that_is_there() {
    let autoscaler = Autoscaler::default();
    let requests = |gpus: u16| {
        let offering = offering(gpus);
        let template = requisition(&offering, &autoscaler).template();
        template.pointer("/template/spec/containers/0/resources/requests").cloned()
    };
    assert_eq!(requests(8), Some(json!({"nvidia.com/gpu": "8"})));
    assert_eq!(requests(0), Some(json!({"cpu": "32001m", "memory": "536870913"})));
    let offering = offering(8);
    let template = requisition(&offering, &autoscaler).template();
    let selector = template.pointer("/template/spec/nodeSelector");
    assert_eq!(selector, Some(&json!({"node.kubernetes.io/instance-type": "gpu8"})));
    assert!(template.to_string().contains(r#""operator":"NotIn","values":["n0"]"#));
}

#[test]
fn a_node_says_whose_it_is_until_it_is_let_go() {
    let offering = offering(8);
    let taken = taking(ClaimId(7), "gpu", &offering);
    assert_eq!(taken["metadata"]["labels"], json!({"muster.sh/capacity-type": "spot"}));
    let node: Node = serde_json::from_value(taken).expect("a node");
    let marks = marks(&node).expect("marks");
    assert_eq!((marks.id, &*marks.offering), (ClaimId(7), "gpu8/zone-a/spot"));
    assert!(!is_of(&node, &offering) && is_new(&node));
    let undone = letting_go();
    let left =
        json!({"metadata": {"annotations": {LET_GO: undone["metadata"]["annotations"][LET_GO]}}});
    assert!(!is_new(&serde_json::from_value(left).expect("a node")));
    for key in node.metadata.annotations.expect("annotations").keys() {
        assert!(undone["metadata"]["annotations"].get(key).is_some(), "{key}");
    }
}
