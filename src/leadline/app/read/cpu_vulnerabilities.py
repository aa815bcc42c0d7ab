"""What a Linux kernel says of its processor's vulnerabilities, and the boot options that switch fixes on and off.

Source: Linux kernel documentation, ABI/testing/sysfs-devices-system-cpu; admin-guide/kernel-parameters and
admin-guide/hw-vuln; those of RHEL 7 (noibrs, noibpb, spectre_v2=retpoline,ibrs_user).
"""

from __future__ import annotations

import re
from typing import Any

from leadline.app.read.machine_files import Tree

FOLDER = "/sys/devices/system/cpu/vulnerabilities"
STATE_LENGTH_MAX = 400  # the longest today, of spectre_v2, has about 200 characters
ON = "on"  # the value of an option that stands alone, as `nopti`
# The kernel takes a dash for an underscore.
OPTIONS = frozenset(
    """
    gather_data_sampling indirect_target_selection kpti kvm.nx_huge_pages kvm_intel.vmentry_l1d_flush l1d_flush l1tf mds
    mitigations mmio_stale_data noibpb noibrs nopti nosmt nospec_store_bypass_disable nospectre_v1 nospectre_v2 pti
    reg_file_data_sampling retbleed spec_rstack_overflow spec_store_bypass_disable spectre_bhi spectre_v2
    spectre_v2_user srbds ssbd tsa tsx tsx_async_abort vmscape
    """.split()
)
_NAME = re.compile(r"[a-z0-9_]{1,40}")
_VALUE = re.compile(r"[a-z0-9_,;=-]{1,80}")


def cpu_vulnerabilities(tree: Tree) -> dict[str, Any]:
    """Return the settings ``cpu_vulnerabilities`` and ``cpu_fix_options``; each is left out where it is not known.

    Of the boot line only the options listed here are kept, and only where their values are those of such options.
    """
    states = {name: state for name in tree.names(FOLDER) if _NAME.fullmatch(name) and (state := _state(tree, name))}
    line = tree.text("/proc/cmdline")
    settings: dict[str, Any] = {"cpu_vulnerabilities": states} if states else {}
    return settings if line is None else settings | {"cpu_fix_options": fix_options(line)}


def fix_options(line: str) -> dict[str, str]:
    """Return the options of a boot line that concern fixes of the processor, with their values.

    >>> fix_options("root=/dev/sda1 mitigations=off nopti kvm-intel.vmentry_l1d_flush=never pw=mds=off -- pti=on")
    {'mitigations': 'off', 'nopti': 'on', 'kvm_intel.vmentry_l1d_flush': 'never'}
    """
    options: dict[str, str] = {}
    for word in line.split():
        if word == "--":  # what follows belongs to init
            break
        name, equals, value = word.partition("=")
        name = name.replace("-", "_")
        if name in OPTIONS and (not equals or _VALUE.fullmatch(value)):
            options[name] = value if equals else ON
    return options


def _state(tree: Tree, name: str) -> str:
    return " ".join((tree.text(f"{FOLDER}/{name}") or "").split())[:STATE_LENGTH_MAX]
