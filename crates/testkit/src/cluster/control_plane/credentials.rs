//! Certificates, keys, tokens and kubeconfigs of a cluster.

use std::io;
use std::path::{Path, PathBuf};

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use serde_json::json;

use crate::cluster::control_plane::role::{Role, token_file};

#[derive(Debug)]
pub(crate) struct Credentials {
    folder: PathBuf,
}

impl Credentials {
    /// Writes all of them.
    pub(crate) fn write(folder: &Path, server: &str) -> io::Result<Self> {
        let this = Self { folder: folder.to_owned() };
        let hosts = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(hosts).map_err(io::Error::other)?;
        std::fs::write(this.certificate(), cert.pem())?;
        std::fs::write(this.key(), signing_key.serialize_pem())?;
        // Signs the tokens of service accounts.
        let signer = KeyPair::generate().map_err(io::Error::other)?;
        std::fs::write(this.signing_key(), signer.serialize_pem())?;
        std::fs::write(this.verifying_key(), signer.public_key_pem())?;
        std::fs::write(this.tokens(), token_file())?;
        for role in Role::ALL {
            std::fs::write(this.kubeconfig(role), this.kubeconfig_text(role, server))?;
        }
        Ok(this)
    }

    pub(crate) fn certificate(&self) -> PathBuf {
        self.folder.join("server.crt")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.folder.join("server.key")
    }

    pub(crate) fn signing_key(&self) -> PathBuf {
        self.folder.join("service-accounts.key")
    }

    pub(crate) fn verifying_key(&self) -> PathBuf {
        self.folder.join("service-accounts.pub")
    }

    pub(crate) fn tokens(&self) -> PathBuf {
        self.folder.join("tokens.csv")
    }

    pub(crate) fn kubeconfig(&self, role: Role) -> PathBuf {
        self.folder.join(format!("{}.kubeconfig", role.name()))
    }

    /// JSON, which is YAML too.
    fn kubeconfig_text(&self, role: Role, server: &str) -> String {
        let cluster = json!({ "server": server, "certificate-authority": self.certificate() });
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "testbed",
            "clusters": [{ "name": "testbed", "cluster": cluster }],
            "users": [{ "name": role.name(), "user": { "token": role.token() } }],
            "contexts": [{ "name": "testbed", "context": { "cluster": "testbed", "user": role.name() } }],
        })
        .to_string()
    }
}
