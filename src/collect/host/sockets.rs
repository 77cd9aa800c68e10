//! Sockets of NVIDIA's daemons, which the legacy hook mounts into containers.

use super::look::{exists, fact};
use crate::collect::tree::Tree;
use crate::model::Observed;

/// Of the persistence daemon and of the Fabric Manager. Source: libnvidia-container `src/nvc_info.c`,
/// `lookup_ipcs` (06deb20d).
const SOCKETS: [&str; 2] = ["/run/nvidia-persistenced/socket", "/run/nvidia-fabricmanager/socket"];

/// Those that are there, as files of any kind, by their path below `/run`. A directory may have been laid
/// out without the link that makes `/var/run` another name of it.
pub(super) fn sockets(tree: &Tree) -> Observed<Vec<String>> {
    let read = || {
        let mut found = Vec::new();
        for path in SOCKETS {
            if exists(tree, path)? || exists(tree, &format!("/var{path}"))? {
                found.push(path.to_owned());
            }
        }
        Ok(found)
    };
    fact("host.sockets", read())
}

#[cfg(test)]
mod tests {
    use super::super::look::testing::Laid;
    use super::*;

    #[test]
    fn sockets_are_found_below_both_names_of_run() {
        let of = |path: &str| sockets(&Laid::out(&[(path, "")]).tree());
        let found = Observed::Known(vec![SOCKETS[0].to_owned()]);
        assert_eq!(of("/run/nvidia-persistenced/socket"), found);
        assert_eq!(of("/var/run/nvidia-persistenced/socket"), found);
        assert_eq!(of("/run/nvidia-fabricmanager/socket"), Observed::Known(vec![SOCKETS[1].to_owned()]));
        assert_eq!(of("/run/nvidia-persistenced/nvidia-persistenced.pid"), Observed::Known(Vec::new()));
    }

    #[test]
    fn a_link_on_the_machine_is_no_second_socket() {
        let laid = Laid::out(&[(SOCKETS[0], "")]);
        laid.link("/run", "/var/run");
        assert_eq!(sockets(&laid.tree()), Observed::Known(vec![SOCKETS[0].to_owned()]));
    }
}
