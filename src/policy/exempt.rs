//! Containers for which an error is only a warning.

use crate::model::Container;

/// `[exempt]`: patterns with `*`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exempt {
    /// Names of images, where the engine tells them.
    pub images: Vec<String>,
    /// Kubernetes namespaces.
    pub namespaces: Vec<String>,
    /// Annotations, `key` or `key=value`.
    pub annotations: Vec<String>,
}

/// Annotations in which engines tell the image's name.
const IMAGE: [&str; 4] = [
    "io.kubernetes.cri.image-name",
    "io.kubernetes.cri-o.ImageName",
    "io.kubernetes.cri-o.UserRequestedImage",
    "org.opencontainers.image.ref.name",
];

/// Annotations in which engines tell the pod's namespace.
const NAMESPACE: [&str; 2] = ["io.kubernetes.cri.sandbox-namespace", "io.kubernetes.pod.namespace"];

impl Exempt {
    /// Why this container is exempt, if it is.
    pub fn reason(&self, container: &Container) -> Option<String> {
        let annotations = container.annotations.seen()?;
        let one_of = |keys: &[&str], patterns: &[String]| {
            keys.iter()
                .filter_map(|key| annotations.get(*key))
                .find(|value| patterns.iter().any(|p| matches(p, value)))
                .cloned()
        };
        if let Some(image) = one_of(&IMAGE, &self.images) {
            return Some(format!("image {image}"));
        }
        if let Some(namespace) = one_of(&NAMESPACE, &self.namespaces) {
            return Some(format!("namespace {namespace}"));
        }
        self.annotations.iter().find_map(|wanted| {
            let (key, pattern) = wanted.split_once('=').unwrap_or((wanted, "*"));
            annotations.get(key).filter(|value| matches(pattern, value)).map(|_| format!("annotation {wanted}"))
        })
    }
}

/// A pattern in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts: Vec<_> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Observed;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, expected) in [
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("a*c", "abbc", true),
            ("a*c", "ac", true),
            ("a*b*c", "a-c-b", false),
            ("*", "", true),
            ("registry/*:1.*", "registry/tool:1.2", true),
            ("aa*aa", "aaa", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn exempt_by_image_namespace_or_annotation() {
        let exempt = Exempt {
            images: vec!["tools/*".into()],
            namespaces: vec!["kube-system".into()],
            annotations: vec!["team=infra".into(), "burn-in".into()],
        };
        let with = |key: &str, value: &str| {
            let container = Container {
                annotations: Observed::Known([(key.to_owned(), value.to_owned())].into()),
                ..Container::default()
            };
            exempt.reason(&container)
        };
        assert_eq!(with("io.kubernetes.cri.image-name", "tools/nvtop:3").as_deref(), Some("image tools/nvtop:3"));
        assert_eq!(
            with("io.kubernetes.cri.sandbox-namespace", "kube-system").as_deref(),
            Some("namespace kube-system")
        );
        assert_eq!(with("team", "infra").as_deref(), Some("annotation team=infra"));
        assert_eq!(with("burn-in", "x").as_deref(), Some("annotation burn-in"));
        assert_eq!(with("team", "research"), None);
    }
}
