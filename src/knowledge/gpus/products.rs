//! Product names as the driver gives them, and what they run.
//!
//! The names of open-gpu-kernel-modules 595.45.04 (README, df1c9a3d) from Turing on, those of the PCI ID data base
//! (2023.04.11) before, with NVIDIA's table of CUDA GPUs; names of virtual GPUs from the vGPU documentation
//! (`A40-8Q`, `GRID V100D-8Q`). Read 2026-11. "NVIDIA" and, before data-centre boards, "Tesla" and "GRID" may stand
//! in front. What is sold under one name with two chips is not here, or told by a further word.

use std::borrow::Cow;

use super::cc;
use crate::model::ComputeCapability;
use crate::model::knowledge::Product;

const fn product(family: &'static str, models: &'static str, (major, minor): (u8, u8)) -> Product {
    with(family, models, "", (major, minor))
}

const fn with(family: &'static str, models: &'static str, word: &'static str, (major, minor): (u8, u8)) -> Product {
    Product {
        family: Cow::Borrowed(family),
        models: Cow::Borrowed(models),
        with: Cow::Borrowed(word),
        capability: cc(major, minor),
    }
}

/// The first that fits counts.
pub(crate) const PRODUCTS: &[Product] = &[
    // data centre; the second letters are those of virtual GPUs (V100D: 32 GB, A100X: SXM)
    product("", "B300 GB300", (10, 3)),
    product("", "B200 GB200", (10, 0)),
    product("", "GB10", (12, 1)),
    product("", "H100 H100XM H100L H100XL H200 H200X H800 H800XM H20 GH200 GH200L", (9, 0)),
    product("", "L4 L2 L20 L40 L40S L40G", (8, 9)),
    product("", "A2 A10 A10G A10M A16 A40", (8, 6)),
    product("", "A100 A100D A100X A100DX A800 A800D A800DX AX800 A30 A30X", (8, 0)),
    product("", "T4 T4G T10 T40", (7, 5)),
    product("", "V100 V100S V100D V100X V100DX V100L V100FX PG500 PG503", (7, 0)),
    product("", "P4 P6 P10 P40", (6, 1)),
    product("", "P100 P100X P100C", (6, 0)),
    product("", "M4 M6 M40 M60", (5, 2)),
    product("", "M10", (5, 0)),
    product("", "K80", (3, 7)),
    product("", "K20 K20X K20Xm K20c K20m K20s K40 K40c K40m K40s K40st K40t K40d", (3, 5)),
    product("", "K1 K2 K8 K10 K340 K520", (3, 0)),
    // workstation
    with("RTX PRO", "500 1000 2000 3000 4000 4500 5000 6000", "Blackwell", (12, 0)),
    product("RTX", "6000D", (12, 0)),
    with("RTX", "500 1000 2000 2000E 3000 3500 4000 4500 5000 5880 6000", "Ada", (8, 9)),
    product("RTX", "A400 A500 A1000 A2000 A3000 A4000 A4000H A4500 A5000 A5500 A6000", (8, 6)),
    product("", "RTXA5000 RTXA5500 RTXA6000", (8, 6)),
    product("", "RTX6000P RTX8000P RTX6000 RTX8000", (7, 5)),
    product("Quadro RTX", "3000 4000 5000 6000 8000", (7, 5)),
    product("Quadro", "T400 T500 T600 T1000 T2000", (7, 5)),
    product("", "T400 T400E T500 T550 T600 T1000 T1200", (7, 5)),
    product("Quadro", "GV100", (7, 0)),
    product("Quadro", "GP100", (6, 0)),
    product("Quadro", "P400 P500 P520 P600 P620 P1000 P2000 P2200 P3000 P3200 P4000 P4200 P5000 P5200 P6000", (6, 1)),
    product("Quadro", "M2000 M2200 M3000M M4000 M4000M M5000 M5000M M5500 M6000", (5, 2)),
    product("Quadro", "K620 K1200 K2200 K620M K2200M M500M M520 M600M M620 M1000M M1200 M2000M", (5, 0)),
    product("Quadro", "K6000 K5200 K510M K610M", (3, 5)),
    product("Quadro", "410 4100 K420 K500M K600 K1000M K1100M K2000 K2000D K2000M K2100M K3000M K3100M", (3, 0)),
    product("Quadro", "K4000 K4000M K4100M K4200 K5000 K5000M K5100M", (3, 0)),
    // GeForce
    product("GeForce RTX", "5050 5060 5070 5080 5090", (12, 0)),
    product("GeForce RTX", "4050 4060 4070 4080 4090", (8, 9)),
    // "RTX 3050 A Laptop GPU" is an AD106 or AD107, every other 3050 is not
    with("GeForce RTX", "3050", "A", (8, 9)),
    product("GeForce RTX", "2050 3050 3050Ti 3060 3070 3080 3090", (8, 6)),
    product("GeForce RTX", "2060 2070 2080", (7, 5)),
    product("GeForce GTX", "1630 1650 1660", (7, 5)),
    product("GeForce", "MX570", (8, 6)),
    product("GeForce", "MX450 MX550", (7, 5)),
    product("GeForce GTX", "1050 1060 1070 1080", (6, 1)),
    product("GeForce GT", "1010 1030", (6, 1)),
    product("GeForce", "MX150 MX230 MX250 MX330 MX350", (6, 1)),
    product("GeForce", "MX110 MX130", (5, 0)),
    product("GeForce GTX TITAN", "X", (5, 2)),
    product("GeForce GTX TITAN", "Black Z", (3, 5)),
    product("GeForce GTX", "950 960 970 980 965M 970M 980M", (5, 2)),
    product("GeForce GTX", "745 750 850M 950M 960M", (5, 0)),
    product("GeForce GTX", "780 TITAN", (3, 5)),
    product("GeForce GTX", "650 660 670 680 690 760 770 660M 670MX 675MX 680M 680MX 760M 765M 770M 780M", (3, 0)),
    // Titan
    product("TITAN", "RTX", (7, 5)),
    product("TITAN", "V", (7, 0)),
    product("TITAN", "Xp", (6, 1)),
    with("TITAN", "X", "(Pascal)", (6, 1)),
    // mining
    product("CMP", "170HX", (8, 0)),
    product("CMP", "70HX 90HX", (8, 6)),
    product("CMP", "30HX 40HX 50HX", (7, 5)),
    // Jetson, as nvgpu names its GPU
    product("", "Thor", (11, 0)),
    product("", "Orin", (8, 7)),
    product("", "Xavier", (7, 2)),
];

