//! Users of a machine, by its files.

use super::tree::Tree;

const LIMIT: usize = 1 << 20;
/// More than are at work on one machine.
const MOST_USERS: usize = 4096;

/// The home directory of a user, by `/etc/passwd`; `None`: it has none of its own, or only a directory service knows it.
pub fn home(tree: &Tree, uid: u32) -> Option<String> {
    let passwd = tree.read_text("/etc/passwd", LIMIT).ok()??;
    let home = passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let of_user = fields.nth(2)?.parse() == Ok(uid);
        of_user.then(|| fields.nth(2).map(str::to_owned))?
    })?;
    (home.starts_with('/') && home.len() > 1).then_some(home)
}

/// Who is at work here: the users that have a runtime directory, below `/run/user`.
pub fn at_work(tree: &Tree) -> Vec<u32> {
    let names = tree.list("/run/user", MOST_USERS).ok().flatten().unwrap_or_default();
    names.into_iter().filter_map(|name| name.to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::testing::laid;
    use crate::collect::tree::Kind;

    #[test]
    fn a_home_is_that_of_the_passwd_file() {
        let passwd = "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nnone:x:1001:1001::/:/bin/sh\n";
        let dir = laid(&[("/etc/passwd", passwd), ("/run/user/1000/bus", ""), ("/run/user/x/y", "")]);
        let tree = Tree::open(dir.path(), Kind::Host).unwrap();
        assert_eq!(home(&tree, 1000).as_deref(), Some("/home/ann"));
        assert_eq!((home(&tree, 1001), home(&tree, 7)), (None, None));
        assert_eq!(at_work(&tree), [1000]);
    }
}
