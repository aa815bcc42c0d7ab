"""Use case: record what a Linux machine can say of itself that no recording says: one document for the diagnosis.

Everything is read from files under a root folder, as the user it runs as. Only what is listed here leaves the machine:
no command lines (of the kernel's only the options that switch fixes of the processor), no environment, no addresses, no
configuration texts. The importer ``facts`` reads the document back.
"""

from __future__ import annotations

import ctypes
import platform
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from leadline.app.read.block_devices import FreeShare, block_devices, free_share_pct, mounts
from leadline.app.read.cpu_vulnerabilities import cpu_vulnerabilities
from leadline.app.read.databases import databases
from leadline.app.read.machine_files import Tree, count_of, whole_number
from leadline.app.read.nics import AskNic, ask_driver, nics
from leadline.core.model.errors import InputError

FACTS_VERSION = 1

_SYSCTL = tuple(
    """
    fs.aio-max-nr fs.aio-nr fs.file-max kernel.numa_balancing kernel.sched_autogroup_enabled kernel.sem
    kernel.sched_migration_cost_ns kernel.shmall kernel.shmmax kernel.shmmni kernel.timer_migration
    net.core.netdev_max_backlog net.core.rmem_max net.core.somaxconn net.core.wmem_max
    net.ipv4.tcp_congestion_control net.ipv4.tcp_keepalive_intvl net.ipv4.tcp_keepalive_probes
    net.ipv4.tcp_keepalive_time net.ipv4.tcp_rmem net.ipv4.tcp_slow_start_after_idle net.ipv4.tcp_wmem
    vm.dirty_background_bytes vm.dirty_background_ratio vm.dirty_bytes vm.dirty_expire_centisecs vm.dirty_ratio
    vm.dirty_writeback_centisecs vm.hugetlb_shm_group vm.max_map_count vm.min_free_kbytes vm.nr_hugepages
    vm.nr_overcommit_hugepages vm.overcommit_kbytes vm.overcommit_memory vm.overcommit_ratio vm.stat_interval
    vm.swappiness vm.vfs_cache_pressure vm.watermark_scale_factor vm.zone_reclaim_mode
    """.split()
)
_MODULES = ("vmw_pvscsi", "vmxnet3", "vmw_balloon", "nvme", "nvme_core", "scsi_mod", "virtio_blk", "virtio_net")
_MODULE_VALUE = re.compile(r"[A-Za-z0-9_.,:+-]{1,64}")
# The kernel keeps 15 characters of a process's name.
_TIME_SERVICES = {
    "chronyd": "chronyd",
    "ntpd": "ntpd",
    "systemd-timesyn": "systemd-timesyncd",
    "ptp4l": "ptp4l",
    "phc2sys": "phc2sys",
}
_TOOLS = frozenset({"vmtoolsd", "qemu-ga"})
# What the firmware's maker or product says of the hypervisor; the first that fits counts.
_MAKERS = (
    ("vmware", "vmware"),
    ("qemu", "kvm"),
    ("kvm", "kvm"),
    ("amazon ec2", "kvm"),
    ("google compute engine", "kvm"),
    ("openstack", "kvm"),
    ("red hat", "kvm"),
    ("virtual machine", "hyperv"),
    ("xen", "xen"),
    ("innotek", "other"),
    ("virtualbox", "other"),
    ("parallels", "other"),
)
_UNIT = re.compile(r"[A-Za-z0-9:_.@\\-]{1,128}\.(?:service|timer)")
_TOKEN_COEFFICIENT_MS = 650
_TIME_ERROR = 5  # what adjtimex returns while the clock is not disciplined
_TIMEX_BYTES = 512  # more than struct timex has on any machine


