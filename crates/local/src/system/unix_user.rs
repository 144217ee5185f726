//! Unix users that workers run as.

use std::ffi::CString;
use std::path::PathBuf;

use nix::unistd::{Uid, User, geteuid, initgroups, setgid, setuid};

/// Whether this process may start processes as another user.
pub fn may_change_user() -> bool {
    geteuid().is_root()
}

/// Checks whether workers can run as a user: it exists, and is not root by another name.
///
/// # Errors
/// With the reason.
pub fn check_user(name: &str) -> Result<(), String> {
    find(name).map(drop)
}

fn find(name: &str) -> Result<User, String> {
    let found = User::from_name(name).map_err(|error| format!("user {name}: {error}"))?;
    let user = found.ok_or_else(|| format!("there is no user {name} on this machine"))?;
    match user.uid.is_root() || user.gid.as_raw() == 0 {
        true => Err(format!("user {name} is root by another name, or in its group")),
        false => Ok(user),
    }
}

/// The environment and home directory of a user.
pub(crate) fn surroundings(name: &str) -> Option<([(&'static str, String); 4], PathBuf)> {
    let user = find(name).ok()?;
    let home = user.dir.display().to_string();
    let shell = user.shell.display().to_string();
    let name = user.name;
    let env = [("HOME", home), ("USER", name.clone()), ("LOGNAME", name), ("SHELL", shell)];
    Some((env, user.dir))
}

/// Switches to a user for good: supplementary groups first, then the group, then the user.
///
/// # Errors
/// With the reason. The process must not continue then.
pub(crate) fn become_user(name: &str) -> Result<(), String> {
    let user = find(name)?;
    let text = CString::new(name).map_err(|_| "a name has no NUL in it".to_owned())?;
    let failed = |what: &str, error| format!("cannot become {name}: {what}: {error}");
    initgroups(&text, user.gid).map_err(|error| failed("groups", error))?;
    setgid(user.gid).map_err(|error| failed("group", error))?;
    setuid(user.uid).map_err(|error| failed("user", error))?;
    if geteuid() != user.uid || setuid(Uid::from_raw(0)).is_ok() {
        return Err(format!("cannot become {name}: the way back is open"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_and_unknown_users_are_refused() {
        assert!(check_user("root").expect_err("root").contains("root by another name"));
        assert!(check_user("no-such-user").expect_err("unknown").contains("there is no user"));
        assert_eq!(check_user("nobody"), Ok(()));
    }
}
