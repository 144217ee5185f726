//! The environment variables that keepers and workers inherit from the control plane.
//!
//! Few: paths of programs and homes, locale, and the GPU driver. Anything else (cloud credentials, the control plane's
//! token) is not passed on unless it is named in the options.

use std::ffi::OsString;

/// Variables that are passed on.
const ALLOWED: [&str; 20] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "TERM",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CUDA_HOME",
    "CUDA_PATH",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "XDG_RUNTIME_DIR",
    "HOSTNAME",
];
/// Prefixes of variables that are passed on.
const FAMILIES: [&str; 1] = ["LC_"];
/// Never passed on, even if named: these are credentials for the control plane itself.
const NEVER: [&str; 2] = ["MUSTER_TOKEN", "MUSTER_TOKEN_FILE"];

/// The variables of this process that are passed on, including the named ones.
pub(crate) fn allowed(named: &[String]) -> Vec<(OsString, OsString)> {
    std::env::vars_os()
        .filter(|(name, _)| name.to_str().is_some_and(|name| is_allowed(name, named)))
        .collect()
}

fn is_allowed(name: &str, named: &[String]) -> bool {
    let known = ALLOWED.contains(&name) || FAMILIES.iter().any(|one| name.starts_with(one));
    !NEVER.contains(&name) && (known || named.iter().any(|one| one == name))
}

#[cfg(test)]
mod tests {
    use super::is_allowed;

    #[test]
    fn secrets_of_the_control_plane_are_not_inherited() {
        let named = ["WANDB_API_KEY".to_owned(), "MUSTER_TOKEN".to_owned()];
        for name in ["PATH", "LC_ALL", "TZ", "WANDB_API_KEY"] {
            assert!(is_allowed(name, &named), "{name}");
        }
        for name in ["AWS_SECRET_ACCESS_KEY", "MUSTER_TOKEN", "SSH_AUTH_SOCK", "LD_PRELOAD"] {
            assert!(!is_allowed(name, &named), "{name}");
        }
    }
}
