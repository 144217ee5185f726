//! Requests and nodes after a restart.

use std::sync::Arc;

use crate::autoscaler::marks;
use crate::host::Host;
use crate::host::orders::parts;
use crate::intake::Interest;
use crate::karpenter::Marks;

impl Host {
    /// Claims there are: those whose nodes say so, and those that a request was made for.
    pub(in super::super) fn find_requisitions(&mut self) {
        self.requisitions.known.clear();
        self.requisitions.templates.clear();
        let held: Vec<Marks> =
            self.mirror.nodes.iter().filter_map(|(_, node)| marks(node)).collect();
        for marks in &held {
            self.find_claim(marks);
        }
        for moved in self.all_of(Interest::PodTemplate) {
            self.see_own_template(&moved);
        }
        for moved in self.all_of(Interest::Request) {
            let (namespace, name) = parts(&moved.key);
            if let Some(request) = moved.is.filter(|_| *namespace == *self.config.namespace) {
                self.know_requisition(&name.into(), &request);
            }
        }
        let asked: Vec<Marks> = (self.requisitions.known.values())
            .flat_map(|one| {
                let (pool, offering) = (&one.asked.pool, &one.asked.offering);
                let claims = one.asked.claims.iter();
                claims.map(|id| Marks { id: *id, pool: pool.clone(), offering: offering.clone() })
            })
            .collect();
        for marks in &asked {
            self.find_claim(marks);
        }
    }

    /// What was said of requests while nobody listened.
    pub(in super::super) fn follow_requisitions(&mut self) {
        let names: Vec<Arc<str>> = self.requisitions.known.keys().cloned().collect();
        names.iter().for_each(|name| self.follow_requisition(name));
    }
}
