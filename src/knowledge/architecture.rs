//! Names of processors: the kernel's, and those of the OCI image specification (1.1, `GOARCH`).

/// The name that the image specification uses, for either name.
pub fn oci_name(name: &str) -> &str {
    match name {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "i386" | "i486" | "i586" | "i686" => "386",
        "armv6l" | "armv7l" | "armv8l" | "armhf" => "arm",
        other => other,
    }
}

/// Programs for one run on the other without emulation: the same, or its 32-bit forerunner.
pub fn runs_on(image: &str, machine: &str) -> bool {
    let (image, machine) = (oci_name(image), oci_name(machine));
    image == machine || matches!((image, machine), ("386", "amd64") | ("arm", "arm64"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_names_mean_the_same_and_32_bit_runs_on_64() {
        for (image, machine, runs) in [
            ("amd64", "x86_64", true),
            ("arm64", "aarch64", true),
            ("386", "x86_64", true),
            ("amd64", "aarch64", false),
            ("arm64", "x86_64", false),
            ("amd64", "i686", false),
            ("ppc64le", "ppc64le", true),
        ] {
            assert_eq!(runs_on(image, machine), runs, "{image} on {machine}");
        }
    }
}
