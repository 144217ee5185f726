//! The caller of a request, and its rights.

use std::collections::BTreeSet;
use std::sync::Arc;

/// An authenticated caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The caller's name, in logs and as the user of submitted gangs.
    pub name: Arc<str>,
    /// The caller's rights.
    pub rights: Rights,
    /// The idempotency key of this request. A host that stores the key in the transaction of the change executes it
    /// once, however often it is sent and whichever process is killed in between.
    pub key: Option<RequestKey>,
    /// The Unix user for workers of this caller's gangs, where the host may change users.
    pub run_as: Option<Arc<str>>,
}

/// An idempotency key, and the digest of its request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestKey {
    /// The key as the caller sent it.
    pub key: Arc<str>,
    /// A digest of the request: the same key with another request is an error.
    pub request: [u8; 32],
}

/// Rights beyond reading.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rights {
    /// None.
    Viewer,
    /// Changes to gangs of these queues.
    User(BTreeSet<Arc<str>>),
    /// Everything.
    Admin,
}

impl Caller {
    /// An admin with this name.
    pub fn admin(name: &str) -> Self {
        Self { name: name.into(), rights: Rights::Admin, key: None, run_as: None }
    }

    /// Whether the caller may submit to a queue and change its gangs.
    pub fn may_use(&self, queue: &str) -> bool {
        match &self.rights {
            Rights::Viewer => false,
            Rights::User(queues) => queues.contains(queue),
            Rights::Admin => true,
        }
    }

    /// Whether the caller may change queues, pools and nodes.
    pub fn is_admin(&self) -> bool {
        self.rights == Rights::Admin
    }

    /// The most values (keys, scalars, lists, mappings) in the manifests of one request. A mapping of six bytes takes
    /// 700 in memory, so a limit on bytes alone bounds nothing. An ordinary gang has about 25.
    pub(crate) fn most_values(&self) -> usize {
        if self.is_admin() { 4_000_000 } else { 20_000 }
    }
}
