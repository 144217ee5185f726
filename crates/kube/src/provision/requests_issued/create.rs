//! Asking: a template, and then the request that names it.

use std::collections::BTreeMap;

use kube::api::{Api, DynamicObject};
use muster_core::id::{ClaimId, OfferingRef, OrderId};
use muster_core::topology::HOSTNAME;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use crate::api::retry::Said;
use crate::api::writer::ApiWriter;
use crate::cache::kinds::KindRole;
use crate::effects::outcome::Outcome;
use crate::host::Host;
use crate::objects::node::Node;
use crate::provision::karpenter::offering_name;
use crate::provision::requests_issued::node_marks::is_of;
use crate::provision::requests_issued::progress::PodsByState;
use crate::provision::requests_issued::registry::{Known, waits};
use crate::provision::requests_issued::request_object::{Asked, IssuedRequest};

/// A request that is to be written.
#[derive(Debug)]
pub(crate) struct Writing {
    pub(crate) claims: Vec<ClaimId>,
    template: Value,
    request: Value,
    templates: Option<Api<DynamicObject>>,
    requests: Option<Api<DynamicObject>>,
}

impl Host {
    /// The requests for those claims that nobody has asked for yet: one for each offering.
    pub(crate) fn requests_to_write(
        &mut self,
        claims: &[ClaimId],
        order: Option<OrderId>,
    ) -> Vec<Writing> {
        let mut wanted: BTreeMap<OfferingRef, Vec<ClaimId>> = BTreeMap::new();
        for id in claims {
            let Some(claim) = self.world.claims().get(id).filter(|claim| waits(claim)) else {
                continue;
            };
            let is_asked =
                self.issued_requests.known.values().any(|one| one.asked.claims.contains(id));
            if !is_asked && self.autoscaler_of(claim.offering).is_some() {
                wanted.entry(claim.offering).or_default().push(*id);
            }
        }
        wanted.into_iter().filter_map(|(at, claims)| self.write_down(at, claims, order)).collect()
    }

    fn write_down(
        &mut self,
        at: OfferingRef,
        claims: Vec<ClaimId>,
        order: Option<OrderId>,
    ) -> Option<Writing> {
        let offering = &self.world.offering(at).spec;
        let pool = self.world.pools()[at.pool].spec.name.clone();
        let there = self.cache.nodes.iter().filter(|(_, node)| is_of(node, offering));
        let there = there.map(|(name, node)| host_name(name, node)).collect();
        let requisition = IssuedRequest {
            namespace: &self.config.namespace,
            claims: claims.clone(),
            order,
            pool: &pool,
            owner: self.pools.get(&pool)?.owner.clone(),
            autoscaler: self.autoscaler_of(at)?,
            offering,
            there,
        };
        let writing = Writing {
            claims: claims.clone(),
            template: requisition.template(),
            request: requisition.request(),
            templates: self.own(KindRole::PodTemplate),
            requests: self.own(KindRole::Request),
        };
        let (name, offering) = (requisition.name().into(), offering_name(offering).as_str().into());
        let asked = Asked { pool, offering, claims, order };
        let known = Known { asked, made: None, standing: PodsByState::Unheard };
        self.issued_requests.known.insert(name, known);
        Some(writing)
    }
}

/// What a node is called by affinities: nearly always its name.
fn host_name(name: &str, node: &Node) -> String {
    let label = node.metadata.labels.as_ref().and_then(|labels| labels.get(HOSTNAME));
    label.map_or(name, String::as_str).to_owned()
}

/// Writes requests, all of them at once. What is there already was written before.
pub(crate) async fn ask_autoscaler(
    hands: &ApiWriter,
    told: &UnboundedSender<Outcome>,
    asked: Vec<Writing>,
) {
    let hands = &hands.buying();
    let all = asked.into_iter().map(|writing| async move {
        if let Err(why) = write(hands, &writing).await {
            for claim in writing.claims {
                let _ = told.send(Outcome::ClaimRefused(claim, why.clone()));
            }
        }
    });
    futures::future::join_all(all).await;
}

async fn write(hands: &ApiWriter, writing: &Writing) -> Result<(), String> {
    let Writing { templates: Some(templates), requests: Some(requests), .. } = writing else {
        return Err("the API server does not know ProvisioningRequests".to_owned());
    };
    for (objects, object) in [(templates, &writing.template), (requests, &writing.request)] {
        let object: DynamicObject =
            serde_json::from_value(object.clone()).map_err(|why| why.to_string())?;
        match hands.create(objects, &object).await {
            Ok(_) | Err(Said::Exists) => {}
            Err(said) => return Err(said.to_string()),
        }
    }
    Ok(())
}
