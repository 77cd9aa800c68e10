//! Root file systems made against whoever looks for frameworks and libraries of CUDA: the hook ends in time, stays
//! small, and starts the container.

use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::stat::{Mode, SFlag, makedev, mknod};
use nix::unistd::mkfifo;

use super::world::Part::{Compat, Env};
use super::world::{A100, H100, Laid, Machine, PACKAGES, Way};
use crate::support::{link, needs, write};

/// The hook decides after one second with what it has; a debug build on a busy machine takes longer to say so.
const IN_TIME: Duration = Duration::from_millis(1800);
/// Resident memory in kilobytes.
const HOSTILE: u64 = 32 << 10;

/// A trap's name, and how it is set in a file's place.
type Trap<'a> = (&'a str, &'a dyn Fn(&Path));

const MACHINE: Machine = Machine { driver: "550.163.01", gpu: H100, toolkit: "1.17.8" };

fn check_starts(what: &str, laid: &Laid) {
    let began = Instant::now();
    let run = laid.scene.hook().stdin(laid.bundle.state(1));
    let (ended, kilobytes) = run.end_with_memory(&laid.scene.at(""));
    let took = began.elapsed();
    assert_eq!(ended.code(), 0, "{what}: {ended:?}");
    assert!(!ended.stderr.contains("panicked"), "{what}: {ended:?}");
    assert!(took < IN_TIME, "{what}: {took:?}");
    assert!(kilobytes <= HOSTILE, "{what}: {kilobytes} kB resident");
    let logged = laid.scene.logged();
    let line = logged.last().expect("a line");
    assert_ne!(line["verdict"], "fail", "{what}: {line}");
}

#[test]
fn a_hundred_thousand_names_hold_nothing_up() {
    if !needs::root() {
        return;
    }
    // made once and moved: they take longer to make than to look at
    let laid = MACHINE.with(Way::Cdi, &[]);
    let many = laid.bundle.rootfs().join("many");
    std::fs::create_dir_all(&many).expect("a directory");
    for number in 0..100_000 {
        let name =
            if number % 2 == 0 { format!("torch-2.{number}.dist-info") } else { format!("libcudart.so.{number}") };
        std::fs::File::create(many.join(name)).expect("a file");
    }
    for place in [PACKAGES, "usr/local/lib", "usr/local", "usr/local/cuda/compat", "opt", "opt/conda/lib"] {
        let next = laid.bundle.rootfs().join(place);
        let _ = std::fs::remove_dir_all(&next);
        std::fs::create_dir_all(next.parent().expect("a parent")).expect("directories");
        std::fs::rename(&many, &next).expect("a directory's name");
        check_starts(place, &laid);
        std::fs::rename(&next, &many).expect("a directory's name");
    }
}

#[test]
fn a_version_file_that_is_none_holds_nothing_up() {
    if !needs::root() {
        return;
    }
    let node = |kind: SFlag, major, minor| {
        move |at: &Path| mknod(at, kind, Mode::from_bits_truncate(0o666), makedev(major, minor)).expect("a node")
    };
    let (zero, disk) = (node(SFlag::S_IFCHR, 1, 5), node(SFlag::S_IFBLK, 7, 0));
    let sparse = |at: &Path| std::fs::File::create(at).and_then(|file| file.set_len(1 << 30)).expect("a sparse file");
    let traps: [Trap<'_>; 7] = [
        ("a FIFO", &|at| mkfifo(at, Mode::from_bits_truncate(0o666)).expect("a FIFO")),
        ("a character device", &zero),
        ("a block device", &disk),
        ("a link to the kernel's log", &|at| link("/proc/kmsg", at)),
        ("a link to itself", &|at| link("version.py", at)),
        ("a sparse file of 1 GiB", &sparse),
        ("a directory", &|at| std::fs::create_dir(at).expect("a directory")),
    ];
    for (what, set) in traps {
        let laid = MACHINE.with(Way::Cdi, &[]);
        let packages = laid.bundle.rootfs().join(PACKAGES);
        for (package, file) in [
            ("torch-2.9.0", "torch/version.py"),
            ("paddlepaddle_gpu-3.2.2", "paddle/version/__init__.py"),
            ("paddlepaddle_gpu-2.0.0", "paddle/version.py"),
            ("tensorflow-2.18.0", "tensorflow/python/platform/build_info.py"),
        ] {
            write(&packages.join(format!("{package}.dist-info/METADATA")), "");
            let at = packages.join(file);
            std::fs::create_dir_all(at.parent().expect("a parent")).expect("directories");
            set(&at);
        }
        check_starts(what, &laid);
    }
}

