//! Identities that use the cluster, and their permissions.

use std::fmt::Write;

/// One identity with a token of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// May do everything.
    Admin,
    /// Muster itself: the service account `muster` in `muster-system`. It has the permissions of the manifests that a
    /// test applies, and none before that.
    Muster,
    /// A user that submits gangs: the cluster role `edit`.
    User,
    /// One tenant of several: no permissions until a test binds roles to the user `tenant` in its namespace.
    Tenant,
    /// A user that may read: the cluster role `view`, so no nodes and nothing cluster-wide.
    Viewer,
    /// An auditor: reads everything, writes nothing.
    Observer,
    ControllerManager,
    Scheduler,
    Kwok,
    Karpenter,
}

impl Role {
    pub const ALL: [Self; 10] = [
        Self::Admin,
        Self::Muster,
        Self::User,
        Self::Tenant,
        Self::Viewer,
        Self::Observer,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Kwok,
        Self::Karpenter,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Muster => "muster",
            Self::User => "user",
            Self::Tenant => "tenant",
            Self::Viewer => "viewer",
            Self::Observer => "observer",
            Self::ControllerManager => "controller-manager",
            Self::Scheduler => "scheduler",
            Self::Kwok => "kwok",
            Self::Karpenter => "karpenter",
        }
    }

    /// Its Kubernetes user name. Those of programs are the ones that their own manifests bind roles to, so that these
    /// can be applied as they are.
    pub const fn user(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Muster => "system:serviceaccount:muster-system:muster",
            Self::User => "user",
            Self::Tenant => "tenant",
            Self::Viewer => "viewer",
            Self::Observer => "observer",
            Self::ControllerManager => "system:kube-controller-manager",
            Self::Scheduler => "system:kube-scheduler",
            Self::Kwok => "system:serviceaccount:kube-system:kwok-controller",
            Self::Karpenter => "system:serviceaccount:kube-system:karpenter",
        }
    }

    const fn groups(self) -> &'static str {
        match self {
            // All controllers run under one identity here, and no single role lists what they need together.
            Self::Admin | Self::ControllerManager => "system:masters",
            Self::Muster => "system:serviceaccounts,system:serviceaccounts:muster-system",
            Self::Kwok | Self::Karpenter => {
                "system:serviceaccounts,system:serviceaccounts:kube-system"
            }
            Self::User | Self::Tenant | Self::Viewer | Self::Observer | Self::Scheduler => "",
        }
    }

    /// Not secret: it is valid for a server on loopback that lives for one test.
    pub fn token(self) -> String {
        format!("{}-token", self.name())
    }
}

/// The content of kube-apiserver's `--token-auth-file`.
pub(crate) fn token_file() -> String {
    Role::ALL.into_iter().fold(String::new(), |mut file, role| {
        let (token, user, groups) = (role.token(), role.user(), role.groups());
        writeln!(file, "{token},{user},{},\"{groups}\"", role.name()).expect("a string takes all");
        file
    })
}
