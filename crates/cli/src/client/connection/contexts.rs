//! The context file: control planes by name, with their addresses and credentials.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::exit::UsageError;
use crate::yaml;

/// The contents of the file.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contexts {
    /// The context that is used when none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    /// All contexts, in the order in which they were set.
    #[serde(default)]
    pub(crate) contexts: Vec<Context>,
}

/// A control plane and the credential for it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Context {
    /// The name of the context.
    pub(crate) name: String,
    /// The address of the control plane.
    pub(crate) server: String,
    /// The token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    /// The file with the token; read again for every command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token_file: Option<PathBuf>,
    /// The CA of the server's certificate, in PEM; the machine's trusted CAs when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca_file: Option<PathBuf>,
    /// The namespace of gangs that are given without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,
}

/// The path of the file: `MUSTER_CONFIG`, or `muster/config.yaml` in the configuration directory of this user.
pub(crate) fn path() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = || set("HOME").map(|home| Path::new(&home).join(".config"));
    let base = || set("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home);
    let usual = || base().map(|base| base.join("muster/config.yaml"));
    set("MUSTER_CONFIG").map(PathBuf::from).or_else(usual)
}

impl Contexts {
    /// Reads the file. A missing file has no contexts.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&file, &text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(UsageError(format!("{file} cannot be read: {error}")).into()),
        }
    }

    fn parse(file: &str, text: &str) -> anyhow::Result<Self> {
        let documents = muster_api::foreign(file, text).map_err(|findings| {
            let lines: Vec<_> = findings.iter().map(ToString::to_string).collect();
            UsageError(lines.join("; "))
        })?;
        let Some(first) = documents.into_iter().next() else { return Ok(Self::default()) };
        let wrong = |error| UsageError(format!("{file} is not a context file: {error}"));
        Ok(serde_json::from_value(first).map_err(wrong)?)
    }

    /// Replaces the file atomically. Only its owner can read it: it contains tokens.
    pub(crate) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let failed = || format!("{} cannot be written", path.display());
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).with_context(failed)?;
        }
        let part = path.with_extension("part");
        let _ = std::fs::remove_file(&part);
        let mut options = std::fs::OpenOptions::new();
        let mut file =
            options.write(true).create_new(true).mode(0o600).open(&part).with_context(failed)?;
        file.write_all(self.text()?.as_bytes()).with_context(failed)?;
        std::fs::rename(&part, path).with_context(failed)
    }

    fn text(&self) -> anyhow::Result<String> {
        Ok(yaml::document(&serde_json::to_value(self)?))
    }

    /// The context of a name.
    pub(crate) fn named(&self, name: &str) -> Option<&Context> {
        self.contexts.iter().find(|context| context.name == name)
    }

    /// The context of a name, created if there is none.
    pub(crate) fn entry(&mut self, name: &str) -> &mut Context {
        let at = self.contexts.iter().position(|context| context.name == name);
        let at = at.unwrap_or_else(|| {
            self.contexts.push(Context { name: name.to_owned(), ..Context::default() });
            self.contexts.len() - 1
        });
        &mut self.contexts[at]
    }

    /// The error for a context that does not exist.
    pub(crate) fn missing(&self, name: &str) -> UsageError {
        let known: Vec<&str> = self.contexts.iter().map(|context| &*context.name).collect();
        UsageError(match known.is_empty() {
            true => {
                format!("there is no context {name}: create it with `muster context set {name}`")
            }
            false => format!("there is no context {name}, only {}", known.join(", ")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_file_round_trips() {
        let mut contexts = Contexts { current: Some("lab".to_owned()), ..Contexts::default() };
        let lab = contexts.entry("lab");
        lab.server = "https://lab:7480".to_owned();
        lab.token = Some("12345678901234567890".to_owned());
        lab.ca_file = Some("/etc/lab.pem".into());
        contexts.entry("here").server = "http://127.0.0.1:1".to_owned();
        contexts.entry("lab").namespace = Some("research".to_owned());
        let text = contexts.text().unwrap();
        assert_eq!(Contexts::parse("config.yaml", &text).unwrap(), contexts, "{text}");
        assert_eq!(contexts.contexts.len(), 2);
    }

    #[test]
    fn empty_context_file_is_valid_and_wrong_one_is_located() {
        assert_eq!(Contexts::parse("config.yaml", "# nothing\n").unwrap(), Contexts::default());
        let wrong = Contexts::parse("config.yaml", "contexts: [{nam: a}]").unwrap_err();
        assert!(
            wrong.to_string().contains("config.yaml is not a context file: unknown field `nam`")
        );
        let broken = Contexts::parse("config.yaml", "a: [").unwrap_err().to_string();
        assert!(broken.starts_with("config.yaml:1:"), "{broken}");
        assert!(Contexts::default().missing("x").0.contains("muster context set x"));
    }
}
