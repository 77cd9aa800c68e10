//! The GPUs that the driver knows.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Instant;

use super::look::{fact, names_if_there};
use super::pci::order;
use crate::collect::child;
use crate::collect::tree::Tree;
use crate::model::host::{Driver, Gpu, Platform};
use crate::model::{Host, Observed, Unseen};

const GPUS: &str = "/proc/driver/nvidia/gpus";
const LIMIT: usize = 256;
/// `information` has about 400 bytes.
const INFORMATION: usize = 1 << 14;

/// The GPUs by their directories, in the order of their addresses, which wakes none of them.
pub(super) fn names(tree: &Tree, platform: Platform, driver: &Driver) -> Observed<Vec<Gpu>> {
    fact("host.gpus", list(tree, platform, driver))
}

fn list(tree: &Tree, platform: Platform, driver: &Driver) -> Result<Vec<Gpu>, Unseen> {
    let listed = names_if_there(tree, GPUS, LIMIT)?;
    let mut addresses = listed.clone().unwrap_or_default();
    if addresses.is_empty() {
        return match (platform, listed) {
            (Platform::Wsl, _) => Err(Unseen::new(GPUS, "under WSL no file lists the GPUs")),
            (Platform::Tegra, _) => Err(Unseen::new(GPUS, "on Jetson no file lists the integrated GPU")),
            (Platform::Native, Some(_)) => Ok(Vec::new()),
            (Platform::Native, None) => absent(driver),
        };
    }
    addresses.sort_by_key(|address| order(address));
    let gpu = |(index, pci): (u32, String)| Gpu { index, pci, ..Gpu::default() };
    Ok((0..).zip(addresses).map(gpu).collect())
}

/// The driver makes the directory when it is loaded, so that its absence proves something only where
/// the driver is known not to be.
fn absent(driver: &Driver) -> Result<Vec<Gpu>, Unseen> {
    match driver.version.known() {
        Ok(None) => Ok(Vec::new()),
        Ok(Some(_)) => Err(Unseen::new(GPUS, "absent, though nvidia is loaded")),
        Err(unknown) => Err(Unseen::new(GPUS, format!("absent, and {} is not known", unknown.fact))),
    }
}

/// Adds UUID, minor, name and exclusion from each GPU's `information` to the GPUs of `host`.
///
/// On a living machine a child reads them: the driver wakes a sleeping GPU for it, which takes seconds,
/// and one that hangs blocks the reader for good. What has not come by the deadline stays `None`.
pub fn gpu_identities(tree: &Tree, host: &Host, deadline: Instant) -> Observed<Vec<Gpu>> {
    let Observed::Known(mut gpus) = host.gpus.clone() else { return host.gpus.clone() };
    let read = |gpu: &Gpu| tree.read_text(&format!("{GPUS}/{}/information", gpu.pci), INFORMATION).ok().flatten();
    if host.laid_out {
        for gpu in &mut gpus {
            add(gpu, &read(gpu).unwrap_or_default());
        }
    } else if !gpus.is_empty() {
        let told = child::run(deadline, INFORMATION * LIMIT, |out| {
            for gpu in &gpus {
                let text = read(gpu).unwrap_or_default();
                if out.write_all(format!("{}\n{text}\0", gpu.pci).as_bytes()).is_err() {
                    break;
                }
            }
        });
        let told = told.map(|answer| String::from_utf8_lossy(&answer.bytes).into_owned()).unwrap_or_default();
        // the last piece is what stands behind the last zero: nothing, or half an answer
        let whole = told.rsplit_once('\0').map_or("", |(whole, _)| whole);
        let texts: BTreeMap<&str, &str> = whole.split('\0').filter_map(|piece| piece.split_once('\n')).collect();
        for gpu in &mut gpus {
            let text = texts.get(gpu.pci.as_str()).copied().unwrap_or_default();
            add(gpu, text);
        }
    }
    number(&mut gpus);
    Observed::Known(gpus)
}

