//! Configuration of a server, and the state that all requests share.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use crate::auth::sessions::Sessions;
use crate::auth::tokens::TokenDigest;
use crate::idempotency::replay::Idempotency;
use crate::limits::concurrency::Concurrency;
use crate::metrics::Metrics;
use crate::{AuditLog, Host, IdempotencyStore, InMemoryStore, Limits, Shutdown, Tokens};

/// Configuration of a server.
#[derive(Clone)]
pub struct Config {
    /// Addresses to listen on. Without tokens only loopback addresses are allowed.
    pub listen: Vec<SocketAddr>,
    /// Accepted tokens.
    pub tokens: Tokens,
    /// Its certificate and key; plain HTTP when absent.
    pub tls: Option<Tls>,
    /// Limits on bodies, requests, streams and connections.
    pub limits: Limits,
    /// Where answers under idempotency keys are stored.
    pub idempotency_store: Arc<dyn IdempotencyStore>,
    /// The audit log; none when absent.
    pub audit: Option<Arc<AuditLog>>,
    /// Ends all streams. A program that mounts the router keeps a clone; [`serve`](crate::serve) triggers it itself.
    pub shutdown: Shutdown,
}

/// PEM files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tls {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// The default port.
pub const PORT: u16 = 7480;

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: vec![(Ipv4Addr::LOCALHOST, PORT).into()],
            tokens: Tokens::none(),
            tls: None,
            limits: Limits::default(),
            idempotency_store: Arc::new(InMemoryStore::default()),
            audit: None,
            shutdown: Shutdown::default(),
        }
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { listen, tokens, tls, limits, idempotency_store: _, audit: _, shutdown: _ } =
            self;
        let mut config = f.debug_struct("Config");
        config.field("listen", listen).field("tokens", tokens).field("tls", tls);
        config.field("limits", limits).finish_non_exhaustive()
    }
}

/// State that all requests share.
pub(crate) struct Server {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) tokens: Tokens,
    pub(crate) sessions: Sessions,
    /// Whether it serves TLS.
    pub(crate) secure: bool,
    pub(crate) audit: Option<Arc<AuditLog>>,
    pub(crate) limits: Limits,
    pub(crate) shutdown: Shutdown,
    pub(crate) idempotency: Arc<Idempotency>,
    pub(crate) concurrency: Concurrency,
    pub(crate) metrics: Metrics,
}

impl Server {
    pub(crate) fn new(host: Arc<dyn Host>, config: &Config) -> Self {
        Self {
            host,
            tokens: config.tokens.clone(),
            sessions: Sessions::default(),
            secure: config.tls.is_some(),
            audit: config.audit.clone(),
            limits: config.limits.clone(),
            shutdown: config.shutdown.clone(),
            idempotency: Arc::new(Idempotency::new(config.idempotency_store.clone())),
            concurrency: Concurrency::new(&config.limits),
            metrics: Metrics::default(),
        }
    }

    /// Whether the token that opened a stream is still valid.
    pub(crate) fn is_still_known(&self, pass: Option<TokenDigest>) -> bool {
        pass.is_none_or(|pass| self.tokens.of(pass).is_some())
    }
}
