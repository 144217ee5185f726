//! The credential of a data directory's owner: a random token in a file that only the owner can read.
//!
//! It outlives the control plane, so that a client that waits for a restart stays authenticated. A client sends it only
//! to the control plane that holds the lock of the directory: another process that has taken the port does not receive
//! it.

use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;

/// The file of the token, in a data directory.
const TOKEN: &str = "token";
/// The file in which clients of the same user find the control plane.
const ENDPOINT_FILE: &str = "server.json";

/// A token that cannot be guessed.
pub(crate) fn random_token() -> anyhow::Result<String> {
    let mut random = [0u8; 32];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut random)
        .map_err(|_| anyhow::anyhow!("no random numbers"))?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The token of a data directory, created if there is none. The directory is made private first.
pub(crate) fn owner_token(data: &Path) -> anyhow::Result<String> {
    let failed = || format!("{} cannot be used", data.display());
    muster_local::private_directory(data).with_context(failed)?;
    let path = data.join(TOKEN);
    if !path.exists() {
        // Of two processes that start at once one creates the token, and the other reads it.
        let part = data.join(format!("token.{}", std::process::id()));
        write_private(&part, &random_token()?).with_context(failed)?;
        let linked = std::fs::hard_link(&part, &path);
        let _ = std::fs::remove_file(&part);
        if let Err(error) = linked
            && error.kind() != std::io::ErrorKind::AlreadyExists
        {
            return Err(error).with_context(failed);
        }
    }
    let text = std::fs::read_to_string(&path).with_context(failed)?;
    anyhow::ensure!(text.trim().len() >= 32, "{} is no token: remove it", path.display());
    Ok(text.trim().to_owned())
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let _ = std::fs::remove_file(path);
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The file that tells clients the address of the control plane. Removed when dropped.
pub(crate) struct EndpointFile(PathBuf);

impl EndpointFile {
    /// Writes the file, with the token of the owner where that is the credential.
    pub(crate) fn write(data: &Path, url: &str, token: Option<&str>) -> anyhow::Result<Self> {
        let path = data.join(ENDPOINT_FILE);
        let mut endpoint = serde_json::json!({"url": url, "pid": std::process::id()});
        if let Some(token) = token {
            endpoint["token"] = token.into();
        }
        let part = data.join("server.json.part");
        write_private(&part, &endpoint.to_string()).and_then(|()| std::fs::rename(&part, &path))?;
        Ok(Self(path))
    }
}

impl Drop for EndpointFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The contents of the endpoint file.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub(crate) struct Endpoint {
    /// The address of the control plane.
    pub(crate) url: String,
    #[serde(default)]
    pid: u32,
    #[serde(default)]
    token: Option<String>,
}

impl Endpoint {
    /// Reads the endpoint file of a data directory.
    pub(crate) fn read(data: &Path) -> Option<Self> {
        serde_json::from_str(&std::fs::read_to_string(data.join(ENDPOINT_FILE)).ok()?).ok()
    }

    #[cfg(test)]
    pub(crate) fn at(url: &str) -> Self {
        Self { url: url.to_owned(), pid: 0, token: None }
    }
}

/// The token for a control plane at an address, if it is the one that runs in this directory now.
pub(crate) fn token_for(data: &Path, url: &str) -> Option<String> {
    let endpoint = Endpoint::read(data).filter(|endpoint| endpoint.url == url)?;
    let mut lock = std::fs::File::open(data.join("lock")).ok()?;
    let mut holder = String::new();
    lock.read_to_string(&mut holder).ok()?;
    let runs = lock.try_lock_shared().is_err() && holder.trim().parse() == Ok(endpoint.pid);
    endpoint.token.filter(|_| runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_persists_and_is_sent_only_to_the_lock_holder() {
        let data = std::env::temp_dir().join(format!("muster-owner-{}", std::process::id()));
        let first = owner_token(&data).expect("a token");
        assert_eq!((first.len(), owner_token(&data).expect("the same")), (64, first.clone()));
        let url = "http://127.0.0.1:9";
        let endpoint = EndpointFile::write(&data, url, Some(&first)).expect("written");
        let lock = data.join("lock");
        std::fs::write(&lock, std::process::id().to_string()).expect("written");
        assert_eq!(token_for(&data, url), None, "the lock is not held");
        let held = std::fs::File::open(&lock).expect("a lock");
        held.lock().expect("locked");
        assert_eq!(token_for(&data, url), Some(first));
        assert_eq!(token_for(&data, "http://127.0.0.1:10"), None, "another address");
        std::fs::write(&lock, "1").expect("written");
        assert_eq!(token_for(&data, url), None, "the endpoint is of another process");
        drop(endpoint);
        assert_eq!(Endpoint::read(&data), None);
        std::fs::remove_dir_all(data).expect("removed");
    }
}