def record_facts(
    root: Path,
    now: datetime,
    *,
    free_share: FreeShare | None = None,
    clock: Callable[[], bool | None] | None = None,
    ask_nic: AskNic | None = None,
) -> dict[str, Any]:
    """The facts of the machine whose files lie under a folder.

    Args:
        root: ``/`` for the running system; another folder is read as if it were one.
        now: when it is recorded; aware of its zone.
        free_share: how full a mounted filesystem is; asked of the running system unless given.
        clock: whether the kernel's clock is disciplined; asked of the running system unless given.
        ask_nic: what an interface's driver says; asked of the running system unless given.

    Returns:
        The document: ``leadline_facts``, ``recorded``, ``guests`` as in an inventory file, and ``unreadable``, what
        this user may not read.

    Raises:
        InputError: the folder holds no Linux system.
    """
    tree = Tree(root)
    if not tree.has("/proc") and not tree.has("/sys") and not tree.has("/etc"):
        raise InputError(
            str(root),
            found="no proc, sys or etc in it",
            expected="the root folder of a Linux system",
            advice="Run it on the guest without --root, or name the folder an image is mounted at.",
        )
    if tree.is_running:
        free_share, clock = free_share or free_share_pct, clock or kernel_clock
        ask_nic = ask_nic or ask_driver
    mounted = mounts(tree)
    guest: dict[str, Any] = {"name": _hostname(tree), **_known(_machine(tree)), **_known(_memory(tree))}
    guest |= _known({"sysctl": _sysctl(tree), "module_parameters": _modules(tree)}) | cpu_vulnerabilities(tree)
    guest |= _known(_time(tree, clock)) | _known(_software(tree))
    guest |= _known({"cluster_token_timeout_s": _cluster_token_s(tree)})
    guest |= {"devices": block_devices(tree, mounted, free_share), "nics": nics(tree, ask_nic)}
    guest["databases"] = databases(tree, mounted)
    return {
        "leadline_facts": FACTS_VERSION,
        "recorded": now.isoformat(timespec="seconds"),
        "guests": [guest],
        "unreadable": sorted(tree.unreadable),
    }


def kernel_clock() -> bool | None:
    """Whether the kernel's clock is disciplined; None where it cannot be asked.

    Source: adjtimex(2): with modes 0 it only reads, as any user, and returns TIME_ERROR while nothing sets the clock.
    """
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    except (OSError, AttributeError):
        return None
    return None if state < 0 else state != _TIME_ERROR


def _known(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}


def _hostname(tree: Tree) -> str:
    hostname = tree.text("/proc/sys/kernel/hostname") or tree.text("/etc/hostname")
    return hostname or (platform.node() if tree.is_running else "") or "guest"


def _machine(tree: Tree) -> dict[str, Any]:
    release = dict(line.split("=", 1) for line in tree.lines("/etc/os-release") if "=" in line)
    nodes = count_of(tree.text("/sys/devices/system/node/online"))
    cpus = count_of(tree.text("/sys/devices/system/cpu/online"))
    listed = sum(line.startswith("processor") for line in tree.lines("/proc/cpuinfo"))
    return {
        "guest_os": release.get("PRETTY_NAME", "").strip("\"'") or None,
        "kernel_version": tree.text("/proc/sys/kernel/osrelease") or _kernel_of(tree.text("/proc/version")),
        "cpu_count": cpus or listed or None,
        "numa_node_count": nodes,
        "virtualisation": _virtualisation(tree),
        "selinux": _selinux(tree),
        "transparent_huge_pages": tree.chosen("/sys/kernel/mm/transparent_hugepage/enabled"),
        "clock_source": tree.text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    }


def _kernel_of(version: str | None) -> str | None:
    """The release in ``Linux version RELEASE (...``."""
    words = (version or "").split()
    return words[2] if len(words) > 2 and words[:2] == ["Linux", "version"] else None


def _virtualisation(tree: Tree) -> str | None:
    """By the firmware's names; else whether the processor says it is virtual."""
    firmware = " ".join(
        tree.text(f"/sys/class/dmi/id/{name}") or "" for name in ("sys_vendor", "product_name")
    ).casefold()
    named = next((kind for words, kind in _MAKERS if words in firmware), None)
    if named is not None or tree.text("/sys/hypervisor/type") == "xen":
        return named or "xen"
    flags = next((line for line in tree.lines("/proc/cpuinfo") if line.startswith("flags")), None)
    if flags is None:
        return None
    return "other" if "hypervisor" in flags.split() else "none"


def _selinux(tree: Tree) -> str | None:
    """The mode in force; "disabled" where the kernel runs without SELinux, None where that cannot be told.

    Source: Linux, security/selinux/selinuxfs.c: /sys/fs/selinux and the file system selinuxfs exist only while SELinux
    is enabled at boot. A container may see the one and not the other.
    """
    if tree.has("/sys/fs/selinux"):
        return {"1": "enforcing", "0": "permissive"}.get(tree.text("/sys/fs/selinux/enforce") or "")
    known = [line.split()[-1] for line in tree.lines("/proc/filesystems") if line.split()]
    return "disabled" if known and "selinuxfs" not in known else None


