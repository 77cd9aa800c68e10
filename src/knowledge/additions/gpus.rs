//! Rows about GPUs, and what toolkits make for them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Laid, has_room, lay, pair, read};
use crate::model::knowledge::{Chip, Generation, Knowledge, Modules, Product, Ptx, Targets};
use crate::model::{ComputeCapability, Release};

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum OfModules {
    Proprietary,
    Either,
    Open,
}

#[derive(Deserialize)]
struct OfGeneration {
    name: String,
    capabilities: Vec<String>,
    first_branch: Option<u32>,
    last_branch: Option<u32>,
    modules: OfModules,
    #[serde(flatten)]
    rest: BTreeMap<String, toml::Value>,
}

#[derive(Deserialize)]
struct OfGpu {
    pci: Option<String>,
    name: Option<String>,
    compute_capability: String,
    #[serde(flatten)]
    rest: BTreeMap<String, toml::Value>,
}

#[derive(Deserialize)]
struct OfTarget {
    cuda: Release,
    capabilities: Vec<String>,
    #[serde(flatten)]
    rest: BTreeMap<String, toml::Value>,
}

#[derive(Deserialize)]
struct OfPtx {
    cuda: Release,
    isa: Release,
    #[serde(flatten)]
    rest: BTreeMap<String, toml::Value>,
}

/// A generation: known by its name, placed by its least capability. No newer one starts or ends before it.
pub(super) fn generation(knowledge: &mut Knowledge, row: toml::Value) -> Laid {
    let OfGeneration { name, capabilities, first_branch, last_branch, modules, rest } = read(row)?;
    let capabilities = Cow::Owned(all(&capabilities)?);
    let modules = match modules {
        OfModules::Proprietary => Modules::Proprietary,
        OfModules::Either => Modules::Either,
        OfModules::Open => Modules::Open,
    };
    if first_branch.zip(last_branch).is_some_and(|(first, last)| first > last) {
        return Err("its last branch comes before its first".to_owned());
    }
    let row = Generation { name: Cow::Owned(name), capabilities, first_branch, last_branch, modules };
    let mut table = knowledge.generations.clone();
    table.to_mut().retain(|other| other.name != row.name);
    let shared = |other: &&Generation| other.capabilities.iter().any(|c| row.capabilities.contains(c));
    if let Some(other) = table.iter().find(shared) {
        return Err(format!("it shares a compute capability with {}", other.name));
    }
    let last = |row: &Generation| row.last_branch.unwrap_or(u32::MAX);
    let rises = |a: &Generation, b: &Generation| a.first_branch <= b.first_branch && last(a) <= last(b);
    lay(&mut table, row, |row| row.capabilities.first().copied(), rises, |row| row.name.to_string())?;
    knowledge.generations = table;
    Ok(rest)
}

/// A GPU, by id or by name.
pub(super) fn gpu(knowledge: &mut Knowledge, row: toml::Value) -> Laid {
    let OfGpu { pci, name, compute_capability, rest } = read(row)?;
    let capability = capability(&compute_capability)?;
    // read both before either counts
    let ids = pci.as_deref().map(ids).transpose()?;
    let product = name.as_deref().map(|name| product(name, capability)).transpose()?;
    if ids.is_none() && product.is_none() {
        return Err("it has neither pci nor name".to_owned());
    }
    if let Some((first, last)) = ids {
        let name = Cow::Owned(name.unwrap_or_default());
        // cut in two, another range is one row more
        has_room(&knowledge.chips, 2)?;
        carve(knowledge.chips.to_mut(), Chip { first, last, name, capability });
    }
    if let Some(product) = product {
        let same =
            |other: &Product| other.family == product.family && other.models == product.models && other.with.is_empty();
        let products = &mut knowledge.products;
        if products.iter().any(same) {
            products.to_mut().retain(|other| !same(other));
        }
        has_room(products, 1)?;
        products.to_mut().insert(0, product);
    }
    Ok(rest)
}

