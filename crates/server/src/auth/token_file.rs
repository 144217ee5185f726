//! The token file: read, validated, and rewritten as a whole.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use muster_api::crd::Stamp;
use serde::{Deserialize, Serialize};

use crate::auth::tokens::{KnownToken, sha256};
use crate::{Caller, Rights};

/// Minimum length of a token; shorter tokens can be guessed.
const SHORTEST: usize = 16;
/// Maximum length of a name.
const LONGEST_NAME: usize = 128;
/// Prefix of a digest in the file, in place of the token itself.
const MARK: &str = "sha256:";
/// Maximum number of tokens in a file: each request is compared with all of them.
const MOST: usize = 10_000;

/// Why a token file is rejected.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// It cannot be read or written.
    #[error("{file} cannot be used: {error}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        error: std::io::Error,
    },
    /// Other users of the machine can read or write it.
    #[error(
        "{file} has mode {mode:03o}, and other users must not read or write tokens: chmod 600 {file}"
    )]
    Open {
        /// The file.
        file: String,
        /// Its mode.
        mode: u32,
    },
    /// It belongs to another user.
    #[error("{0} belongs to another user, who could add tokens: it must be yours or root's")]
    Foreign(String),
    /// It is not YAML.
    #[error("{0}")]
    Malformed(String),
    /// It has fields that a token file does not have.
    #[error("{0} is no file of tokens: {1}")]
    Fields(String, serde_json::Error),
    /// It has no token, so no request could be authenticated.
    #[error("{0} has no tokens: at least one is required")]
    Empty(String),
    /// It has more tokens than each request can be compared with.
    #[error("{0} has more than {MOST} tokens")]
    TooMany(String),
    /// A name is missing, or used twice.
    #[error("the name {0:?} of a token is empty, too long, not printable, or is given twice")]
    Name(String),
    /// A token is too easy to guess.
    #[error("the token of {0} is shorter than {SHORTEST} characters")]
    Short(String),
    /// A digest is malformed.
    #[error("the token of {0} is marked sha256: and must go on with 64 hexadecimal digits")]
    Digest(String),
    /// Two entries have the same token.
    #[error("{0} has the same token as another entry")]
    Shared(String),
    /// `queues` is required for users, and only for users.
    #[error("{0}: `queues` belongs to the role `user`, which needs at least one")]
    Queues(String),
    /// Workers cannot run as that user.
    #[error("{0}: `runAs` must be the name of a Unix user, and not root")]
    RunAs(String),
}

/// The content of the file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenFile {
    /// The tokens.
    pub tokens: Vec<TokenEntry>,
    #[serde(skip)]
    file: String,
}

/// One token, and the rights of its holder.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TokenEntry {
    /// The holder's name.
    pub name: String,
    /// The token, or `sha256:` and its digest.
    pub token: String,
    /// The holder's role.
    pub role: Role,
    /// The queues of a holder with the role `user`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub queues: BTreeSet<Arc<str>>,
    /// When the token expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Stamp>,
    /// The Unix user for workers of the holder's gangs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_as: Option<Arc<str>>,
}

/// A role.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads only.
    Viewer,
    /// Changes gangs of some queues.
    User,
    /// Everything.
    Admin,
}

impl TokenFile {
    /// Reads a private file.
    ///
    /// # Errors
    /// If it cannot be read, or other users can read it.
    pub fn read(path: &Path) -> Result<Self, TokensError> {
        let file = path.display().to_string();
        let unreadable = |error| TokensError::Unreadable { file: file.clone(), error };
        let about = std::fs::metadata(path).map_err(unreadable)?;
        let own = rustix::process::geteuid().as_raw();
        if about.uid() != own && about.uid() != 0 {
            return Err(TokensError::Foreign(file));
        }
        let mode = about.mode() & 0o777;
        if about.is_file() && mode & 0o077 != 0 {
            return Err(TokensError::Open { file, mode });
        }
        Self::parse(&file, &std::fs::read_to_string(path).map_err(unreadable)?)
    }

