//! WSL, Jetson, or an ordinary machine.

use std::collections::BTreeMap;

use super::look::{seems_there, short};
use crate::collect::tree::Tree;
use crate::model::Observed;
use crate::model::host::{Node, Platform};

/// "# R36 (release), REVISION: 4.0, GCID: …, BOARD: generic, …"
const L4T: &str = "/etc/nv_tegra_release";

/// The platform, and the release of Jetson Linux.
pub(super) fn platform(
    tree: &Tree,
    nodes: &Observed<BTreeMap<String, Node>>,
    kernel: Option<&String>,
    architecture: Option<&String>,
) -> (Platform, Option<String>) {
    if is_wsl(tree, nodes, kernel.map_or("", String::as_str)) {
        return (Platform::Wsl, None);
    }
    // a file of Jetson's on a workstation that builds its images makes no Jetson of it
    if architecture.is_some_and(|name| name == "x86_64") {
        return (Platform::Native, None);
    }
    let release = short(tree, L4T).ok().flatten();
    if release.is_some() || is_tegra(tree) {
        return (Platform::Tegra, release.as_deref().and_then(l4t));
    }
    (Platform::Native, None)
}

fn is_wsl(tree: &Tree, nodes: &Observed<BTreeMap<String, Node>>, kernel: &str) -> bool {
    if nodes.seen().is_some_and(|nodes| nodes.contains_key("/dev/dxg")) {
        return true;
    }
    let named_so = kernel.to_ascii_lowercase().contains("microsoft") || kernel.contains("WSL");
    named_so && seems_there(tree, "/usr/lib/wsl")
}

fn is_tegra(tree: &Tree) -> bool {
    let family = short(tree, "/sys/devices/soc0/family").ok().flatten();
    if family.is_some_and(|name| name.eq_ignore_ascii_case("tegra")) {
        return true;
    }
    // a list of words, each ended by a zero
    let compatible = tree.read("/proc/device-tree/compatible", 4096).ok().flatten().unwrap_or_default();
    compatible.split(|b| *b == 0).any(|word| word.starts_with(b"nvidia,tegra"))
}

/// `36.4.0` for release 36, revision 4.0.
fn l4t(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with('#'))?;
    let number = |after: &str| {
        let rest = line.split_once(after)?.1.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest.get(..end).filter(|digits| !digits.is_empty())
    };
    Some(format!("{}.{}", number("# R")?, number("REVISION:")?))
}

#[cfg(test)]
mod tests {
    use super::super::devices;
    use super::super::look::testing::Laid;
    use super::*;

    fn of(laid: &Laid, kernel: &str, architecture: Option<&str>) -> (Platform, Option<String>) {
        let tree = laid.tree();
        let (kernel, architecture) = (kernel.to_owned(), architecture.map(str::to_owned));
        platform(&tree, &devices::nodes(&tree), Some(&kernel), architecture.as_ref())
    }

    #[test]
    fn wsl_shows_by_its_node_or_by_kernel_and_libraries() {
        let bare = Laid::out(&[("/dev/null", "")]);
        assert_eq!(of(&bare, "5.15.90.1-microsoft-standard-WSL2", Some("x86_64")).0, Platform::Native);
        assert_eq!(of(&Laid::out(&[("/dev/dxg", "")]), "6.6", Some("x86_64")).0, Platform::Wsl);
        let libraries = Laid::out(&[("/usr/lib/wsl/lib/libcuda.so.1", "")]);
        assert_eq!(of(&libraries, "5.15.90.1-microsoft-standard-WSL2", None).0, Platform::Wsl);
        assert_eq!(of(&libraries, "6.1.0-30-amd64", None).0, Platform::Native);
    }

    #[test]
    fn jetson_shows_by_its_release_or_by_its_processor() {
        let laid = Laid::out(&[(L4T, "# R36 (release), REVISION: 4.0, GCID: 37537400, BOARD: generic\nx\n")]);
        assert_eq!(of(&laid, "5.15", Some("aarch64")), (Platform::Tegra, Some("36.4.0".into())));
        assert_eq!(of(&laid, "5.15", Some("x86_64")), (Platform::Native, None));
        let family = Laid::out(&[("/sys/devices/soc0/family", "Tegra\n")]);
        assert_eq!(of(&family, "5.15", Some("aarch64")), (Platform::Tegra, None));
        let tree = Laid::out(&[("/proc/device-tree/compatible", "nvidia,p3737-0000+p3701-0005\0nvidia,tegra234\0")]);
        assert_eq!(of(&tree, "5.15", None), (Platform::Tegra, None));
        assert_eq!(l4t("# R32 (release), REVISION: 7.1, GCID"), Some("32.7.1".into()));
        assert_eq!((l4t("# R (release), REVISION: 1"), l4t("")), (None, None));
    }
}
