//! Sends one request over one connection, plain or with TLS.
//!
//! Connections are not reused: a command sends a handful of requests, and a stream needs its own connection. Proxies
//! are deliberately not used.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::client::connection::error::RequestError;

/// The timeout for opening a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// The timeout for the head of an answer. The server gives up after 30 seconds and says so; this leaves it time for
/// that.
const HEAD: Duration = Duration::from_secs(40);

/// The address that requests are sent to.
pub(crate) struct Wire {
    /// The address as given, without a slash at the end.
    pub(crate) url: String,
    host: String,
    port: u16,
    /// The prefix of every path.
    base: String,
    authority: HeaderValue,
    tls: Option<TlsConnector>,
    hint: &'static str,
}

impl Wire {
    /// Parses an address. `hint` is the remedy that is printed when the connection cannot be opened.
    pub(crate) fn new(
        url: &str,
        ca: Option<&Path>,
        hint: &'static str,
    ) -> Result<Self, RequestError> {
        let wrong = || RequestError::Address(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong()),
        };
        let authority = uri.authority().ok_or_else(wrong)?;
        if uri.query().is_some() || authority.as_str().contains('@') {
            return Err(wrong());
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = authority.port_u16().unwrap_or(if secure { 443 } else { 80 });
        Ok(Self {
            url: url.trim_end_matches('/').to_owned(),
            host,
            port,
            base: uri.path().trim_end_matches('/').to_owned(),
            authority: HeaderValue::from_str(authority.as_str()).map_err(|_| wrong())?,
            tls: if secure { Some(connector(ca)?) } else { None },
            hint,
        })
    }

    /// Sends a request whose address is a path, and waits for the head of the answer.
    pub(crate) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, RequestError> {
        let path = request.uri().to_string();
        let full = format!("{}{path}", self.base);
        *request.uri_mut() = full.parse().map_err(|_| RequestError::Address(full.clone()))?;
        request.headers_mut().insert(HOST, self.authority.clone());
        let stream = self.connect().await?;
        match &self.tls {
            None => self.speak(stream, request).await,
            Some(tls) => {
                let name = ServerName::try_from(self.host.clone())
                    .map_err(|_| RequestError::Address(self.url.clone()))?;
                let stream = timeout(CONNECT, tls.connect(name, stream)).await;
                let stream = stream.map_err(|_| RequestError::TimedOut(self.url.clone()))?;
                self.speak(stream.map_err(|error| self.no_tls(&error))?, request).await
            }
        }
    }

    async fn connect(&self) -> Result<TcpStream, RequestError> {
        let unreachable =
            |why: String| RequestError::Unreachable { url: self.url.clone(), why, hint: self.hint };
        let connected = timeout(CONNECT, TcpStream::connect((&*self.host, self.port))).await;
        let connected = connected
            .map_err(|_| unreachable(format!("no connection within {} s", CONNECT.as_secs())))?;
        let stream = connected.map_err(|error| match error.kind() {
            ErrorKind::ConnectionRefused => unreachable("the connection is refused".to_owned()),
            _ => unreachable(error.to_string()),
        })?;
        // Requests are small and should not be delayed by Nagle's algorithm.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }

    async fn speak(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, RequestError> {
        let lost = |error: hyper::Error| RequestError::Lost(self.url.clone(), error.to_string());
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(lost)?;
        // The task ends with the connection.
        tokio::spawn(connection);
        let answer = timeout(HEAD, sender.send_request(request)).await;
        answer.map_err(|_| RequestError::TimedOut(self.url.clone()))?.map_err(lost)
    }

    fn no_tls(&self, error: &std::io::Error) -> RequestError {
        let why = error.to_string();
        let hint = match why.contains("UnknownIssuer") {
            true => "; give the CA of its certificate with --ca-file",
            false => "",
        };
        RequestError::Tls { url: self.url.clone(), why, hint }
    }
}

/// A TLS connector that trusts the CAs in a file, or else those of the machine.
fn connector(ca: Option<&Path>) -> Result<TlsConnector, RequestError> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(file) => {
            let wrong = |why: String| {
                RequestError::Certificates(format!("{} is of no use: {why}", file.display()))
            };
            let all = CertificateDer::pem_file_iter(file).map_err(|e| wrong(e.to_string()))?;
            for one in all {
                let one = one.map_err(|error| wrong(error.to_string()))?;
                roots.add(one).map_err(|error| wrong(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(wrong("there is no certificate in it".to_owned()));
            }
        }
        None => {
            let _ = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| RequestError::Certificates(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_need_a_scheme_and_may_have_a_path() {
        let wire = |url| Wire::new(url, None, "");
        let one = wire("http://[::1]:7480/muster/").unwrap();
        assert_eq!((&*one.host, one.port, &*one.base), ("::1", 7480, "/muster"));
        assert_eq!(one.url, "http://[::1]:7480/muster");
        assert_eq!(wire("http://a").unwrap().port, 80);
        for wrong in ["localhost:7480", "ftp://a", "http://", "http://me:pw@a", "http://a/?b", ""] {
            assert!(matches!(wire(wrong), Err(RequestError::Address(_))), "{wrong}");
        }
    }
}