fn add(gpu: &mut Gpu, information: &str) {
    for line in information.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match name.trim() {
            "Model" => gpu.name = Some(value.to_owned()).filter(|v| !v.is_empty() && v != "Unknown"),
            // the driver shows question marks until it has woken the GPU
            "GPU UUID" => gpu.uuid = Some(value.to_owned()).filter(|v| !v.is_empty() && !v.contains('?')),
            "Device Minor" => gpu.minor = value.parse().ok(),
            // "Blacklisted" before driver 455
            "GPU Excluded" | "Blacklisted" => gpu.excluded = value.eq_ignore_ascii_case("yes"),
            _ => {}
        }
    }
}

/// NVML, and with it the container stack, does not count excluded GPUs; here they come last.
fn number(gpus: &mut [Gpu]) {
    gpus.sort_by_key(|gpu| (gpu.excluded, order(&gpu.pci)));
    for (index, gpu) in (0..).zip(gpus) {
        gpu.index = index;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::look::testing::Laid;
    use super::*;

    fn information(uuid: &str, minor: u32, excluded: &str) -> String {
        format!(
            "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 92\nGPU UUID: \t {uuid}\nVideo BIOS: \t 96.00.74.00.01\nBus Location: \t 0000:65:00.0\nDevice Minor: \t {minor}\nGPU Firmware: \t 550.163.01\nGPU Excluded:\t {excluded}\n"
        )
    }

    fn machine() -> Laid {
        let laid = Laid::out(&[]);
        let uuid = "GPU-0000000a-0000-4000-8000-00000000000";
        laid.write(&format!("{GPUS}/10000:01:00.0/information"), information(&format!("{uuid}3"), 2, "No"));
        laid.write(
            &format!("{GPUS}/0000:65:00.0/information"),
            information("GPU-????????-????-????-????-????????????", 0, "No"),
        );
        laid.write(&format!("{GPUS}/0000:05:00.0/information"), information(&format!("{uuid}1"), 1, "Yes"));
        laid
    }

    fn host(tree: &Tree, laid_out: bool) -> Host {
        Host { laid_out, gpus: names(tree, Platform::Native, &Driver::default()), ..Host::default() }
    }

    #[test]
    fn gpus_come_in_the_order_of_their_addresses() {
        let host = host(&machine().tree(), true);
        let seen = host.gpus.seen().unwrap();
        let addresses: Vec<_> = seen.iter().map(|g| (g.index, g.pci.as_str())).collect();
        assert_eq!(addresses, [(0, "0000:05:00.0"), (1, "0000:65:00.0"), (2, "10000:01:00.0")]);
        assert!(seen.iter().all(|g| g.uuid.is_none() && g.minor.is_none()));
    }

    #[test]
    fn identities_are_the_same_whoever_reads_them() {
        let laid = machine();
        let tree = laid.tree();
        for laid_out in [true, false] {
            let host = host(&tree, laid_out);
            let gpus = gpu_identities(&tree, &host, Instant::now() + Duration::from_secs(20));
            let gpus = gpus.seen().unwrap();
            let told: Vec<_> =
                gpus.iter().map(|g| (g.index, g.pci.as_str(), g.minor, g.uuid.is_some(), g.excluded)).collect();
            let expected = [
                (0, "0000:65:00.0", Some(0), false, false),
                (1, "10000:01:00.0", Some(2), true, false),
                (2, "0000:05:00.0", Some(1), true, true),
            ];
            assert_eq!(told, expected);
            assert_eq!(gpus[0].name.as_deref(), Some("NVIDIA H100 80GB HBM3"));
        }
    }

    #[test]
    fn an_absent_directory_proves_only_that_there_is_no_driver() {
        let laid = Laid::out(&[]);
        let tree = laid.tree();
        let mut driver = Driver::default();
        assert_eq!(names(&tree, Platform::Native, &driver), Observed::Known(Vec::new()));
        assert!(names(&tree, Platform::Wsl, &driver).known().is_err());
        driver.version = Observed::Known(Some("550.163.01".parse().unwrap()));
        assert!(names(&tree, Platform::Native, &driver).known().is_err());
        laid.directory(GPUS);
        assert_eq!(names(&tree, Platform::Native, &driver), Observed::Known(Vec::new()));
        assert!(names(&tree, Platform::Tegra, &driver).known().is_err());
    }
}
