//! What keepers and workers find of the environment that the control plane was started with.
//!
//! Little: variables say where programs and homes are, how texts are written, and where the driver of the GPUs is. Whatever
//! else the control plane knows (credentials of a cloud, its own token) is not a worker's, unless somebody names it.

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
/// Families of variables that are passed on.
const FAMILIES: [&str; 1] = ["LC_"];
/// Never passed on, whoever names it: it is the credential of whoever asks the control plane.
const NEVER: [&str; 2] = ["MUSTER_TOKEN", "MUSTER_TOKEN_FILE"];

/// The variables of this process that are passed on, with those that were named.
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
    fn secrets_of_the_control_plane_are_not_passed_on() {
        let named = ["WANDB_API_KEY".to_owned(), "MUSTER_TOKEN".to_owned()];
        for name in ["PATH", "LC_ALL", "TZ", "WANDB_API_KEY"] {
            assert!(is_allowed(name, &named), "{name}");
        }
        for name in ["AWS_SECRET_ACCESS_KEY", "MUSTER_TOKEN", "SSH_AUTH_SOCK", "LD_PRELOAD"] {
            assert!(!is_allowed(name, &named), "{name}");
        }
    }
}
