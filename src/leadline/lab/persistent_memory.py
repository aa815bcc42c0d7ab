"""Persistent memory of a guest: an NVDIMM that QEMU makes of a file, which the guest has as ``/dev/dax0.0``.

The NVDIMM has no labels, so Linux makes one namespace of all of it; two MiB of that keep what kind of namespace it is.
Its content lies in the page cache of this machine: it has the interface of persistent memory, not its latency.

Source: QEMU, docs/nvdimm.txt (memory slots, maxmem, memory-backend-file); Linux, Documentation/driver-api/nvdimm
(namespaces without labels), ``drivers/nvdimm/dax_devs.c`` and ``pfn_devs.c`` (uuid, mode, namespace of a DAX seed).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from leadline.lab.specification import Guest

MODULES = ("nfit", "nd_pmem", "device_dax", "dax_pmem")
DEVICE = "/dev/dax0.0"
_MIB = 1024**2
# The namespace goes from the driver of block devices to that of mapped ones; "ram": page structures are outside of it.
_AS_DAX = (
    "cd /sys/bus/nd/devices && seed=$(cat region0/dax_seed) && echo namespace0.0 > ../drivers/nd_pmem/unbind && "
    "cat /proc/sys/kernel/random/uuid > $seed/uuid && echo ram > $seed/mode && echo namespace0.0 > $seed/namespace && "
    "echo $seed > ../drivers/dax_pmem/bind"
)
_WAIT = f"for i in 1 2 3 4 5 6 7 8; do [ -c {DEVICE} ] && break; sleep 0.5; done; [ -c {DEVICE} ]"


def modules(guest: Guest) -> tuple[str, ...]:
    """Return the drivers a guest needs for its persistent memory."""
    return MODULES if guest.persistent_memory else ()


def options(guest: Guest, folder: Path) -> list[str]:
    """Return QEMU's options for the persistent memory of a guest, whose file is made in its folder."""
    size = guest.persistent_memory
    if not size:
        return []
    backing = f"memory-backend-file,id=nvdimm0-memory,share=on,size={size},mem-path={folder / 'nvdimm.0.raw'}"
    most = (guest.memory + size) // _MIB
    return [
        *("-machine", "nvdimm=on", "-m", f"slots=1,maxmem={most}M"),
        *("-object", backing, "-device", "nvdimm,id=nvdimm0,memdev=nvdimm0-memory"),
    ]


def steps(guest: Guest) -> Iterator[str]:
    """Yield the shell commands that make a DAX device of the guest's persistent memory."""
    if guest.persistent_memory:
        yield _AS_DAX
        yield _WAIT
