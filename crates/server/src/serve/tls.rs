//! Loads a certificate and its key from PEM files.

use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{Error as RustlsError, ServerConfig};

use crate::Tls;

/// Why a certificate is rejected.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file has no readable certificate or key.
    #[error("{0}: {1}")]
    File(String, PemError),
    /// There is no certificate in the file.
    #[error("{0} has no certificate")]
    Empty(String),
    /// They do not match, or their type is not supported.
    #[error("the certificate and its key cannot be used: {0}")]
    Unusable(#[from] RustlsError),
}

pub(crate) fn acceptor(tls: &Tls) -> Result<TlsAcceptor, TlsError> {
    let file = |path: &std::path::Path| path.display().to_string();
    let wrong = |error| TlsError::File(file(&tls.certificate), error);
    let chain = CertificateDer::pem_file_iter(&tls.certificate).map_err(wrong)?;
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    if chain.is_empty() {
        return Err(TlsError::Empty(file(&tls.certificate)));
    }
    let key = PrivateKeyDer::from_pem_file(&tls.key)
        .map_err(|error| TlsError::File(file(&tls.key), error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
