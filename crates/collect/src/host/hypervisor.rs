//! Detects whether this machine is virtual.

use diagnose::facts::Known;

use crate::file::read;

/// Returns its name if known, `Some("unknown")` if only its presence is known, `None` on bare metal.
pub(crate) fn hypervisor() -> Known<Option<String>> {
    let cpuinfo = match read("/proc/cpuinfo") {
        Ok(text) => text,
        Err(why) => return Known::Unknown(why),
    };
    let vendor = ["/sys/class/dmi/id/sys_vendor", "/sys/hypervisor/type"]
        .iter()
        .find_map(|path| read(path).ok().and_then(|text| name(text.trim())));
    match (flagged(&cpuinfo), vendor) {
        (_, Some(name)) => Known::Is(Some(name.to_owned())),
        (Some(true), None) => Known::Is(Some("unknown".to_owned())),
        (Some(false), None) => Known::Is(None),
        (None, None) => Known::unknown("/proc/cpuinfo has no such flag on this kind of processor"),
    }
}

/// Whether the processor says so; `None` where processors have no such flag (Arm).
fn flagged(cpuinfo: &str) -> Option<bool> {
    let flags = cpuinfo.lines().find_map(|line| line.strip_prefix("flags"))?;
    Some(flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"))
}

/// Vendors who sell nothing but virtual machines, by what their firmware says.
fn name(vendor: &str) -> Option<&'static str> {
    const NAMES: &[(&str, &str)] = &[
        ("Amazon EC2", "amazon"),
        ("Google", "google"),
        ("QEMU", "qemu"),
        ("Xen", "xen"),
        ("xen", "xen"),
        ("VMware", "vmware"),
        ("innotek", "virtualbox"),
        ("DigitalOcean", "digitalocean"),
        ("Hetzner", "hetzner"),
        ("OpenStack", "openstack"),
    ];
    NAMES.iter().find(|(start, _)| vendor.starts_with(start)).map(|&(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_tells_or_cannot() {
        assert_eq!(flagged("model name\t: x\nflags\t\t: fpu hypervisor lahf_lm\n"), Some(true));
        assert_eq!(flagged("flags\t\t: fpu hypervisory\n"), Some(false));
        assert_eq!(flagged("Features\t: fp asimd\n"), None);
        assert_eq!(name("Amazon EC2"), Some("amazon"));
        assert_eq!(name("Dell Inc."), None);
    }
}
