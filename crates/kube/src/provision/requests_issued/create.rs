//! Creates issued requests: a PodTemplate, and then the ProvisioningRequest that names it.

use std::collections::BTreeMap;

use kube::api::{Api, DynamicObject};
use muster_core::id::{ClaimId, OfferingRef, OrderId};
use muster_core::topology::HOSTNAME;
use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use crate::api::retry::ApiError;
use crate::api::writer::ApiWriter;
use crate::cache::kinds::KindRole;
use crate::effects::outcome::Outcome;
use crate::host::Host;
use crate::objects::node::Node;
use crate::provision::karpenter::offering_name;
use crate::provision::requests_issued::node_annotations::matches_offering;
use crate::provision::requests_issued::progress::RequestProgress;
use crate::provision::requests_issued::registry::{IssuedRequestState, awaits_node};
use crate::provision::requests_issued::request_object::{IssuedRequest, RequestScope};

/// A request to create, with its template.
#[derive(Debug)]
pub(crate) struct IssuedRequestWrite {
    pub(crate) claims: Vec<ClaimId>,
    template: Value,
    request: Value,
    templates: Option<Api<DynamicObject>>,
    requests: Option<Api<DynamicObject>>,
}

impl Host {
    /// The requests for those claims that were not requested yet: one for each offering.
    pub(crate) fn new_issued_requests(
        &mut self,
        claims: &[ClaimId],
        order: Option<OrderId>,
    ) -> Vec<IssuedRequestWrite> {
        let mut by_offering: BTreeMap<OfferingRef, Vec<ClaimId>> = BTreeMap::new();
        for id in claims {
            let Some(claim) = self.world.claims().get(id).filter(|claim| awaits_node(claim)) else {
                continue;
            };
            let is_requested =
                self.issued_requests.requests.values().any(|one| one.scope.claims.contains(id));
            if !is_requested && self.autoscaler_of(claim.offering).is_some() {
                by_offering.entry(claim.offering).or_default().push(*id);
            }
        }
        by_offering
            .into_iter()
            .filter_map(|(at, claims)| self.issued_request_write(at, claims, order))
            .collect()
    }

    fn issued_request_write(
        &mut self,
        at: OfferingRef,
        claims: Vec<ClaimId>,
        order: Option<OrderId>,
    ) -> Option<IssuedRequestWrite> {
        let offering = &self.world.offering(at).spec;
        let pool = self.world.pools()[at.pool].spec.name.clone();
        let existing = self.cache.nodes.iter().filter(|(_, node)| matches_offering(node, offering));
        let existing_nodes = existing.map(|(name, node)| host_name(name, node)).collect();
        let request = IssuedRequest {
            namespace: &self.config.namespace,
            claims: claims.clone(),
            order,
            pool: &pool,
            owner: self.pools.get(&pool)?.owner.clone(),
            autoscaler: self.autoscaler_of(at)?,
            offering,
            existing_nodes,
        };
        let write = IssuedRequestWrite {
            claims: claims.clone(),
            template: request.template(),
            request: request.request(),
            templates: self.own_namespace_api(KindRole::PodTemplate),
            requests: self.own_namespace_api(KindRole::Request),
        };
        let (name, offering) = (request.name().into(), offering_name(offering).as_str().into());
        let scope = RequestScope { pool, offering, claims, order };
        let state =
            IssuedRequestState { scope, created_at: None, progress: RequestProgress::Pending };
        self.issued_requests.requests.insert(name, state);
        Some(write)
    }
}

/// The value of a node's hostname label, by which affinities refer to it: nearly always its name.
fn host_name(name: &str, node: &Node) -> String {
    let label = node.metadata.labels.as_ref().and_then(|labels| labels.get(HOSTNAME));
    label.map_or(name, String::as_str).to_owned()
}

/// Creates requests, all of them concurrently. An object that exists was created by an earlier attempt.
pub(crate) async fn create_issued_requests(
    writer: &ApiWriter,
    outcomes: &UnboundedSender<Outcome>,
    writes: Vec<IssuedRequestWrite>,
) {
    let writer = &writer.for_purchases();
    let all = writes.into_iter().map(|write| async move {
        if let Err(why) = create(writer, &write).await {
            for claim in write.claims {
                let _ = outcomes.send(Outcome::ClaimRefused(claim, why.clone()));
            }
        }
    });
    futures::future::join_all(all).await;
}

async fn create(writer: &ApiWriter, write: &IssuedRequestWrite) -> Result<(), String> {
    let IssuedRequestWrite { templates: Some(templates), requests: Some(requests), .. } = write
    else {
        return Err("the API server does not serve ProvisioningRequests".to_owned());
    };
    for (objects, object) in [(templates, &write.template), (requests, &write.request)] {
        let object: DynamicObject =
            serde_json::from_value(object.clone()).map_err(|why| why.to_string())?;
        match writer.create(objects, &object).await {
            Ok(_) | Err(ApiError::AlreadyExists) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}
