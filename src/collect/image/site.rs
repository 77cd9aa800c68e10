//! The packages of one Python, which lies on a machine instead of in an image.

use super::contents::of_pip;
use super::places::Hints;
use super::python::python_packages;
use super::survey::Survey;
use super::walk::Walk;
use crate::collect::files::Files;
use crate::model::image::{Framework, Package};
use crate::model::{Parts, Unknown};

/// More than an environment has of interest.
const MOST_PACKAGES: usize = 512;

/// Frameworks in these directories, in which Python looks in this order, and the packages of CUDA in them. `fact`: what
/// their list is called.
pub fn packages_of_python(rootfs: &dyn Files, directories: &[String], fact: &str) -> (Parts<Framework>, Vec<Package>) {
    let mut walk = Walk::new(rootfs, &Hints::default());
    let mut found = Survey::default();
    let mut packages = Vec::new();
    for directory in directories {
        let names = walk.list(directory);
        let earlier = found.frameworks.len();
        python_packages(&mut walk, directory, &names, &mut found);
        // what lies in an earlier directory as well is never imported from here
        let here = found.frameworks.split_off(earlier);
        let is_new = |framework: &Framework| found.frameworks.iter().all(|other| other.name != framework.name);
        let new: Vec<Framework> = here.into_iter().filter(is_new).collect();
        found.frameworks.extend(new);
        packages.extend(names.iter().filter_map(|name| of_pip(rootfs, directory, name)).take(MOST_PACKAGES));
    }
    let unread: Option<Unknown> = walk.unread().cloned().or(found.open).map(|unseen| unseen.leaves_open(fact));
    (Parts { items: found.frameworks, unread: unread.into_iter().collect() }, packages)
}
