//! A GPU as somebody states it on a command line: `H100`, `RTX 4090`, `A100-SXM4-80GB`, `sm_90`, `9.0`.

use std::collections::BTreeSet;

use crate::model::knowledge::Product;
use crate::model::{ComputeCapability, Knowledge};

/// How many names are offered for one that is none.
const MOST_NEAR: usize = 5;

/// A GPU that was stated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stated {
    /// The product's name as the driver gives it, without "NVIDIA"; `None`: only what it runs was stated.
    pub name: Option<String>,
    /// What it runs.
    pub capability: ComputeCapability,
}

/// Why a text states no GPU, with the names that it may mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unnamed {
    /// Several products of different kinds have this name.
    Ambiguous(Vec<String>),
    /// No table has it.
    Unknown(Vec<String>),
}

impl Knowledge {
    /// The GPU of a text: a compute capability that some GPU has, or the name of a product, whose first words (`NVIDIA`,
    /// `GeForce`) may be left out where it is still the only one.
    pub fn stated_gpu(&self, text: &str) -> Result<Stated, Unnamed> {
        let text = text.trim();
        if let Some(capability) = capability(text) {
            return if self.has_capability(capability) {
                Ok(Stated { name: None, capability })
            } else {
                Err(Unnamed::Unknown(self.near_capabilities(capability)))
            };
        }
        if let Some(capability) = self.capability_of(Some(text), None) {
            return Ok(Stated { name: Some(text.to_owned()), capability });
        }
        let all = self.with_words_before(text);
        let kinds: BTreeSet<ComputeCapability> = all.iter().map(|stated| stated.capability).collect();
        match (kinds.len(), all.first()) {
            (1, Some(first)) => Ok(first.clone()),
            (0, _) | (_, None) => Err(Unnamed::Unknown(self.near_names(text))),
            _ => Err(Unnamed::Ambiguous(all.into_iter().filter_map(|stated| stated.name).collect())),
        }
    }

    fn has_capability(&self, capability: ComputeCapability) -> bool {
        let of_generations = self.generations.iter().flat_map(|g| g.capabilities.iter());
        of_generations.chain(self.targets.iter().flat_map(|t| t.capabilities.iter())).any(|known| *known == capability)
    }

    /// Those of the same generation, or all that are at hand.
    fn near_capabilities(&self, capability: ComputeCapability) -> Vec<String> {
        let all: BTreeSet<ComputeCapability> =
            self.generations.iter().flat_map(|g| g.capabilities.iter().copied()).collect();
        let same: Vec<_> = all.iter().filter(|known| known.major == capability.major).collect();
        let near = if same.is_empty() { all.iter().rev().take(MOST_NEAR).collect() } else { same };
        near.into_iter().map(|known| format!("sm_{}{}", known.major, known.minor)).collect()
    }

    /// The products that the text means if the first words of their family are put in front; with what tells two chips
    /// of one name apart put behind, where the name alone is of none.
    fn with_words_before(&self, text: &str) -> Vec<Stated> {
        let mut found: Vec<Stated> = Vec::new();
        for product in self.products.iter() {
            for before in left_out(product, text) {
                let name = if before.is_empty() { text.to_owned() } else { format!("{before} {text}") };
                let told_apart = format!("{name} {}", product.with);
                let name = if self.capability_of(Some(&name), None).is_some() { name } else { told_apart };
                let name = name.trim_end();
                if let Some(capability) = self.capability_of(Some(name), None)
                    && found.iter().all(|other| other.name.as_deref() != Some(name))
                {
                    found.push(Stated { name: Some(name.to_owned()), capability });
                }
            }
        }
        found
    }

    /// Names that differ in few letters from the text, nearest first.
    fn near_names(&self, text: &str) -> Vec<String> {
        let wanted = letters(text);
        let mut near: Vec<(usize, String)> = Vec::new();
        for product in self.products.iter() {
            for model in product.models.split(' ') {
                let words: Vec<&str> =
                    product.family.split(' ').chain([model, &product.with]).filter(|word| !word.is_empty()).collect();
                let from = |n: usize| distance(&letters(&words[n..].concat()), &wanted);
                let distance = (0..words.len()).map(from).min().unwrap_or(usize::MAX);
                let name = words.join(" ");
                // so few that more letters stay than change
                if distance <= 2 && distance * 2 < wanted.len().max(2) {
                    near.push((distance, name));
                }
            }
        }
        near.sort();
        near.dedup();
        near.into_iter().map(|(_, name)| name).take(MOST_NEAR).collect()
    }
}

/// The first words of a product's family that a text leaves out: it begins with the others, and then names a model. A
/// model without a digit (`TITAN`, `RTX`) is a word of other names.
fn left_out(product: &Product, text: &str) -> Vec<String> {
    let family: Vec<&str> = product.family.split(' ').filter(|word| !word.is_empty()).collect();
    let is_model = |word: &str| {
        word.bytes().any(|b| b.is_ascii_digit()) && product.models.split(' ').any(|m| m.eq_ignore_ascii_case(word))
    };
    let fits = |n: &usize| {
        let mut words = text.split([' ', '-', '/']);
        family[*n..].iter().all(|word| words.next().is_some_and(|w| w.eq_ignore_ascii_case(word)))
            && words.next().is_some_and(is_model)
    };
    (0..=family.len()).filter(fits).map(|n| family[..n].join(" ")).collect()
}

