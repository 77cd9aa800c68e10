//! What containerd's databases say: which images there are, and where layers lie unpacked.

use super::bolt::{self, Value};
use crate::collect::image::source::machine::Machine;
use crate::model::Unseen;

/// Images of one machine.
const MOST_IMAGES: usize = 65_536;
/// Where a snapshot that a layer is in is complete (containerd, `snapshots.KindCommitted`).
const COMMITTED: u8 = 3;

/// An image, as a namespace names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) namespace: String,
    pub(super) name: String,
    /// The digest of its manifest or index.
    pub(super) target: String,
}

fn database<T>(
    machine: &Machine<'_>,
    path: &str,
    read: impl Fn(&bolt::Snapshot<'_>) -> Result<T, bolt::Damaged>,
) -> Result<Option<T>, Unseen> {
    let Some(file) = machine.files().file(path)? else { return Ok(None) };
    bolt::read(path, &file, read).map(Some)
}

fn metadata(root: &str) -> String {
    format!("{root}/io.containerd.metadata.v1.bolt/meta.db")
}

/// All images below a root; `None`: no containerd is there.
pub(super) fn images(machine: &Machine<'_>, root: &str) -> Result<Option<Vec<Record>>, Unseen> {
    database(machine, &metadata(root), |database| {
        let mut records = Vec::new();
        let Some(version) = database.bucket(&database.root(), &[b"v1"])? else { return Ok(records) };
        database.each(&version, |namespace, value| {
            let Value::Bucket(inside) = value else { return Ok(()) };
            let Some(images) = database.bucket(&inside, &[b"images"])? else { return Ok(()) };
            database.each(&images, |name, value| {
                let Value::Bucket(image) = value else { return Ok(()) };
                let Some(target) = database.bucket(&image, &[b"target"])? else { return Ok(()) };
                let digest = database.bytes(&target, b"digest")?.unwrap_or_default();
                if records.len() < MOST_IMAGES {
                    records.push(Record { namespace: text(namespace), name: text(name), target: text(&digest) });
                }
                Ok(())
            })
        })?;
        Ok(records)
    })
    .map(|found| {
        found.map(|mut records| {
            // Kubernetes' own, where several have a name
            records.sort_by_key(|record| record.namespace != "k8s.io");
            records
        })
    })
}

/// The directories of a stack of layers in a namespace, bottom to top; `None`: not all of it is unpacked.
pub(super) fn unpacked(
    machine: &Machine<'_>,
    root: &str,
    namespace: &str,
    chain_ids: &[String],
) -> Result<Option<Vec<String>>, Unseen> {
    let snapshots: [&[u8]; 4] = [b"v1", namespace.as_bytes(), b"snapshots", b"overlayfs"];
    let names = database(machine, &metadata(root), |database| {
        let Some(all) = database.bucket(&database.root(), &snapshots)? else { return Ok(Vec::new()) };
        let mut names = Vec::new();
        for chain in chain_ids {
            let Some(snapshot) = database.bucket(&all, &[chain.as_bytes()])? else { return Ok(Vec::new()) };
            let Some(name) = database.bytes(&snapshot, b"name")? else { return Ok(Vec::new()) };
            names.push(name);
        }
        Ok(names)
    })?
    .unwrap_or_default();
    if names.len() != chain_ids.len() {
        return Ok(None);
    }
    let directory = format!("{root}/io.containerd.snapshotter.v1.overlayfs");
    let numbers = database(machine, &format!("{directory}/metadata.db"), |database| {
        let Some(all) = database.bucket(&database.root(), &[b"v1", b"snapshots"])? else { return Ok(Vec::new()) };
        let mut numbers = Vec::new();
        for name in &names {
            let Some(snapshot) = database.bucket(&all, &[name])? else { return Ok(Vec::new()) };
            let is_complete = database.bytes(&snapshot, b"kind")?.as_deref() == Some(&[COMMITTED]);
            let id = database.bytes(&snapshot, b"id")?.as_deref().and_then(number);
            let Some(id) = id.filter(|_| is_complete) else { return Ok(Vec::new()) };
            numbers.push(id);
        }
        Ok(numbers)
    })?
    .unwrap_or_default();
    let paths = || numbers.iter().map(|number| format!("{directory}/snapshots/{number}/fs")).collect();
    Ok((numbers.len() == chain_ids.len()).then(paths))
}

/// Go's `binary.Uvarint`: seven bits a byte, the lowest first.
fn number(bytes: &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for (byte, shift) in bytes.iter().zip((0..63).step_by(7)) {
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_of_seven_bits_a_byte() {
        assert_eq!((number(&[5]), number(&[0xac, 2]), number(&[]), number(&[0x80])), (Some(5), Some(300), None, None));
        assert_eq!(number(&[0xff; 20]), None);
    }
}
