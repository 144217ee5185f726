//! Selects the control plane and the credential: from flags, the environment, the context file, or this machine.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::client::connection::api::Api;
use crate::client::connection::contexts::{Context, Contexts, path};
use crate::exit::UsageError;
use crate::owner_credential::Endpoint;

/// The options of every command that sends requests to a control plane.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Which control plane")]
pub(crate) struct ConnectOptions {
    /// The address, such as http://127.0.0.1:7480
    #[arg(long, env = "MUSTER_SERVER", value_name = "URL")]
    server: Option<String>,
    /// A context of `muster context list`
    #[arg(long, env = "MUSTER_CONTEXT", value_name = "NAME", hide_env_values = true)]
    context: Option<String>,
    /// A file with your token; MUSTER_TOKEN may hold the token itself
    #[arg(long, env = "MUSTER_TOKEN_FILE", value_name = "FILE", hide_env = true)]
    token_file: Option<PathBuf>,
    /// The CA of the server's certificate, in PEM
    #[arg(long, env = "MUSTER_CA_FILE", value_name = "FILE", hide_env = true)]
    ca_file: Option<PathBuf>,
}

/// The selected control plane.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Target {
    pub(crate) url: String,
    pub(crate) token: Option<String>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) namespace: Option<String>,
    /// The data directory whose owner's token is sent, if there is no other credential.
    pub(crate) owner: Option<PathBuf>,
    /// Whether the control plane was found on this machine and not given by the user.
    pub(crate) here: bool,
}

impl ConnectOptions {
    /// Whether a control plane was given, rightly or wrongly, or one runs on this machine.
    pub(crate) fn is_known(&self) -> bool {
        self.target().map_or_else(|error| error.to_string() != NO_CONTROL_PLANE, |_| true)
    }

    /// Whether this call names a control plane, rather than finding one.
    pub(crate) fn is_named(&self) -> bool {
        self.server.is_some() || self.context.is_some()
    }

    /// The API of the control plane.
    pub(crate) fn api(&self) -> anyhow::Result<Api> {
        let mut target = self.target()?;
        // Also when the address is given: the owner of the directory needs no further option.
        target.owner =
            data().filter(|data| Endpoint::read(data).is_some_and(|it| it.url == target.url));
        if let Ok(token) = std::env::var("MUSTER_TOKEN") {
            target.token = Some(token).filter(|token| !token.is_empty());
            target.token_file = None;
        }
        if let Some(file) = self.token_file.clone() {
            target.token_file = Some(file);
        }
        if let Some(file) = &target.token_file {
            let text = std::fs::read_to_string(file).map_err(|error| {
                UsageError(format!("{} cannot be read: {error}", file.display()))
            })?;
            target.token = Some(text.trim().to_owned());
        }
        if let Some(file) = self.ca_file.clone() {
            target.ca_file = Some(file);
        }
        Api::new(&target)
    }

    fn target(&self) -> anyhow::Result<Target> {
        // With --server, a context file that cannot be read does not matter.
        if let Some(url) = &self.server {
            return Ok(Target { url: url.clone(), ..Target::default() });
        }
        let contexts =
            path().map_or_else(|| Ok(Contexts::default()), |path| Contexts::read(&path))?;
        Ok(select(self.context.as_deref(), &contexts, here())?)
    }
}

fn select(
    asked: Option<&str>,
    contexts: &Contexts,
    here: Option<Endpoint>,
) -> Result<Target, UsageError> {
    if let Some(name) = asked.or(contexts.current.as_deref()) {
        return contexts.named(name).map(from_context).ok_or_else(|| contexts.missing(name));
    }
    let Some(Endpoint { url, .. }) = here else {
        return Err(UsageError(NO_CONTROL_PLANE.to_owned()));
    };
    Ok(Target { url, here: true, ..Target::default() })
}

const NO_CONTROL_PLANE: &str = "\
no control plane is known: start one on this machine with `muster up`, or give its address with --server URL, \
MUSTER_SERVER or `muster context set NAME --server URL`";

fn from_context(context: &Context) -> Target {
    let Context { name: _, server, token, token_file, ca_file, namespace } = context.clone();
    Target { url: server, token, token_file, ca_file, namespace, owner: None, here: false }
}

/// The control plane of this user on this machine, if there is one.
fn here() -> Option<Endpoint> {
    Endpoint::read(&data()?)
}

/// The data directory of this user's control plane.
fn data() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = || set("HOME").map(|home| Path::new(&home).join(".local/share"));
    let base = || set("XDG_DATA_HOME").map(PathBuf::from).or_else(home);
    let usual = || base().map(|base| base.join("muster"));
    set("MUSTER_DATA").map(PathBuf::from).or_else(usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contexts(current: Option<&str>) -> Contexts {
        let mut contexts = Contexts { current: current.map(str::to_owned), ..Contexts::default() };
        let lab = contexts.entry("lab");
        lab.server = "https://lab:7480".to_owned();
        lab.namespace = Some("research".to_owned());
        contexts.entry("other").server = "http://other:1".to_owned();
        contexts
    }

    #[test]
    fn named_context_wins_over_current_one_and_both_over_this_machine() {
        let here = || Some(Endpoint::at("http://127.0.0.1:9"));
        let url = |asked, current| select(asked, &contexts(current), here()).unwrap().url;
        assert_eq!(url(Some("other"), Some("lab")), "http://other:1");
        assert_eq!(url(None, Some("lab")), "https://lab:7480");
        assert_eq!(url(None, None), "http://127.0.0.1:9");
        let lab = select(Some("lab"), &contexts(None), None).unwrap();
        assert_eq!((lab.namespace.as_deref(), lab.here), (Some("research"), false));
    }

    #[test]
    fn error_without_control_plane_says_how_to_start_one() {
        let nowhere = select(None, &contexts(None), None).unwrap_err();
        assert!(nowhere.0.contains("`muster up`"), "{nowhere}");
        let wrong = select(Some("lob"), &contexts(None), None).unwrap_err();
        assert_eq!(wrong.0, "there is no context lob, only lab, other");
    }
}
