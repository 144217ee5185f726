//! Requests and nodes after a restart.

use std::sync::Arc;

use muster_core::time::Time;

use crate::cache::kinds::KindRole;
use crate::host::Host;
use crate::provision::karpenter::Marks;
use crate::provision::order_object::parts;
use crate::provision::requests_issued::node_marks::marks;
use crate::recover::timestamps::made;

impl Host {
    /// Claims there are: those whose nodes say so, and those that a request was made for.
    pub(crate) fn recover_issued_requests(&mut self) {
        self.issued_requests.known.clear();
        self.issued_requests.templates.clear();
        let held = self.cache.nodes.iter();
        let held = held.filter_map(|(_, node)| Some((marks(node)?, made(&node.metadata))));
        for (marks, came) in held.collect::<Vec<_>>() {
            let came = came.unwrap_or_else(|| self.now());
            self.find_claim(&marks, came, Some(came));
        }
        for moved in self.all_of(KindRole::PodTemplate) {
            self.observe_own_template(&moved);
        }
        for moved in self.all_of(KindRole::Request) {
            let (namespace, name) = parts(&moved.key);
            if let Some(request) = moved.is.filter(|_| *namespace == *self.config.namespace) {
                self.track_issued_request(&name.into(), &request);
            }
        }
        let asked: Vec<(Marks, Option<Time>)> = (self.issued_requests.known.values())
            .flat_map(|one| {
                let (pool, offering) = (&one.asked.pool, &one.asked.offering);
                let claims = one.asked.claims.iter();
                claims.map(|id| {
                    let (pool, offering) = (pool.clone(), offering.clone());
                    (Marks { id: *id, pool, offering }, one.made)
                })
            })
            .collect();
        for (marks, made) in &asked {
            let asked = made.unwrap_or_else(|| self.now());
            self.find_claim(marks, asked, None);
        }
    }

    /// What was said of requests while nobody listened.
    pub(crate) fn reconcile_issued_requests(&mut self) {
        let names: Vec<Arc<str>> = self.issued_requests.known.keys().cloned().collect();
        names.iter().for_each(|name| self.reconcile_issued_request(name));
    }
}
