//! Who may ask: tokens, and the file they are read from.
//!
//! Only digests are kept. A presented token is digested and held against all of them in constant time, so neither the
//! memory nor the clock gives one away.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use ring::digest::{SHA256, digest};
use serde::Deserialize;
use subtle::ConstantTimeEq;

use crate::{Caller, Rights};

/// Shorter ones can be guessed.
const SHORTEST: usize = 16;
/// How a digest is marked in the file, in place of the token itself.
const MARK: &str = "sha256:";

/// Those who may ask.
#[derive(Clone, Debug, Default)]
pub struct Tokens(Option<Arc<[Known]>>);

#[derive(Debug)]
struct Known {
    digest: [u8; 32],
    caller: Caller,
}

/// Why a file of tokens is not used.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// It cannot be read.
    #[error("{file} cannot be read: {error}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        error: std::io::Error,
    },
    /// It is not YAML.
    #[error("{0}")]
    Malformed(String),
    /// It has other fields than a file of tokens.
    #[error("{0} is no file of tokens: {1}")]
    Fields(String, serde_json::Error),
    /// Nobody could ask anything.
    #[error("{0} names nobody: give at least one of `tokens`")]
    Nobody(String),
    /// A name is missing or is there twice.
    #[error("the name `{0}` of a token is empty, or is given twice")]
    Name(String),
    /// A token is too easy to guess.
    #[error("the token of {0} is shorter than {SHORTEST} characters")]
    Short(String),
    /// A digest is none.
    #[error("the token of {0} is marked sha256: and must go on with 64 hexadecimal digits")]
    Digest(String),
    /// Two have the same.
    #[error("{0} has the same token as somebody else")]
    Shared(String),
    /// Queues are for users, and users need some.
    #[error("{0}: `queues` belongs to the role `user`, which needs at least one")]
    Queues(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    tokens: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    token: String,
    role: Role,
    #[serde(default)]
    queues: BTreeSet<Arc<str>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    Viewer,
    User,
    Admin,
}

impl Tokens {
    /// No tokens: whoever reaches the server on this machine is an admin.
    pub fn none() -> Self {
        Self(None)
    }

    /// Reads a file, YAML or JSON.
    pub fn read(path: &Path) -> Result<Self, TokensError> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&file, &text),
            Err(error) => Err(TokensError::Unreadable { file, error }),
        }
    }

    /// Reads the text of such a file.
    pub fn parse(file: &str, text: &str) -> Result<Self, TokensError> {
        let documents = muster_api::foreign(file, text).map_err(|findings| {
            let lines: Vec<_> = findings.iter().map(ToString::to_string).collect();
            TokensError::Malformed(lines.join("; "))
        })?;
        let first = documents.into_iter().next().unwrap_or_default();
        let read: File =
            serde_json::from_value(first).map_err(|why| TokensError::Fields(file.into(), why))?;
        let mut known: Vec<Known> = Vec::new();
        for entry in read.tokens {
            let one = entry.known()?;
            if known.iter().any(|other| other.caller.name == one.caller.name) {
                return Err(TokensError::Name(one.caller.name.to_string()));
            }
            if known.iter().any(|other| other.digest == one.digest) {
                return Err(TokensError::Shared(one.caller.name.to_string()));
            }
            known.push(one);
        }
        if known.is_empty() {
            return Err(TokensError::Nobody(file.into()));
        }
        Ok(Self(Some(known.into())))
    }

    /// Whether there are none, and everybody who connects is an admin.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Whose token this is. All are looked at, whichever it is.
    pub(crate) fn caller(&self, token: &str) -> Option<Caller> {
        let shown = sha256(token.as_bytes());
        let known = self.0.as_deref().unwrap_or_default();
        known.iter().fold(None, |found, one| {
            let same = bool::from(one.digest.ct_eq(&shown));
            if same { Some(one.caller.clone()) } else { found }
        })
    }
}

impl Entry {
    fn known(self) -> Result<Known, TokensError> {
        let Self { name, token, role, queues } = self;
        if name.trim().is_empty() {
            return Err(TokensError::Name(name));
        }
        if (role == Role::User) == queues.is_empty() {
            return Err(TokensError::Queues(name));
        }
        let digest = match token.strip_prefix(MARK) {
            Some(digits) => unhex(digits).ok_or_else(|| TokensError::Digest(name.clone()))?,
            None if token.chars().count() < SHORTEST => return Err(TokensError::Short(name)),
            None => sha256(token.as_bytes()),
        };
        let rights = match role {
            Role::Viewer => Rights::Viewer,
            Role::User => Rights::User(queues),
            Role::Admin => Rights::Admin,
        };
        Ok(Known { digest, caller: Caller { name: name.into(), rights, key: None } })
    }
}

/// The SHA-256 of some bytes.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut sum = [0; 32];
    sum.copy_from_slice(digest(&SHA256, bytes).as_ref());
    sum
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

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: &str = "correct-horse-battery";

    fn parse(entries: &str) -> Result<Tokens, String> {
        Tokens::parse("tokens.yaml", &format!("tokens: [{entries}]")).map_err(|why| why.to_string())
    }

    #[test]
    fn a_token_is_known_as_given_and_by_its_digest() {
        let digest: String =
            sha256(b"staple-staple-staple").iter().map(|b| format!("{b:02x}")).collect();
        let tokens = parse(&format!(
            "{{name: alice, token: {ALICE}, role: user, queues: [research]}}, \
             {{name: bob, token: 'sha256:{digest}', role: admin}}"
        ))
        .unwrap();
        let alice = tokens.caller(ALICE).unwrap();
        assert!(alice.may_use("research") && !alice.may_use("sales") && !alice.is_admin());
        assert_eq!(&*tokens.caller("staple-staple-staple").unwrap().name, "bob");
        assert_eq!(tokens.caller(&format!("sha256:{digest}")), None);
        assert_eq!(tokens.caller(""), None);
    }

    #[test]
    fn a_file_that_would_let_in_the_wrong_ones_is_refused() {
        for (entries, why) in [
            ("", "names nobody"),
            ("{name: a, token: short, role: admin}", "shorter than 16"),
            ("{name: a, token: 'sha256:abc', role: admin}", "64 hexadecimal"),
            ("{name: a, token: correct-horse-battery, role: user}", "needs at least one"),
            ("{name: a, token: correct-horse-battery, role: admin, queues: [q]}", "belongs to"),
            ("{name: '', token: correct-horse-battery, role: admin}", "is empty"),
            ("{name: a, token: correct-horse-battery, role: root}", "unknown variant `root`"),
            ("{name: a, token: correct-horse-battery, role: admin, x: 1}", "unknown field `x`"),
            (
                "{name: a, token: correct-horse-battery, role: admin}, \
                 {name: b, token: correct-horse-battery, role: viewer}",
                "b has the same token",
            ),
        ] {
            let said = parse(entries).unwrap_err();
            assert!(said.contains(why), "{entries}: {said}");
        }
        assert!(Tokens::parse("t", "tokens: [").is_err());
    }
}
