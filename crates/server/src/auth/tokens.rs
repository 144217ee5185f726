//! Credentials: the tokens of a file, or the single token of the owner of the data directory.
//!
//! Only digests are kept. A presented token is hashed and compared with all digests in constant time, so neither memory
//! nor timing reveals a token. The file is checked before every request and reloaded when it has changed: a revoked
//! token ends at once, and so do the streams that it opened.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use muster_api::crd::Stamp;
use ring::digest::{SHA256, digest};
use subtle::ConstantTimeEq;

use crate::Caller;
use crate::auth::token_file::{TokenFile, TokensError};
use crate::idempotency::replay::now;

/// The caller name of the owner of the data directory.
pub(crate) const LOCAL: &str = "local";

/// The accepted tokens.
#[derive(Clone, Debug, Default)]
pub struct Tokens(Source);

#[derive(Clone, Debug, Default)]
enum Source {
    #[default]
    None,
    Fixed(Arc<[KnownToken]>),
    File(Arc<WatchedFile>),
}

/// A file that is reloaded when it changes.
#[derive(Debug)]
struct WatchedFile {
    path: PathBuf,
    state: Mutex<(Option<FileVersion>, Arc<[KnownToken]>)>,
}

/// Identifies the version of a file: inode, length, change time with nanoseconds.
type FileVersion = (u64, u64, i64, i64);

#[derive(Clone, Debug)]
pub(crate) struct KnownToken {
    pub(crate) digest: [u8; 32],
    pub(crate) caller: Caller,
    pub(crate) expires: Option<Stamp>,
}

/// The digest of the token that authenticated a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TokenDigest([u8; 32]);

impl Tokens {
    /// No credentials: any process that reaches the server on this machine is an admin.
    pub fn none() -> Self {
        Self(Source::None)
    }

    /// One token, of an admin called `local`.
    pub fn owner(token: &str) -> Self {
        let digest = sha256(token.as_bytes());
        let known = KnownToken { digest, caller: Caller::admin(LOCAL), expires: None };
        Self(Source::Fixed([known].into()))
    }

    /// Reads a token file, YAML or JSON, and reloads it whenever it changes. Other users must not be able to read it.
    ///
    /// # Errors
    /// If it cannot be read, is not private, or fails validation.
    pub fn read(path: &Path) -> Result<Self, TokensError> {
        let seen = seen(path);
        let known = TokenFile::read(path)?.known()?;
        let state = Mutex::new((seen, known.into()));
        Ok(Self(Source::File(Arc::new(WatchedFile { path: path.to_owned(), state }))))
    }

    /// Parses the text of a token file.
    ///
    /// # Errors
    /// If it is not a token file, or fails validation.
    pub fn parse(file: &str, text: &str) -> Result<Self, TokensError> {
        Ok(Self(Source::Fixed(TokenFile::parse(file, text)?.known()?.into())))
    }

    /// Whether there are no tokens, so that every local process is an admin.
    pub fn is_none(&self) -> bool {
        matches!(self.0, Source::None)
    }

    fn known(&self) -> Arc<[KnownToken]> {
        match &self.0 {
            Source::None => Arc::default(),
            Source::Fixed(known) => known.clone(),
            Source::File(file) => file.known(),
        }
    }

    /// The caller of a token. All tokens are compared, whichever matches.
    pub(crate) fn caller(&self, token: &str) -> Option<(Caller, TokenDigest)> {
        self.of(TokenDigest(sha256(token.as_bytes())))
    }

    /// The caller of a token digest, if the token is still valid.
    pub(crate) fn of(&self, pass: TokenDigest) -> Option<(Caller, TokenDigest)> {
        let now = now();
        let found = self.known().iter().fold(None, |found, one| {
            let same = bool::from(one.digest.ct_eq(&pass.0));
            if same { Some(one.clone()) } else { found }
        })?;
        let counts = found.expires.is_none_or(|at| now.0 < at.0);
        counts.then_some((found.caller, pass))
    }
}

impl WatchedFile {
    /// The tokens of the file as it is now. A file that fails to load leaves the previous tokens in force, with an
    /// error in the log: a half-finished edit must not lock everyone out.
    fn known(&self) -> Arc<[KnownToken]> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seen(&self.path);
        if state.0 == seen {
            return state.1.clone();
        }
        state.0 = seen;
        match TokenFile::read(&self.path).and_then(|file| file.known()) {
            Ok(known) => {
                tracing::info!(file = %self.path.display(), "the tokens were read again");
                state.1 = known.into();
            }
            // An empty file is intended: the last token was revoked.
            Err(TokensError::Empty(file)) => {
                tracing::warn!(file, "the last token was revoked");
                state.1 = Arc::default();
            }
            Err(error) => tracing::error!(%error, "the tokens are still those read before"),
        }
        state.1.clone()
    }
}

