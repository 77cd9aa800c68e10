//! What the caller's own environment is, and what it leads programs to: the machine's own programs, not containers.
//!
//! Of a machine that is laid out none of it counts: nobody stated it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::look::fact;
use crate::collect::child;
use crate::collect::tree::Tree;
use crate::knowledge::variables::concerns_gpus;
use crate::model::host::{PathLibrary, Python};
use crate::model::image::{Framework, Package};
use crate::model::observed::NOT_STATED;
use crate::model::{Host, Observed, Parts, Unseen};

mod library_path;
mod python;

/// Some directories with a few libraries each, and an environment with some hundred packages.
const LIMIT: usize = 512 << 10;

/// What was found where the environment leads.
#[derive(Debug, Serialize, Deserialize)]
struct Led {
    library_path: Result<Vec<PathLibrary>, Unseen>,
    python: Result<Option<Found>, Unseen>,
}

/// A Python with what its report leaves out.
#[derive(Debug, Serialize, Deserialize)]
struct Found {
    path: String,
    frameworks: Vec<Framework>,
    unread: Option<Unseen>,
    packages: Vec<Package>,
}

impl Found {
    fn of(python: Python) -> Self {
        let Python { path, frameworks: Parts { items, unread }, packages } = python;
        let unread = unread.into_iter().next().map(|unknown| Unseen::new(unknown.source, unknown.reason));
        Self { path, frameworks: items, unread, packages }
    }

    fn into_python(self) -> Python {
        let unread = self.unread.map(|unseen| unseen.leaves_open(python::FACT)).into_iter().collect();
        Python { path: self.path, frameworks: Parts { items: self.frameworks, unread }, packages: self.packages }
    }
}

/// Adds it to a machine of which all else was looked at. The directories that variables name may lie on a file system
/// whose server never answers: a child looks into them, if there is a GPU that they could matter to.
pub fn add_caller(tree: &Tree, environment: &BTreeMap<String, String>, host: &mut Host, deadline: Instant) {
    let led = if host.laid_out {
        let source = "the caller's environment";
        host.environment = Observed::unknown("host.environment", source, NOT_STATED);
        let not_stated = Unseen::new(source, NOT_STATED);
        Led { library_path: Err(not_stated.clone()), python: Err(not_stated) }
    } else {
        let shown = environment.iter().filter(|(name, _)| concerns_gpus(name));
        host.environment = Observed::Known(shown.map(|(name, value)| (name.clone(), value.clone())).collect());
        if host.has_gpu() == Ok(false) {
            return;
        }
        look(tree, environment, host, deadline)
    };
    host.library_path = fact("host.library_path", led.library_path);
    host.python = fact(python::FACT, led.python.map(|found| found.map(|found| Box::new(found.into_python()))));
}

fn look(tree: &Tree, environment: &BTreeMap<String, String>, host: &Host, deadline: Instant) -> Led {
    let answer = child::run(deadline, LIMIT, |out| {
        let library_path = library_path::libraries(tree, environment, host);
        let python = python::python(tree, environment).map(|python| python.map(Found::of));
        let led = Led { library_path, python };
        // nobody who could hear of it
        let _ = out.write_all(&serde_json::to_vec(&led).unwrap_or_default());
    });
    let told = answer.ok().filter(|answer| answer.complete);
    told.and_then(|answer| serde_json::from_slice(&answer.bytes).ok()).unwrap_or_else(|| {
        let late = |variable| Unseen::new(variable, "the directories that variables name did not answer in time");
        Led { library_path: Err(late("LD_LIBRARY_PATH")), python: Err(late("PATH")) }
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::look::testing::Laid;
    use super::*;

    fn of(environment: &[(&str, &str)], laid_out: bool) -> Host {
        let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut host = Host { laid_out, ..crate::model::testing::host(1) };
        let laid = Laid::out(&[("/opt/a/libcuda.so.1", "")]);
        add_caller(&laid.tree(), &environment, &mut host, Instant::now() + Duration::from_secs(20));
        host
    }

    #[test]
    fn only_what_speaks_of_gpus_is_kept_and_where_it_leads_is_looked_at() {
        let host = of(&[("CUDA_VISIBLE_DEVICES", "1"), ("TOKEN", "secret"), ("LD_LIBRARY_PATH", "/opt/a")], false);
        let names: Vec<_> = host.environment.seen().unwrap().keys().cloned().collect();
        assert_eq!(names, ["CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH"]);
        assert_eq!(host.library_path.seen().unwrap()[0].path, "/opt/a/libcuda.so.1");
    }

    #[test]
    fn of_a_machine_that_is_laid_out_nothing_of_it_was_asked() {
        let host = of(&[("CUDA_VISIBLE_DEVICES", "1")], true);
        for unknown in [host.environment.known().err(), host.library_path.known().err()] {
            assert!(unknown.unwrap().was_not_asked());
        }
    }
}