def _memory(tree: Tree) -> dict[str, Any]:
    lines = (line.partition(":") for line in tree.lines("/proc/meminfo"))
    numbers = {name: whole_number(rest.split()[0]) for name, _, rest in lines if rest.split()}
    total_kib = numbers.get("MemTotal")
    return {
        "memory_mib": None if total_kib is None else round(total_kib / 1024.0, 1),
        "huge_page_count": numbers.get("HugePages_Total"),
        "huge_page_size_kib": numbers.get("Hugepagesize"),
    }


def _sysctl(tree: Tree) -> dict[str, str | int] | None:
    settings: dict[str, str | int] = {}
    for name in _SYSCTL:
        text = tree.text("/proc/sys/" + name.replace(".", "/"))
        if text:
            number = whole_number(text)
            settings[name] = " ".join(text.split()) if number is None else number
    return settings or None


def _modules(tree: Tree) -> dict[str, str | int] | None:
    parameters: dict[str, str | int] = {}
    for module in _MODULES:
        for name in tree.names(f"/sys/module/{module}/parameters"):
            text = tree.text(f"/sys/module/{module}/parameters/{name}")
            if text and _MODULE_VALUE.fullmatch(text):
                number = whole_number(text)
                parameters[f"{module}.{name}"] = text if number is None else number
    return parameters or None


def _time(tree: Tree, clock: Callable[[], bool | None] | None) -> dict[str, Any]:
    """Names of running processes tell which service sets the clock and whether the tools run.

    Where processes of others are hidden (hidepid), the first process is too, and nothing is concluded.
    """
    names = {tree.text(f"/proc/{pid}/comm") for pid in tree.names("/proc") if pid.isdecimal()}
    seen = tree.text("/proc/1/comm") is not None
    synchronised = None if clock is None else clock()
    if synchronised is None and tree.has("/run/systemd/timesync/synchronized"):
        synchronised = True
    return {
        "clock_synchronised": synchronised,
        "time_services": sorted(service for name, service in _TIME_SERVICES.items() if name in names) if seen else None,
        "tools_running": bool(names & _TOOLS) if seen else None,
    }


def _software(tree: Tree) -> dict[str, Any]:
    """Units that start at boot by links of the administrator or the distribution, and the version of sysstat."""
    base = "/etc/systemd/system"
    wanted = [name for name in tree.names(base) if name.endswith((".wants", ".requires"))]
    units = sorted({unit for folder in wanted for unit in tree.names(f"{base}/{folder}") if _UNIT.fullmatch(unit)})
    return {
        "services": [unit for unit in units if unit.endswith(".service")] if wanted else None,
        "timers": [unit for unit in units if unit.endswith(".timer")] if wanted else None,
        "sysstat_version": _package_version(tree, "sysstat"),
    }


def _package_version(tree: Tree, package: str) -> str | None:
    """The installed version of a Debian package."""
    inside = installed = False
    for line in tree.lines("/var/lib/dpkg/status"):
        if line.startswith("Package: "):
            inside, installed = line == f"Package: {package}", False
        elif inside and line.startswith("Status: "):
            installed = line.endswith(" installed")
        elif inside and installed and line.startswith("Version: "):
            return line.removeprefix("Version: ")
    return None


def _cluster_token_s(tree: Tree) -> float | None:
    """How long corosync waits for a silent node, where its configuration says so; its default is not guessed.

    Source: corosync.conf(5): token in ms; with a list of at least three nodes token_coefficient (650) is added for
    every node beyond two.
    """
    section: list[str] = []
    totem: dict[str, int] = {}
    node_count = 0
    for line in tree.lines("/etc/corosync/corosync.conf"):
        text = line.strip()
        name, colon, value = (part.strip() for part in text.partition(":"))
        if text.endswith("{"):
            section.append(text[:-1].strip())
            node_count += section == ["nodelist", "node"]
        elif text == "}" and section:
            section.pop()
        elif colon and section == ["totem"] and (number := whole_number(value)) is not None:
            totem[name] = number
    if "token" not in totem:
        return None
    beyond = max(node_count - 2, 0)
    return (totem["token"] + beyond * totem.get("token_coefficient", _TOKEN_COEFFICIENT_MS)) / 1000.0