/// A 64-bit ELF header that says of its sections and segments what it is told.
fn elf(offset: u64, size: u16, count: u16) -> Vec<u8> {
    let mut header = vec![0x7f, b'E', b'L', b'F', 2, 1, 1];
    header.resize(16, 0);
    header.extend([3, 0, 62, 0, 1, 0, 0, 0]);
    header.extend([0; 8]);
    header.extend(offset.to_le_bytes()); // segments
    header.extend(offset.to_le_bytes()); // sections
    header.extend([0, 0, 0, 0, 64, 0]);
    for field in [size, count, size, count, count.wrapping_sub(1)] {
        header.extend(field.to_le_bytes());
    }
    header
}

#[test]
fn a_libcuda_of_absurd_tables_holds_nothing_up() {
    if !needs::root() {
        return;
    }
    let full: Vec<u8> = [elf(64, 64, u16::MAX), vec![0xff; 4 << 20]].concat();
    let zeroes: Vec<u8> = [elf(64, 64, u16::MAX), vec![0; 4 << 20]].concat();
    let files: [(&str, Vec<u8>); 8] = [
        ("tables beyond the end", elf(u64::MAX, 64, u16::MAX)),
        ("tables that wrap", elf(u64::MAX - 63, 64, 2)),
        ("tables over the header", elf(0, 64, u16::MAX)),
        ("entries of no size", elf(64, 0, u16::MAX)),
        ("entries of all sizes", elf(64, u16::MAX, u16::MAX)),
        ("entries that say everything", full),
        ("entries that say nothing", zeroes),
        ("only its beginning", elf(64, 64, 4)[..20].to_vec()),
    ];
    let machine = Machine { driver: "575.57.08", gpu: A100, ..MACHINE };
    for (what, bytes) in files {
        for way in [Way::Cdi, Way::CdiWithCompat] {
            let laid = machine.with(way, &[Env("CUDA_VERSION=12.9.1"), Compat("13.0", "580.82.07")]);
            write(&laid.bundle.rootfs().join("usr/local/cuda-13.0/compat/libcuda.so.580.82.07"), &bytes);
            check_starts(what, &laid);
        }
    }
    let laid = machine.with(Way::CdiWithCompat, &[Env("CUDA_VERSION=12.9.1"), Compat("13.0", "580.82.07")]);
    let at = laid.bundle.rootfs().join("usr/local/cuda-13.0/compat/libcuda.so.580.82.07");
    let file = std::fs::File::options().write(true).open(&at).expect("a file");
    std::io::Write::write_all(&mut &file, &elf(1 << 40, 64, u16::MAX)).expect("a header");
    file.set_len(1 << 41).expect("a sparse file");
    check_starts("2 TiB", &laid);
    std::fs::remove_file(&at).expect("a file");
    mkfifo(&at, Mode::from_bits_truncate(0o666)).expect("a FIFO");
    check_starts("a FIFO", &laid);
}

#[test]
fn a_loaders_configuration_of_ten_thousand_files_holds_nothing_up() {
    if !needs::root() {
        return;
    }
    let laid = MACHINE.with(Way::Cdi, &[Env("CUDA_VERSION=12.4.1"), Compat("12.8", "570.86.15")]);
    let etc = laid.bundle.rootfs().join("etc");
    write(&etc.join("ld.so.conf"), "include /etc/ld.so.conf.d/*.conf\n");
    for number in 0..10_000 {
        let text = format!("/opt/{number}\n/usr/local/cuda/compat\ninclude /etc/ld.so.conf.d/*.conf\n");
        write(&etc.join(format!("ld.so.conf.d/{number:05}.conf")), text);
    }
    check_starts("10,000 files", &laid);
    let long = format!("include {}\n", "/etc/ld.so.conf.d/*.conf ".repeat(10_000));
    write(&etc.join("ld.so.conf"), long);
    check_starts("a line that includes them 10,000 times", &laid);
}
