//! Programs beside the control plane: controllers, scheduler, kwok and Karpenter, each on request.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cluster::Role;
use crate::cluster::Setup;
use crate::cluster::Version;
use crate::cluster::control_plane::credentials::Credentials;
use crate::testbed;
use crate::testbed::Tool;

/// Instance types for Karpenter, with eight GPUs among them.
const INSTANCE_TYPES: &str = include_str!("instance_types.json");

/// Controllers that matter to tests of a scheduler and provisioner. The others would need clouds and networks.
const CONTROLLERS: &[&str] = &[
    "clusterrole-aggregation-controller",
    "daemonset-controller",
    "deployment-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "persistentvolume-binder-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "resourcequota-controller",
    "serviceaccount-controller",
    "statefulset-controller",
    "taint-eviction-controller",
    "ttl-after-finished-controller",
];

/// Of kwok's manifests those for the API server; the others configure kwok itself: the stages of nodes and pods.
const KWOK_ROLES: [&str; 2] = ["role.yaml", "role_binding.yaml"];

/// A program besides the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Jobs get pods, orphans are collected, nodes get and lose taints. Brings service accounts with it.
    ControllerManager,
    /// The default scheduler, native gangs included.
    Scheduler,
    /// Acts as the kubelet of every node annotated `kwok.x-k8s.io/node: fake`: the node becomes ready, its pods run.
    Kwok,
    /// Turns NodeClaims of the KWOKNodeClass `default` into nodes. Needs `Kwok` and `ControllerManager` to get them
    /// ready.
    Karpenter,
}

impl Part {
    pub const ALL: [Self; 4] =
        [Self::ControllerManager, Self::Scheduler, Self::Kwok, Self::Karpenter];

    pub const fn tool(self) -> Tool {
        match self {
            Self::ControllerManager => Tool::ControllerManager,
            Self::Scheduler => Tool::Scheduler,
            Self::Kwok => Tool::Kwok,
            Self::Karpenter => Tool::Karpenter,
        }
    }

    const fn role(self) -> Role {
        match self {
            Self::ControllerManager => Role::ControllerManager,
            Self::Scheduler => Role::Scheduler,
            Self::Kwok => Role::Kwok,
            Self::Karpenter => Role::Karpenter,
        }
    }

    /// Manifests to apply before it starts.
    pub(crate) fn manifests(self) -> io::Result<Vec<String>> {
        match self {
            Self::ControllerManager | Self::Scheduler => Ok(Vec::new()),
            Self::Kwok => KWOK_ROLES
                .iter()
                .map(|name| std::fs::read_to_string(testbed::manifests(Tool::Kwok).join(name)))
                .collect(),
            Self::Karpenter => {
                let files = yaml_files(&testbed::manifests(Tool::Karpenter))?;
                let crds = files.iter().map(std::fs::read_to_string);
                let ours = include_str!("karpenter.yaml").to_owned();
                crds.chain([Ok(ours)]).collect()
            }
        }
    }

    pub(crate) fn command(
        self,
        program: &Path,
        folder: &Path,
        credentials: &Credentials,
        version: Version,
        setup: &Setup,
    ) -> io::Result<Command> {
        let kubeconfig = credentials.kubeconfig(self.role());
        let mut command = Command::new(program);
        match self {
            Self::ControllerManager => {
                command
                    .arg(format!("--kubeconfig={}", kubeconfig.display()))
                    .arg(format!("--controllers={}", controllers(version)))
                    .arg(format!("--flex-volume-plugin-dir={}", folder.join("flex").display()))
                    .args(["--leader-elect=false", "--secure-port=0"])
                    .args(["--kube-api-qps=1000", "--kube-api-burst=2000"])
                    .args(setup.gates(version));
            }
            Self::Scheduler => {
                let file = folder.join("scheduler.yaml");
                std::fs::write(&file, scheduler_configuration(&kubeconfig))?;
                command
                    .arg(format!("--config={}", file.display()))
                    .arg("--secure-port=0")
                    .args(setup.gates(version));
            }
            Self::Kwok => {
                command.arg(format!("--kubeconfig={}", kubeconfig.display()));
                command.arg("--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake");
                for stage in yaml_files(&testbed::manifests(Tool::Kwok))? {
                    if !KWOK_ROLES.iter().any(|role| stage.ends_with(role)) {
                        command.arg(format!("--config={}", stage.display()));
                    }
                }
            }
            Self::Karpenter => {
                let types = folder.join("instance-types.json");
                std::fs::write(&types, INSTANCE_TYPES)?;
                command.envs([
                    ("KUBECONFIG", kubeconfig.into_os_string()),
                    ("INSTANCE_TYPES_FILE_PATH", types.into_os_string()),
                    ("DISABLE_LEADER_ELECTION", OsString::from("true")),
                    // Any free port; listening cannot be turned off.
                    ("METRICS_PORT", OsString::from("0")),
                    ("HEALTH_PROBE_PORT", OsString::from("0")),
                ]);
            }
        }
        Ok(command)
    }
}

/// An unknown name would keep it from starting.
fn controllers(version: Version) -> String {
    let of_gangs = (version.minor >= 37).then_some("podgroup-protection-controller");
    CONTROLLERS.iter().copied().chain(of_gangs).collect::<Vec<_>>().join(",")
}

/// The default profile; only the client's own rate limit is lifted, since it would be what is measured.
fn scheduler_configuration(kubeconfig: &Path) -> String {
    serde_json::json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": { "leaderElect": false },
        "clientConnection": { "kubeconfig": kubeconfig, "qps": 1000, "burst": 2000 },
    })
    .to_string()
}

fn yaml_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut files = entries.collect::<io::Result<Vec<_>>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    Ok(files)
}