/// What a toolkit compiles for. A newer one may drop old capabilities and know new ones, not the reverse.
pub(super) fn target(knowledge: &mut Knowledge, row: toml::Value) -> Laid {
    let OfTarget { cuda, capabilities, rest } = read(row)?;
    let row = Targets { cuda: pair(&cuda), capabilities: Cow::Owned(all(&capabilities)?) };
    let rises = |a: &Targets, b: &Targets| a.min() <= b.min() && a.max() <= b.max();
    let ends =
        |row: &Targets| [row.min(), row.max()].map(|c| c.map_or_else(String::new, |c| c.to_string())).join(" to ");
    let say = |row: &Targets| format!("CUDA {}.{} for {}", row.cuda.0, row.cuda.1, ends(row));
    lay(&mut knowledge.targets, row, |row| row.cuda, rises, say)?;
    Ok(rest)
}

/// The PTX that a toolkit writes.
pub(super) fn ptx(knowledge: &mut Knowledge, row: toml::Value) -> Laid {
    let OfPtx { cuda, isa, rest } = read(row)?;
    let row = Ptx { cuda: pair(&cuda), isa: pair(&isa) };
    let say = |row: &Ptx| format!("CUDA {}.{} with PTX {}.{}", row.cuda.0, row.cuda.1, row.isa.0, row.isa.1);
    lay(&mut knowledge.ptx, row, |row| row.cuda, |a, b| a.isa <= b.isa, say)?;
    Ok(rest)
}

fn capability(text: &str) -> Result<ComputeCapability, String> {
    text.parse().map_err(|error| format!("compute capability: {error}"))
}

/// Least first, each once.
fn all(texts: &[String]) -> Result<Vec<ComputeCapability>, String> {
    let mut all = texts.iter().map(|text| capability(text)).collect::<Result<Vec<_>, _>>()?;
    all.sort_unstable();
    all.dedup();
    if all.is_empty() { Err("it has no capabilities".to_owned()) } else { Ok(all) }
}

/// `0x2330` or `0x2330-0x233f`.
fn ids(text: &str) -> Result<(u16, u16), String> {
    let id = |text: &str| {
        let digits = text.trim().strip_prefix("0x").filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        digits.and_then(|digits| u16::from_str_radix(digits, 16).ok())
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (id(first), id(last)) {
        (Some(first), Some(last)) if first <= last => Ok((first, last)),
        _ => Err("pci is neither a device id (\"0x2330\") nor a range of them (\"0x2330-0x233f\")".to_owned()),
    }
}

/// Names that begin with these words.
fn product(name: &str, capability: ComputeCapability) -> Result<Product, String> {
    let words: Vec<&str> = name.split_whitespace().skip_while(|word| word.eq_ignore_ascii_case("NVIDIA")).collect();
    let Some((model, family)) = words.split_last() else { return Err("its name is empty".to_owned()) };
    if words.iter().any(|word| word.contains(['-', '/'])) {
        return Err("write its name as far as the first \"-\" or \"/\"".to_owned());
    }
    let [family, models] = [family.join(" "), (*model).to_owned()].map(Cow::Owned);
    Ok(Product { family, models, with: Cow::Borrowed(""), capability })
}

/// Puts a range among the others; of those it lies over only what is outside of it stays.
fn carve(chips: &mut Vec<Chip>, chip: Chip) {
    let mut kept = Vec::with_capacity(chips.len() + 2);
    for other in chips.drain(..) {
        if other.last < chip.first || other.first > chip.last {
            kept.push(other);
            continue;
        }
        // neither overflows: there is an id on that side
        if other.first < chip.first {
            kept.push(Chip { last: chip.first - 1, ..other.clone() });
        }
        if other.last > chip.last {
            kept.push(Chip { first: chip.last + 1, ..other });
        }
    }
    let at = kept.partition_point(|other| other.first < chip.first);
    kept.insert(at, chip);
    *chips = kept;
}