/// `9.0`, `sm_90`, `90`; the letter of code for one chip alone (`sm_90a`) is no part of it.
fn capability(text: &str) -> Option<ComputeCapability> {
    let lower = text.to_ascii_lowercase();
    let bare = if lower.starts_with("sm_") || lower.starts_with("compute_") {
        lower.strip_suffix(['a', 'f']).unwrap_or(&lower)
    } else {
        &lower
    };
    bare.parse().ok()
}

fn letters(text: &str) -> Vec<u8> {
    let bytes = text.bytes().filter(u8::is_ascii_alphanumeric).map(|b| b.to_ascii_lowercase());
    // no product's name is longer
    bytes.take(40).collect()
}

/// How many letters are to be put in, taken out or changed to make one of the other.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = changed.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::BUILT_IN;

    fn of(text: &str) -> Result<(Option<String>, String), Unnamed> {
        BUILT_IN.stated_gpu(text).map(|stated| (stated.name, stated.capability.to_string()))
    }

    #[test]
    fn a_capability_in_all_its_forms() {
        for text in ["9.0", "sm_90", "SM_90", "sm_90a", "90", "compute_90", " 9.0 "] {
            assert_eq!(of(text), Ok((None, "9.0".to_owned())), "{text}");
        }
        assert_eq!(of("sm_120f"), Ok((None, "12.0".to_owned())));
        assert_eq!(of("8.8").map(|(_, capability)| capability), Ok("8.8".to_owned()), "toolkits compile for it");
        for text in ["sm_91", "40", "9.7", "sm_900"] {
            assert!(matches!(of(text), Err(Unnamed::Unknown(near)) if !near.is_empty()), "{text}: {:?}", of(text));
        }
        assert_eq!(of("sm_91"), Err(Unnamed::Unknown(vec!["sm_90".to_owned()])));
    }

    #[test]
    fn a_product_with_and_without_its_first_words() {
        for (text, name, capability) in [
            ("H100", "H100", "9.0"),
            ("NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3", "9.0"),
            ("A100-SXM4-80GB", "A100-SXM4-80GB", "8.0"),
            ("RTX 4090", "GeForce RTX 4090", "8.9"),
            ("rtx 4070 Ti SUPER", "GeForce rtx 4070 Ti SUPER", "8.9"),
            ("4090", "GeForce RTX 4090", "8.9"),
            ("GeForce RTX 3050", "GeForce RTX 3050", "8.6"),
            ("RTX 3050", "GeForce RTX 3050", "8.6"),
            ("1080 Ti", "GeForce GTX 1080 Ti", "6.1"),
            ("RTX A6000", "RTX A6000", "8.6"),
            ("RTX 6000 Ada", "RTX 6000 Ada", "8.9"),
            ("Tesla T4", "Tesla T4", "7.5"),
        ] {
            assert_eq!(of(text), Ok((Some(name.to_owned()), capability.to_owned())), "{text}");
        }
    }

    #[test]
    fn one_name_of_several_products_is_refused_with_theirs() {
        for (text, has) in
            [("RTX 6000", ["Quadro RTX 6000", "RTX 6000 Ada"]), ("6000", ["Quadro RTX 6000", "RTX PRO 6000 Blackwell"])]
        {
            let Err(Unnamed::Ambiguous(names)) = of(text) else { panic!("{text}: {:?}", of(text)) };
            assert!(has.iter().all(|name| names.iter().any(|n| n == name)), "{text}: {names:?}");
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_near_ones() {
        let near = |text: &str| match of(text) {
            Err(Unnamed::Unknown(near)) => near,
            other => panic!("{text}: {other:?}"),
        };
        assert!(near("H1000").contains(&"H100".to_owned()), "{:?}", near("H1000"));
        assert!(near("RTX 4095").contains(&"GeForce RTX 4090".to_owned()), "{:?}", near("RTX 4095"));
        assert!(near("GeForceRTX4090").contains(&"GeForce RTX 4090".to_owned()));
        assert!(near("radeon").is_empty() && near("").is_empty() && near("\u{663e}").is_empty());
        assert!(near("H1").len() <= MOST_NEAR);
    }

    #[test]
    fn distance_counts_letters() {
        for (a, b, wanted) in [("", "", 0), ("h100", "", 4), ("h100", "h1000", 1), ("a100", "h100", 1), ("ab", "ba", 2)]
        {
            assert_eq!(distance(a.as_bytes(), b.as_bytes()), wanted, "{a} {b}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in "\\PC{0,60}") {
            let _ = BUILT_IN.stated_gpu(&text);
        }
    }
}
