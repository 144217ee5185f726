//! Starts a cluster.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cluster::ApplyError;
use crate::cluster::Part;
use crate::cluster::Role;
use crate::cluster::Setup;
use crate::cluster::Version;
use crate::cluster::control_plane::client;
use crate::cluster::control_plane::commands;
use crate::cluster::control_plane::commands::Ports;
use crate::cluster::control_plane::credentials::Credentials;
use crate::cluster::process::ports;
use crate::cluster::process::running::{Ended, Running};
use crate::cluster::skip;
use crate::testbed::Tool;

/// An idle machine needs three seconds; on one with thirty other jobs per core it took ninety.
const READY_WITHIN: Duration = Duration::from_secs(240);

/// How often new ports are tried when one was taken in between.
const TRIES: usize = 3;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("not built: {}; `cargo xtask testbed` builds them", names(.0))]
    Missing(Vec<Tool>),
    #[error("{0} ended instead of starting\n{1}")]
    Ended(Tool, String),
    #[error("not ready after {READY_WITHIN:?}\n{0}")]
    Late(String),
    #[error("kube-apiserver does not say its version")]
    Nameless,
    #[error(transparent)]
    System(#[from] io::Error),
    #[error("a client cannot be made: {0}")]
    Client(#[from] client::ClientError),
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

fn names(tools: &[Tool]) -> String {
    tools.iter().map(|tool| tool.name()).collect::<Vec<_>>().join(", ")
}

/// A running cluster. It ends when it is dropped.
#[derive(Debug)]
pub struct Cluster {
    pub(crate) running: Running,
    credentials: Credentials,
    server: String,
    version: Version,
}

impl Cluster {
    /// A fresh cluster, or `None` where it was not built: the skip is printed then, and is a failure if the test bed
    /// is required.
    ///
    /// # Panics
    /// If it is built and does not start.
    pub async fn start_or_skip(setup: Setup) -> Option<Self> {
        match Self::start(&setup).await {
            Ok(cluster) => Some(cluster),
            Err(StartError::Missing(tools)) => {
                skip::say(&StartError::Missing(tools).to_string());
                None
            }
            Err(error) => panic!("the cluster does not start: {error}"),
        }
    }

    /// A fresh cluster whose API server is ready and whose parts have been started.
    pub async fn start(setup: &Setup) -> Result<Self, StartError> {
        let missing: Vec<Tool> = setup.tools().filter(|tool| tool.path().is_none()).collect();
        if !missing.is_empty() {
            return Err(StartError::Missing(missing));
        }
        for _ in 1..TRIES {
            match Self::try_start(setup).await {
                Err(StartError::Ended(_, log)) if log.contains("address already in use") => {}
                done => return done,
            }
        }
        Self::try_start(setup).await
    }

    async fn try_start(setup: &Setup) -> Result<Self, StartError> {
        let program = |tool: Tool| tool.path().ok_or_else(|| StartError::Missing(vec![tool]));
        let api_server = program(Tool::ApiServer)?;
        let version = Version::of(&api_server).ok_or(StartError::Nameless)?;
        let [etcd, etcd_peers, api] = ports::free()?;
        let ports = Ports { etcd, etcd_peers, api };
        let mut running = Running::new()?;
        let credentials = Credentials::write(&running.folder, &ports.server())?;
        let command = commands::etcd(&program(Tool::Etcd)?, &running.folder, ports);
        running.spawn(Tool::Etcd, command)?;
        // At once: it waits for etcd by itself.
        let command = commands::api_server(&api_server, &credentials, ports, version, setup);
        running.spawn(Tool::ApiServer, command)?;
        let mut cluster = Self { running, credentials, server: ports.server(), version };
        cluster.until_ready().await?;
        cluster.apply(include_str!("control_plane/roles.yaml")).await?;
        cluster.until_rights_hold().await?;
        for part in setup.parts() {
            cluster.add(part, setup).await?;
        }
        Ok(cluster)
    }

    async fn add(&mut self, part: Part, setup: &Setup) -> Result<(), StartError> {
        let tool = part.tool();
        let program = tool.path().ok_or_else(|| StartError::Missing(vec![tool]))?;
        for manifest in part.manifests()? {
            self.apply(&manifest).await?;
        }
        let (folder, credentials) = (&self.running.folder, &self.credentials);
        let command = part.command(&program, folder, credentials, self.version, setup)?;
        Ok(self.running.spawn(tool, command)?)
    }

    async fn until_ready(&self) -> Result<(), StartError> {
        let admin = client::connect(&self.kubeconfig(Role::Admin)).await?;
        self.until_it_holds(async || client::is_ready(&admin).await).await
    }

    /// A permission takes effect a moment after it is written.
    async fn until_rights_hold(&self) -> Result<(), StartError> {
        let observer = client::connect(&self.kubeconfig(Role::Observer)).await?;
        self.until_it_holds(async || client::may_see_nodes(&observer).await).await
    }

    async fn until_it_holds(&self, mut holds: impl AsyncFnMut() -> bool) -> Result<(), StartError> {
        let asking = async {
            while !holds().await {
                if let Some(Ended { tool, log }) = self.running.ended() {
                    return Err(StartError::Ended(tool, log));
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Ok(())
        };
        let late = |_| StartError::Late(self.running.logs());
        tokio::time::timeout(READY_WITHIN, asking).await.map_err(late)?
    }

    /// The version of Kubernetes.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The URL of the API server: `https://127.0.0.1:port`.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The kubeconfig of a role.
    pub fn kubeconfig(&self, role: Role) -> PathBuf {
        self.credentials.kubeconfig(role)
    }

    /// The folder of everything that the cluster writes, logs included.
    pub fn folder(&self) -> &Path {
        &self.running.folder
    }

    /// Process ids by program.
    pub fn processes(&self) -> Vec<(Tool, u32)> {
        self.running.processes()
    }

    /// A client of a role.
    ///
    /// # Panics
    /// Never, unless the cluster's files were changed from outside.
    pub async fn client(&self, role: Role) -> kube::Client {
        client::connect(&self.kubeconfig(role)).await.expect("the cluster's own file is good")
    }
}
