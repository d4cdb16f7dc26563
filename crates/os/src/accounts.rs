//! Users and groups, as `/etc/passwd` and `/etc/group` have them (passwd(5), group(5)).
//!
//! The C library would ask whatever nsswitch.conf names, by modules that a program which is linked statically cannot load.

use std::io;

const USERS: &str = "/etc/passwd";
const GROUPS: &str = "/etc/group";

/// Returns the IDs of a user and of the user's own group. `None`: no such user.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn user(name: &str) -> io::Result<Option<(u32, u32)>> {
    Ok(user_in(&read(USERS)?, name))
}

/// Returns the ID of a group. `None`: no such group.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn group(name: &str) -> io::Result<Option<u32>> {
    Ok(group_in(&read(GROUPS)?, name))
}

/// Returns the IDs of the groups that list a user as a member, and `own`, the group of the process.
///
/// # Errors
/// The file exists but cannot be read.
pub(crate) fn groups_of(user: &str, own: u32) -> io::Result<Vec<u32>> {
    match read(GROUPS) {
        Ok(text) => Ok(groups_of_in(&text, user, own)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(vec![own]),
        Err(error) => Err(error),
    }
}

fn read(path: &str) -> io::Result<String> {
    let bytes = std::fs::read(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))?;
    // Comments of users may have any encoding.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the fields of each line that is not a comment.
fn records(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(':').collect())
}

/// Returns an ID. The largest number is none: to the kernel it means "unchanged".
fn id(text: &str) -> Option<u32> {
    text.parse().ok().filter(|id| *id != u32::MAX)
}

fn user_in(text: &str, name: &str) -> Option<(u32, u32)> {
    records(text).find_map(|fields| match fields[..] {
        [user, _, uid, gid, ..] if user == name => Some((id(uid)?, id(gid)?)),
        _ => None,
    })
}

fn group_in(text: &str, name: &str) -> Option<u32> {
    records(text).find_map(|fields| match fields[..] {
        [group, _, gid, ..] if group == name => id(gid),
        _ => None,
    })
}

fn groups_of_in(text: &str, user: &str, own: u32) -> Vec<u32> {
    let mut found = vec![own];
    for fields in records(text) {
        if let [_, _, gid, members] = fields[..]
            && members.split(',').any(|member| member.trim() == user)
            && let Some(gid) = id(gid)
            && !found.contains(&gid)
        {
            found.push(gid);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_groups_are_found_in_the_files() {
        let users = "# x:x:1:1\nroot:x:0:0:root:/root:/bin/sh\n+nis\nweir:x:998:997:W. \u{fffd}:/:/bin/false\n\
                     bad:x:a:1:::\nnone:x:4294967295:1:::\nweir:x:1:1:::\n";
        assert_eq!(user_in(users, "weir"), Some((998, 997)));
        assert_eq!(user_in(users, "root"), Some((0, 0)));
        for name in ["", "x", "# x", "bad", "none", "+nis", "wei", "weir:x"] {
            assert_eq!(user_in(users, name), None, "{name}");
        }
        let groups = "root:x:0:\nweir:x:997:\ntls:x:50:ada, weir\nweb:x:60:weir,ada\nempty:x:70:\nagain:x:50:weir\n";
        assert_eq!(group_in(groups, "tls"), Some(50));
        assert_eq!(group_in(groups, "ada"), None);
        assert_eq!(groups_of_in(groups, "weir", 997), [997, 50, 60]);
    }
}
