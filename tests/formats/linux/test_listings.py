"""What Linux' commands list becomes facts."""

from __future__ import annotations

import pytest

from leadline.formats.linux.listings import by_disk, cpu_facts, filesystems, holder, sysctl_facts

MOUNTS = [
    "/dev/nvme0n1p1 on /data type xfs (rw,noatime)",
    "/dev/sdc1 on /a b type ext4 (rw)",
    "/dev/sdc2 on /c type ext4 (ro)",
]
SIZES = [
    "Filesystem 1M-blocks Used Available Use% Mounted on",
    "/dev/nvme0n1p1 100 60 30 67% /data",
    "tmpfs 10 0 10 0% /tmp",
]


def test_filesystems_of_whole_disks_and_of_partitions() -> None:
    found = filesystems(MOUNTS, SIZES, {})
    assert [(disk, fs.point, fs.free_pct) for disk, fs in by_disk(found)] == [
        ("nvme0n1", "/data", 33.33),
        ("sdc1", "/a b", None),
        ("sdc2", "/c", None),
    ]


def test_sizes_no_disk_has_are_left_out() -> None:
    huge = "9" * 400
    (found,) = filesystems(MOUNTS[:1], [f"/dev/nvme0n1p1 1 {huge} {huge} 67% /data"], {})
    assert found.free_pct is None


@pytest.mark.parametrize(
    ("path", "point"), [("/data/db/", "/data"), ("/data", "/data"), ("/data2/db", None), ("/tmp/x", None)]
)
def test_the_filesystem_of_a_folder(path: str, point: str | None) -> None:
    found = holder(filesystems(MOUNTS, SIZES, {}), path)
    assert (None if found is None else found.point) == point


def test_processors_without_lscpu() -> None:
    lines = [
        f"{name}\t: {value}" for cpu in "0123" for name, value in (("processor", cpu), ("flags", "fpu hypervisor"))
    ]
    assert cpu_facts(lines) == {"cpu_count": 4, "virtualisation": "other"}
    assert cpu_facts(["flags : fpu vme", "processor : 0"])["virtualisation"] == "none"
    assert cpu_facts(["lscpu: command not found"]) == {}


@pytest.mark.parametrize(
    ("vendor", "kind"),
    [("VMware", "vmware"), ("KVM", "kvm"), ("Microsoft", "hyperv"), ("Xen", "xen"), ("bhyve", "other")],
)
def test_hypervisors(vendor: str, kind: str) -> None:
    assert cpu_facts([f"Hypervisor vendor:   {vendor}"]) == {"virtualisation": kind}


def test_kernel_settings_that_are_kept() -> None:
    lines = [
        "vm.swappiness = 1",
        "kernel.hostname = db01",
        "kernel.sem = 250\t32000",
        'sysctl: permission denied on key "x"',
    ]
    assert sysctl_facts(lines) == {"vm.swappiness": 1, "kernel.sem": "250 32000"}
