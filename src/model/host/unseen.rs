//! A machine of which nothing was seen: what is known of it is put in afterwards.

use super::{Driver, Host, Toolkit};
use crate::model::Observed;

impl Host {
    /// All its facts are unknown, for this reason.
    pub fn unseen(source: &str, reason: &str) -> Self {
        fn unknown<T>(fact: &str, source: &str, reason: &str) -> Observed<T> {
            Observed::unknown(format!("host.{fact}"), source, reason)
        }
        let (of, why) = (source, reason);
        Self {
            laid_out: true,
            kernel: unknown("kernel", of, why),
            architecture: unknown("architecture", of, why),
            driver: Driver {
                version: unknown("driver.version", of, why),
                open_kernel_modules: unknown("driver.open_kernel_modules", of, why),
                modules: unknown("modules", of, why),
                module_options: unknown("driver.module_options", of, why),
                module_files: unknown("driver.module_files", of, why),
                libraries: unknown("driver.libraries", of, why),
                ..Driver::default()
            },
            pci: unknown("pci", of, why),
            gpus: unknown("gpus", of, why),
            majors: unknown("majors", of, why),
            device_nodes: unknown("device_nodes", of, why),
            dev_char: unknown("dev_char", of, why),
            mig_capabilities: unknown("mig_capabilities", of, why),
            toolkit: Toolkit {
                version: unknown("toolkit.version", of, why),
                programs: unknown("toolkit.programs", of, why),
                config: unknown("toolkit.config", of, why),
                ..Toolkit::default()
            },
            cdi: unknown("cdi", of, why),
            cgroup_v2: unknown("cgroup_v2", of, why),
            selinux: unknown("selinux", of, why),
            secure_boot: unknown("secure_boot", of, why),
            kernel_log: unknown("kernel_log", of, why),
            os: unknown("os", of, why),
            sockets: unknown("sockets", of, why),
            environment: unknown("environment", of, why),
            library_path: unknown("library_path", of, why),
            stuck: unknown("stuck", of, why),
            python: unknown("python", of, why),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_it_is_known() {
        let host = Host::unseen("a.json", "the profile does not tell it");
        let facts = serde_json::to_value(&host).unwrap();
        let seen: Vec<_> = facts.as_object().unwrap().iter().filter(|(_, value)| !value.is_null()).collect();
        let names: Vec<_> = seen.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["driver", "engines", "platform", "toolkit"], "{seen:?}");
        assert!(host.has_gpu().is_err() && host.engines.is_empty());
        assert_eq!(host.driver.version.known().unwrap_err().fact, "host.driver.version");
        assert!(facts["driver"]["version"].is_null() && facts["toolkit"]["version"].is_null());
    }
}
