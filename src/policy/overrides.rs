//! What a container asks for itself, by annotation or environment.

use std::collections::BTreeSet;

use super::{Mode, Policy};
use crate::model::Container;

/// A container's own wish, and where it said so.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Asked {
    /// Another mode.
    pub mode: Option<Mode>,
    /// Checks that shall not count.
    pub ignore: BTreeSet<String>,
    /// What was lowered, by whom: for the log.
    pub lowered: Vec<String>,
}

const MODE: (&str, &str) = ("io.gpu-preflight.mode", "GPU_PREFLIGHT");
const IGNORE: (&str, &str) = ("io.gpu-preflight.ignore", "GPU_PREFLIGHT_IGNORE");

impl Policy {
    /// What the container asks for and may have. Where `allow_override` is off only a stricter mode counts.
    /// This is a help, not a boundary: who may start containers may write their environment.
    pub fn asked_by(&self, container: &Container) -> Asked {
        let said = |(annotation, variable): (&str, &str)| {
            let annotated = container.annotations.seen().and_then(|all| all.get(annotation));
            let in_environment = || container.environment.seen().and_then(|all| all.get(variable));
            match annotated {
                Some(value) => Some((value.clone(), format!("annotation {annotation}"))),
                None => in_environment().map(|value| (value.clone(), format!("variable {variable}"))),
            }
        };
        let mut asked = Asked::default();
        if let Some((value, place)) = said(MODE)
            && let Some(mode) = Mode::named(&value.trim().to_ascii_lowercase())
        {
            let raises = mode > self.mode;
            if raises || self.allow_override {
                asked.mode = Some(mode);
                if mode < self.mode {
                    asked.lowered.push(format!("mode {} by {place}", mode.name()));
                }
            }
        }
        if let Some((value, place)) = said(IGNORE).filter(|_| self.allow_override) {
            asked.ignore = value.split(',').map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned).collect();
            if !asked.ignore.is_empty() {
                asked.lowered.push(format!("ignore by {place}"));
            }
        }
        asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Observed;

    fn container(annotation: Option<&str>, variable: Option<&str>, ignore: Option<&str>) -> Container {
        let map = |pairs: &[(&str, Option<&str>)]| {
            Observed::Known(pairs.iter().filter_map(|(k, v)| v.map(|v| ((*k).to_owned(), v.to_owned()))).collect())
        };
        Container {
            annotations: map(&[("io.gpu-preflight.mode", annotation)]),
            environment: map(&[("GPU_PREFLIGHT", variable), ("GPU_PREFLIGHT_IGNORE", ignore)]),
            ..Container::default()
        }
    }

    #[test]
    fn an_annotation_counts_before_the_environment_and_a_lowering_is_noted() {
        let asked = Policy::default().asked_by(&container(Some("warn"), Some("off"), Some("a, b,")));
        assert_eq!(asked.mode, Some(Mode::Warn));
        assert_eq!(asked.ignore, ["a".to_owned(), "b".to_owned()].into());
        assert_eq!(
            asked.lowered,
            ["mode warn by annotation io.gpu-preflight.mode", "ignore by variable GPU_PREFLIGHT_IGNORE"]
        );
    }

    #[test]
    fn where_it_is_not_allowed_only_raising_counts() {
        let strict = Policy { allow_override: false, mode: Mode::Warn, ..Policy::default() };
        assert_eq!(strict.asked_by(&container(None, Some("off"), Some("a"))), Asked::default());
        assert_eq!(strict.asked_by(&container(None, Some("enforce"), None)).mode, Some(Mode::Enforce));
        assert_eq!(Policy::default().asked_by(&container(None, Some("nonsense"), None)), Asked::default());
    }
}
