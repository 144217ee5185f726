//! What a server is told before it starts, and what all requests share.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use crate::auth::sessions::Sessions;
use crate::auth::tokens::TokenDigest;
use crate::idempotency::replay::Idempotency;
use crate::limits::concurrency::Concurrency;
use crate::metrics::Metrics;
use crate::{AuditLog, Host, IdempotencyStore, InMemoryStore, Limits, Shutdown, Tokens};

/// What a server is told before it starts.
#[derive(Clone)]
pub struct Config {
    /// Where it listens. Without tokens only loopback addresses are taken.
    pub listen: Vec<SocketAddr>,
    /// Who may ask.
    pub tokens: Tokens,
    /// Its certificate and key; plain HTTP when absent.
    pub tls: Option<Tls>,
    /// How much is too much.
    pub limits: Limits,
    /// Where answers to requests with idempotency keys are kept.
    pub idempotency_store: Arc<dyn IdempotencyStore>,
    /// Where it is written who did what; nowhere when absent.
    pub audit: Option<Arc<AuditLog>>,
    /// Ends all streams. Whoever mounts the router keeps a clone; [`serve`](crate::serve) begins it by itself.
    pub shutdown: Shutdown,
}

/// Files in PEM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tls {
    /// The certificate, and those between it and the root.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// The port of a server that is not told another.
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

/// What all requests share.
pub(crate) struct Server {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) tokens: Tokens,
    pub(crate) sessions: Sessions,
    /// Whether it speaks TLS.
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

    /// Whether the token still counts by which a stream was opened.
    pub(crate) fn is_still_known(&self, pass: Option<TokenDigest>) -> bool {
        pass.is_none_or(|pass| self.tokens.of(pass).is_some())
    }
}