    /// Parses the text of a token file.
    ///
    /// # Errors
    /// If it is not a token file.
    pub fn parse(file: &str, text: &str) -> Result<Self, TokensError> {
        let documents = muster_api::foreign(file, text).map_err(|findings| {
            let lines: Vec<_> = findings.iter().map(ToString::to_string).collect();
            TokensError::Malformed(lines.join("; "))
        })?;
        let first = documents.into_iter().next().unwrap_or_default();
        let mut read: Self =
            serde_json::from_value(first).map_err(|why| TokensError::Fields(file.into(), why))?;
        file.clone_into(&mut read.file);
        Ok(read)
    }

    /// Writes the whole file with owner-only permissions. `text` is the file as YAML or JSON.
    ///
    /// # Errors
    /// If it cannot be written, or fails validation.
    pub fn write(&self, path: &Path, text: &str) -> Result<(), TokensError> {
        if !self.tokens.is_empty() {
            self.known()?;
        }
        let file = path.display().to_string();
        let write = || {
            let part = path.with_extension("part");
            let _ = std::fs::remove_file(&part);
            let mut options = std::fs::OpenOptions::new();
            let mut open = options.write(true).create_new(true).mode(0o600).open(&part)?;
            open.write_all(text.as_bytes())?;
            open.sync_all()?;
            std::fs::rename(&part, path)
        };
        write().map_err(|error| TokensError::Unreadable { file, error })
    }

    /// The digests of all tokens, and their callers.
    pub(crate) fn known(&self) -> Result<Vec<KnownToken>, TokensError> {
        if self.tokens.is_empty() {
            return Err(TokensError::Empty(self.file.clone()));
        }
        if self.tokens.len() > MOST {
            return Err(TokensError::TooMany(self.file.clone()));
        }
        let (mut names, mut digests) = (BTreeSet::new(), BTreeSet::new());
        let mut known = Vec::with_capacity(self.tokens.len());
        for entry in &self.tokens {
            let one = entry.known()?;
            if !names.insert(one.caller.name.clone()) {
                return Err(TokensError::Name(entry.name.clone()));
            }
            if !digests.insert(one.digest) {
                return Err(TokensError::Shared(entry.name.clone()));
            }
            known.push(one);
        }
        Ok(known)
    }
}

impl TokenEntry {
    /// The `sha256:` text for a token, as written in the file.
    pub fn digest(token: &str) -> String {
        let digits: String =
            sha256(token.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{MARK}{digits}")
    }

    fn known(&self) -> Result<KnownToken, TokensError> {
        let Self { name, token, role, queues, expires, run_as } = self;
        let unprintable = name.chars().any(char::is_control);
        if name.trim().is_empty() || name.len() > LONGEST_NAME || unprintable {
            return Err(TokensError::Name(name.clone()));
        }
        if (*role == Role::User) == queues.is_empty() {
            return Err(TokensError::Queues(name.clone()));
        }
        if run_as.as_deref().is_some_and(|user| !is_unix_user(user)) {
            return Err(TokensError::RunAs(name.clone()));
        }
        let digest = match token.strip_prefix(MARK) {
            Some(digits) => unhex(digits).ok_or_else(|| TokensError::Digest(name.clone()))?,
            None if token.chars().count() < SHORTEST => {
                return Err(TokensError::Short(name.clone()));
            }
            None => sha256(token.as_bytes()),
        };
        let rights = match role {
            Role::Viewer => Rights::Viewer,
            Role::User => Rights::User(queues.clone()),
            Role::Admin => Rights::Admin,
        };
        let name = name.as_str().into();
        let caller = Caller { name, rights, key: None, run_as: run_as.clone() };
        Ok(KnownToken { digest, caller, expires: *expires })
    }
}

/// Whether this can be the name of a user other than root. Numbers are rejected: 0 is root as well.
fn is_unix_user(name: &str) -> bool {
    let rest = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    first && name.len() <= 32 && name.bytes().all(rest) && name != "root"
}

fn unhex(digits: &str) -> Option<[u8; 32]> {
    let mut sum = [0; 32];
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, at) in sum.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&digits[at..at + 2], 16).ok()?;
    }
    Some(sum)
}