/// What may stand before the model of a data-centre board.
const BEFORE: [&str; 4] = ["NVIDIA", "Tesla", "GRID", "Tegra"];

/// The capability of a name.
pub(super) fn capability(products: &[Product], name: &str) -> Option<ComputeCapability> {
    let named = without(name.trim(), "NVIDIA");
    let bare = BEFORE.iter().fold(named, |rest, word| without(rest, word));
    products
        .iter()
        .find(|product| fits(product, if product.family.is_empty() { bare } else { named }))
        .map(|p| p.capability)
}

fn fits(product: &Product, name: &str) -> bool {
    let Some(rest) = behind(name, &product.family) else { return false };
    let mut words = rest.split([' ', '-', '/']);
    let model = words.next().unwrap_or_default();
    product.models.split(' ').any(|known| known.eq_ignore_ascii_case(model))
        && (product.with.is_empty() || words.any(|word| word.eq_ignore_ascii_case(&product.with)))
}

/// What stands behind these words and a blank.
fn behind<'a>(name: &'a str, words: &str) -> Option<&'a str> {
    if words.is_empty() {
        return Some(name);
    }
    let (start, rest) = name.split_at_checked(words.len())?;
    if start.eq_ignore_ascii_case(words) { rest.strip_prefix(' ') } else { None }
}

/// Without this word in front.
pub(super) fn without<'a>(name: &'a str, word: &str) -> &'a str {
    behind(name, word).unwrap_or(name)
}
