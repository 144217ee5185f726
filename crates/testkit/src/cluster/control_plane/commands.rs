//! The command lines of etcd and kube-apiserver.

use std::path::Path;
use std::process::Command;

use crate::cluster::Part;
use crate::cluster::Setup;
use crate::cluster::Version;
use crate::cluster::control_plane::credentials::Credentials;

/// The ports of one cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub(crate) etcd: u16,
    pub(crate) etcd_peers: u16,
    pub(crate) api: u16,
}

impl Ports {
    pub(crate) fn server(self) -> String {
        format!("https://127.0.0.1:{}", self.api)
    }
}

pub(crate) fn etcd(program: &Path, folder: &Path, ports: Ports) -> Command {
    let clients = format!("http://127.0.0.1:{}", ports.etcd);
    let peers = format!("http://127.0.0.1:{}", ports.etcd_peers);
    let mut command = Command::new(program);
    command
        .arg(format!("--data-dir={}", folder.join("etcd").display()))
        .arg(format!("--listen-client-urls={clients}"))
        .arg(format!("--advertise-client-urls={clients}"))
        .arg(format!("--listen-peer-urls={peers}"))
        .arg(format!("--initial-advertise-peer-urls={peers}"))
        .arg(format!("--initial-cluster=default={peers}"))
        // Data need not survive a crash.
        .arg("--unsafe-no-fsync")
        .arg("--log-level=warn");
    command
}

/// When this names a folder, every API server writes there which requests Muster makes, and whether it may.
pub const AUDIT: &str = "MUSTER_TEST_AUDIT";

/// Muster's requests, without their bodies, when they are answered.
const AUDIT_POLICY: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"], "rules": [
        {"level": "Metadata", "users": ["system:serviceaccount:muster-system:muster"]}, {"level": "None"}]}"#;

fn audit(command: &mut Command, credentials: &Credentials, ports: Ports) {
    let Some(folder) = std::env::var_os(AUDIT) else { return };
    let policy = credentials.certificate().with_file_name("audit.json");
    let log = Path::new(&folder).join(format!("{}-{}.log", std::process::id(), ports.api));
    std::fs::write(&policy, AUDIT_POLICY).expect("a policy is written");
    command.arg(format!("--audit-policy-file={}", policy.display()));
    command.arg(format!("--audit-log-path={}", log.display()));
}

pub(crate) fn api_server(
    program: &Path,
    credentials: &Credentials,
    ports: Ports,
    version: Version,
    setup: &Setup,
) -> Command {
    let mut command = Command::new(program);
    command
        .arg(format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd))
        .args(["--bind-address=127.0.0.1", "--advertise-address=127.0.0.1"])
        .arg(format!("--secure-port={}", ports.api))
        .arg(format!("--tls-cert-file={}", credentials.certificate().display()))
        .arg(format!("--tls-private-key-file={}", credentials.key().display()))
        .arg(format!("--token-auth-file={}", credentials.tokens().display()))
        .arg("--service-account-issuer=https://kubernetes.default.svc")
        .arg(format!("--service-account-signing-key-file={}", credentials.signing_key().display()))
        .arg(format!("--service-account-key-file={}", credentials.verifying_key().display()))
        .arg("--authorization-mode=Node,RBAC")
        .arg("--service-cluster-ip-range=10.0.0.0/24")
        .arg("--allow-privileged=true")
        // The server is not looked up from inside the cluster, and a loopback address would be refused.
        .arg("--endpoint-reconciler-type=none")
        // API priority and fairness would slow down the client that is measured.
        .arg("--enable-priority-and-fairness=false")
        .arg("--profiling=false");
    audit(&mut command, credentials, ports);
    if let Some(gates) = setup.gates(version) {
        command.arg(gates);
    }
    if !version.gang_apis().is_empty() {
        let apis = version.gang_apis().iter().map(|api| format!("scheduling.k8s.io/{api}=true"));
        command.arg(format!("--runtime-config={}", apis.collect::<Vec<_>>().join(",")));
    }
    if !setup.has(Part::ControllerManager) {
        // The controllers create a namespace's service account, and remove the taint of a node that is ready. Without
        // them pods could not be created and nodes not be used.
        command.arg("--disable-admission-plugins=ServiceAccount,TaintNodesByCondition");
    }
    command
}
