//! Who asks, and what they may do.

use std::collections::BTreeSet;
use std::sync::Arc;

/// Whoever has shown a token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// What they are called, in logs and as the user of what they submit.
    pub name: Arc<str>,
    /// What they may do.
    pub rights: Rights,
    /// What they call this request by. A host that keeps it with what it does for the request does it once, however often
    /// it comes and whoever is killed in between.
    pub key: Option<RequestKey>,
    /// The Unix user that workers of its gangs run as, where the host has the right to start them so.
    pub run_as: Option<Arc<str>>,
}

/// What somebody calls a request by, and what it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestKey {
    /// The key they gave.
    pub key: Arc<str>,
    /// A digest of the request: the same key for another one is a mistake.
    pub request: [u8; 32],
}

/// What somebody may do, besides looking.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rights {
    /// Nothing.
    Viewer,
    /// What concerns gangs of these queues.
    User(BTreeSet<Arc<str>>),
    /// Everything.
    Admin,
}

impl Caller {
    /// Whoever is called this and may do everything.
    pub fn admin(name: &str) -> Self {
        Self { name: name.into(), rights: Rights::Admin, key: None, run_as: None }
    }

    /// Whether they may submit to a queue, and change what is in it.
    pub fn may_use(&self, queue: &str) -> bool {
        match &self.rights {
            Rights::Viewer => false,
            Rights::User(queues) => queues.contains(queue),
            Rights::Admin => true,
        }
    }

    /// Whether they may change queues, pools and nodes.
    pub fn is_admin(&self) -> bool {
        self.rights == Rights::Admin
    }

    /// Values (keys, scalars, lists, mappings) in the manifests of one request, at most. A mapping of six bytes takes
    /// 700 in memory, so bytes alone bound nothing. An ordinary gang has about 25.
    pub(crate) fn most_values(&self) -> usize {
        if self.is_admin() { 4_000_000 } else { 20_000 }
    }
}