fn seen(path: &Path) -> Option<FileVersion> {
    let about = std::fs::metadata(path).ok()?;
    Some((about.ino(), about.len(), about.ctime(), about.ctime_nsec()))
}

/// The SHA-256 of some bytes.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut sum = [0; 32];
    sum.copy_from_slice(digest(&SHA256, bytes).as_ref());
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: &str = "correct-horse-battery";

    fn parse(entries: &str) -> Result<Tokens, String> {
        Tokens::parse("tokens.yaml", &format!("tokens: [{entries}]")).map_err(|why| why.to_string())
    }

    #[test]
    fn token_matches_in_clear_and_by_digest() {
        let digest: String =
            sha256(b"staple-staple-staple").iter().map(|b| format!("{b:02x}")).collect();
        let tokens = parse(&format!(
            "{{name: alice, token: {ALICE}, role: user, queues: [research]}}, \
             {{name: bob, token: 'sha256:{digest}', role: admin}}"
        ))
        .unwrap();
        let alice = tokens.caller(ALICE).unwrap().0;
        assert!(alice.may_use("research") && !alice.may_use("sales") && !alice.is_admin());
        assert_eq!(&*tokens.caller("staple-staple-staple").unwrap().0.name, "bob");
        assert_eq!(tokens.caller(&format!("sha256:{digest}")), None);
        assert_eq!(tokens.caller(""), None);
    }

    #[test]
    fn expired_token_is_unknown() {
        let entry = |at: &str| format!("{{name: a, token: {ALICE}, role: admin, expires: '{at}'}}");
        assert!(parse(&entry("2999-01-01T00:00:00Z")).unwrap().caller(ALICE).is_some());
        assert_eq!(parse(&entry("2020-01-01T00:00:00Z")).unwrap().caller(ALICE), None);
    }

    #[test]
    fn invalid_token_files_are_refused() {
        for (entries, why) in [
            ("", "has no tokens"),
            ("{name: a, token: short, role: admin}", "shorter than 16"),
            ("{name: a, token: 'sha256:abc', role: admin}", "64 hexadecimal"),
            ("{name: a, token: correct-horse-battery, role: user}", "needs at least one"),
            ("{name: a, token: correct-horse-battery, role: admin, queues: [q]}", "belongs to"),
            ("{name: '', token: correct-horse-battery, role: admin}", "is empty"),
            ("{name: \"a\\e[2J\", token: correct-horse-battery, role: admin}", "is empty"),
            ("{name: a, token: correct-horse-battery, role: root}", "unknown variant `root`"),
            ("{name: a, token: correct-horse-battery, role: admin, x: 1}", "unknown field `x`"),
            ("{name: a, token: correct-horse-battery, role: admin, runAs: root}", "runAs"),
            ("{name: a, token: correct-horse-battery, role: admin, runAs: '0'}", "runAs"),
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

    #[test]
    fn changed_token_file_is_reloaded_and_public_one_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let path = std::env::temp_dir().join(format!("muster-tokens-{}", std::process::id()));
        let write = |text: &str, mode: u32| {
            let part = path.with_extension("part");
            std::fs::write(&part, text).unwrap();
            std::fs::set_permissions(&part, PermissionsExt::from_mode(mode)).unwrap();
            std::fs::rename(&part, &path).unwrap();
        };
        let both = format!(
            "tokens: [{{name: a, token: {ALICE}, role: admin}}, {{name: b, token: token-of-b-0123456, role: viewer}}]"
        );
        write(&both, 0o644);
        assert!(Tokens::read(&path).unwrap_err().to_string().contains("chmod 600"));
        write(&both, 0o600);
        let tokens = Tokens::read(&path).unwrap();
        let (_, pass) = tokens.caller(ALICE).unwrap();
        write("tokens: [{name: b, token: token-of-b-0123456, role: viewer}]", 0o600);
        assert_eq!((tokens.caller(ALICE), tokens.of(pass)), (None, None), "it is revoked");
        assert!(tokens.caller("token-of-b-0123456").is_some());
        write("tokens: []", 0o600);
        assert_eq!(tokens.caller("token-of-b-0123456"), None, "the last one is revoked");
        write("tokens: [{name: b, token: token-of-b-0123456, role: viewer}]", 0o600);
        assert!(tokens.caller("token-of-b-0123456").is_some());
        write("tokens: [", 0o600);
        assert!(
            tokens.caller("token-of-b-0123456").is_some(),
            "a half-finished edit keeps the old tokens"
        );
        std::fs::remove_file(path).unwrap();
    }
}
