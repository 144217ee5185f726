//! Clients of the API server.

use std::path::Path;

use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error(transparent)]
    File(#[from] KubeconfigError),
    #[error(transparent)]
    Client(#[from] kube::Error),
}

pub(crate) async fn connect(kubeconfig: &Path) -> Result<Client, ClientError> {
    let file = Kubeconfig::read_from(kubeconfig)?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    Ok(Client::try_from(config)?)
}

pub(crate) async fn is_ready(client: &Client) -> bool {
    get(client, "/readyz").await.is_ok_and(|answer| answer == "ok")
}

/// Not every role may list nodes.
pub(crate) async fn may_see_nodes(client: &Client) -> bool {
    get(client, "/api/v1/nodes").await.is_ok()
}

async fn get(client: &Client, path: &str) -> Result<String, kube::Error> {
    let request = http::Request::get(path).body(Vec::new()).expect("a fixed request is good");
    client.request_text(request).await
}
