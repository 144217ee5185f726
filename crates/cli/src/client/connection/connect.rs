//! Which control plane is asked, and as whom.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::client::connection::api::Api;
use crate::client::connection::contexts::{Context, Contexts, path};
use crate::exit::Misused;
use crate::owner_credential::Here;

/// Which control plane, of every command that asks one.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Which control plane")]
pub(crate) struct Reach {
    /// Its address, such as http://127.0.0.1:7480
    #[arg(long, env = "MUSTER_SERVER", value_name = "URL")]
    server: Option<String>,
    /// One of `muster context list`
    #[arg(long, env = "MUSTER_CONTEXT", value_name = "NAME", hide_env_values = true)]
    context: Option<String>,
    /// A file with your token; MUSTER_TOKEN may hold the token itself
    #[arg(long, env = "MUSTER_TOKEN_FILE", value_name = "FILE", hide_env = true)]
    token_file: Option<PathBuf>,
    /// Whoever vouches for its certificate, in PEM
    #[arg(long, env = "MUSTER_CA_FILE", value_name = "FILE", hide_env = true)]
    ca_file: Option<PathBuf>,
}

/// A control plane that was chosen.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Chosen {
    pub(crate) url: String,
    pub(crate) token: Option<String>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) namespace: Option<String>,
    /// The data directory whose owner's token is shown, where no other is.
    pub(crate) owner: Option<PathBuf>,
    /// Whether it was found on this machine and not told.
    pub(crate) here: bool,
}

impl Reach {
    /// Whether somebody told of a control plane, rightly or wrongly, or one runs here.
    pub(crate) fn is_known(&self) -> bool {
        self.chosen().map_or_else(|error| error.to_string() != NOWHERE, |_| true)
    }

    /// Whether this call says which control plane, rather than that one is found.
    pub(crate) fn is_named(&self) -> bool {
        self.server.is_some() || self.context.is_some()
    }

    /// The API of the control plane.
    pub(crate) fn api(&self) -> anyhow::Result<Api> {
        let mut chosen = self.chosen()?;
        // Also when its address is given: the same user types nothing.
        chosen.owner =
            data().filter(|data| Here::read(data).is_some_and(|it| it.url == chosen.url));
        if let Ok(token) = std::env::var("MUSTER_TOKEN") {
            chosen.token = Some(token).filter(|token| !token.is_empty());
            chosen.token_file = None;
        }
        if let Some(file) = self.token_file.clone() {
            chosen.token_file = Some(file);
        }
        if let Some(file) = &chosen.token_file {
            let text = std::fs::read_to_string(file)
                .map_err(|error| Misused(format!("{} cannot be read: {error}", file.display())))?;
            chosen.token = Some(text.trim().to_owned());
        }
        if let Some(file) = self.ca_file.clone() {
            chosen.ca_file = Some(file);
        }
        Api::new(&chosen)
    }

    fn chosen(&self) -> anyhow::Result<Chosen> {
        // A context file that cannot be read does not matter to those who say which server.
        if let Some(url) = &self.server {
            return Ok(Chosen { url: url.clone(), ..Chosen::default() });
        }
        let contexts =
            path().map_or_else(|| Ok(Contexts::default()), |path| Contexts::read(&path))?;
        Ok(choose(self.context.as_deref(), &contexts, here())?)
    }
}

fn choose(asked: Option<&str>, contexts: &Contexts, here: Option<Here>) -> Result<Chosen, Misused> {
    if let Some(name) = asked.or(contexts.current.as_deref()) {
        return contexts.named(name).map(of).ok_or_else(|| contexts.missing(name));
    }
    let Some(Here { url, .. }) = here else { return Err(Misused(NOWHERE.to_owned())) };
    Ok(Chosen { url, here: true, ..Chosen::default() })
}

const NOWHERE: &str = "\
no control plane is known: start one on this machine with `muster up`, or say where one is with --server URL, \
MUSTER_SERVER or `muster context set NAME --server URL`";

fn of(context: &Context) -> Chosen {
    let Context { name: _, server, token, token_file, ca_file, namespace } = context.clone();
    Chosen { url: server, token, token_file, ca_file, namespace, owner: None, here: false }
}

/// The control plane of this user on this machine, if there is one.
fn here() -> Option<Here> {
    Here::read(&data()?)
}

/// Where the control plane of this user keeps everything.
fn data() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = || set("HOME").map(|home| Path::new(&home).join(".local/share"));
    let base = || set("XDG_DATA_HOME").map(PathBuf::from).or_else(home);
    let usual = || base().map(|base| base.join("muster"));
    set("MUSTER_DATA").map(PathBuf::from).or_else(usual)
}

#[cfg(test)]
mod tests {
    use crate::client::connection::connect::*;

    fn contexts(current: Option<&str>) -> Contexts {
        let mut contexts = Contexts { current: current.map(str::to_owned), ..Contexts::default() };
        let lab = contexts.entry("lab");
        lab.server = "https://lab:7480".to_owned();
        lab.namespace = Some("research".to_owned());
        contexts.entry("other").server = "http://other:1".to_owned();
        contexts
    }

    #[test]
    fn a_context_that_is_asked_for_goes_before_the_current_one_and_both_before_this_machine() {
        let here = || Some(Here::at("http://127.0.0.1:9"));
        let url = |asked, current| choose(asked, &contexts(current), here()).unwrap().url;
        assert_eq!(url(Some("other"), Some("lab")), "http://other:1");
        assert_eq!(url(None, Some("lab")), "https://lab:7480");
        assert_eq!(url(None, None), "http://127.0.0.1:9");
        let lab = choose(Some("lab"), &contexts(None), None).unwrap();
        assert_eq!((lab.namespace.as_deref(), lab.here), (Some("research"), false));
    }

    #[test]
    fn whoever_has_no_control_plane_is_told_how_to_get_one() {
        let nowhere = choose(None, &contexts(None), None).unwrap_err();
        assert!(nowhere.0.contains("`muster up`"), "{nowhere}");
        let wrong = choose(Some("lob"), &contexts(None), None).unwrap_err();
        assert_eq!(wrong.0, "there is no context lob, only lab, other");
    }
}
