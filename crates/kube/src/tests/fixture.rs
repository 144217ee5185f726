//! A host without a cluster: tests show it objects, and check its World.
//!
//! Writes go nowhere, so these tests check decisions, not their effects: those are tested against a real API server. A test
//! passes the outcome of a write to the host itself.

use std::sync::Arc;

use kube::Client;
use kube::runtime::watcher::Event;
use muster_core::gang::{Gang, Phase};
use muster_core::id::GangId;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::api::resource_versions::ResourceVersions;
use crate::api::watch::watches::{Change, Watches};
use crate::api::writer::ApiWriter;
use crate::cache::cluster_cache::ObservedChanges;
use crate::cache::kinds;
use crate::cache::kinds::KindRole;
use crate::config::Config;
use crate::effects::outcome::Outcome;
use crate::host::Host;
use crate::lease::leadership::Leadership;

/// An address that nothing listens on.
pub(crate) const UNREACHABLE: &str = "http://127.0.0.1:1";

pub(crate) struct HostFixture {
    pub(crate) host: Host,
    pub(crate) _outcomes: mpsc::UnboundedReceiver<Outcome>,
    pub(crate) _watches: Watches,
}

impl HostFixture {
    /// A host that watches every kind, with empty lists.
    pub(crate) fn new() -> Self {
        Self::with(&Config::default())
    }

    pub(crate) fn with(config: &Config) -> Self {
        let kinds: Vec<KindRole> =
            kinds::watched_kinds().iter().map(|(kind_role, _)| *kind_role).collect();
        Self::watching(config, |kind_role| kinds.contains(&kind_role))
    }

    /// A host that watches these kinds.
    pub(crate) fn watching(config: &Config, watched: impl Fn(KindRole) -> bool) -> Self {
        let unreachable = kube::Config::new(UNREACHABLE.parse().expect("an address"));
        let client = Client::try_from(unreachable).expect("a client");
        let writer = ApiWriter::new(client.clone(), Leadership::without_lease());
        let (send_outcome, outcomes) = mpsc::unbounded_channel();
        let (changes, _) = mpsc::channel(1);
        let mut watches = Watches::new(
            client.clone(),
            changes,
            ResourceVersions::default(),
            config.bounds,
            config.watches.clone(),
        );
        let mut host = Host::new(config, writer, send_outcome);
        let wanted =
            kinds::watched_kinds().into_iter().filter(|(kind_role, _)| watched(*kind_role));
        let served = wanted.map(|(kind_role, wanted)| (Some(kind_role), wanted.resource()));
        host.watch(
            served.chain([(None, crate::cache::watched_objects::NODE_CLAIMS.resource())]).collect(),
            &mut watches,
        );
        let mut fixture = Self { host, _outcomes: outcomes, _watches: watches };
        fixture.change(|_| Change::Pod(Box::new(Event::InitDone)));
        fixture.change(|_| Change::Node(Box::new(Event::InitDone)));
        fixture.change(|_| Change::Claim(Box::new(Event::InitDone)));
        let sources: Vec<_> = fixture.host.cache.others.keys().copied().collect();
        for source in sources {
            fixture.change(|_| Change::Other(source, Box::new(Event::InitDone)));
        }
        fixture
    }

    pub(crate) fn change(&mut self, change: impl FnOnce(&Host) -> Change) {
        let mut touched = ObservedChanges::default();
        let change = change(&self.host);
        self.host.cache.apply(change, &mut touched);
        self.host.observe(touched);
    }

    /// Shows an object, and runs a cycle.
    pub(crate) fn see(&mut self, object: Value) {
        self.show(object, false);
        self.host.run_cycle();
    }

    /// Shows that an object was deleted, and runs a cycle.
    pub(crate) fn see_gone(&mut self, object: Value) {
        self.show(object, true);
        self.host.run_cycle();
    }

    /// Shows an object, or that it was deleted, without a cycle. The NodeClaim of a bought node is shown with it, as
    /// Karpenter names the node there.
    pub(crate) fn show(&mut self, object: Value, gone: bool) {
        if !gone && object["kind"] == "Node" {
            self.show_registered(&object);
        }
        self.show_as_is(object, gone);
    }

    /// Shows the NodeClaim of a node that has its label, unless it names the node already.
    pub(crate) fn show_registered(&mut self, node: &Value) {
        let label = node.pointer("/metadata/labels/muster.sh~1claim").and_then(Value::as_str);
        let Some(id) = label.and_then(|id| id.parse().ok()) else { return };
        let name = &node["metadata"]["name"];
        let seen = self.host.cache.claims.get(&format!("muster-{id}"));
        if seen.is_none_or(|seen| seen.status.node_name.as_deref() != name.as_str()) {
            let mut claim = crate::tests::objects::claim(id);
            claim["status"]["nodeName"] = name.clone();
            self.show_as_is(claim, false);
        }
    }

    /// Shows an object, or that it was deleted, and nothing else.
    pub(crate) fn show_as_is(&mut self, object: Value, gone: bool) {
        let kind = object["kind"].as_str().unwrap_or_default().to_owned();
        let version = object["apiVersion"].as_str().unwrap_or_default().to_owned();
        self.change(|host| match &*kind {
            "Pod" => Change::Pod(event(object, gone)),
            "Node" => Change::Node(event(object, gone)),
            "NodeClaim" => Change::Claim(event(object, gone)),
            _ => {
                let mut kinds = kinds::watched_kinds().into_iter().filter(|(_, wanted)| {
                    let resource = wanted.resource();
                    resource.kind == kind && resource.api_version == version
                });
                let source = kinds.find_map(|(kind_role, _)| host.sources.of(kind_role));
                Change::Other(source.expect("a kind that is watched"), event(object, gone))
            }
        });
    }

    /// Passes the outcome of a write to the host, and runs a cycle.
    pub(crate) fn handle_outcome(&mut self, outcome: Outcome) {
        self.host.handle_outcome(outcome);
        self.host.run_cycle();
    }

    pub(crate) fn gang(&self, name: &str) -> Option<(GangId, &Gang)> {
        let id = self.host.world.gang_named(name)?;
        Some((id, self.host.world.gang(id)?))
    }

    pub(crate) fn phase(&self, name: &str) -> Option<&Phase> {
        self.gang(name).map(|(_, gang)| &gang.phase)
    }

    /// The numbers of all claims in the World.
    pub(crate) fn claims(&self) -> Vec<u32> {
        self.host.world.claims().keys().map(|claim| claim.0).collect()
    }

    /// The open order of a gang.
    pub(crate) fn order(&self, name: &str) -> Option<muster_core::id::OrderId> {
        self.host.order_by_gang.get(&Arc::<str>::from(name)).copied()
    }
}

pub(crate) fn event<T: DeserializeOwned>(object: Value, gone: bool) -> Box<Event<T>> {
    let object = serde_json::from_value(object).expect("an object");
    Box::new(if gone { Event::Delete(object) } else { Event::Apply(object) })
}
