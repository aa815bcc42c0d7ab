"""What each verb needs beyond the base: programs and packages of extras, and the command that brings them.

A verb that is not listed needs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from leadline.core.system.extras import EXTRAS, install_command
from leadline.core.system.tools import TOOLS, ToolState, find_program, installs

# A verb as it is typed, the part of it that is meant (empty: all of it), and the programs and Python modules it uses.
VERB_NEEDS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("diagnose", "binary sar files", ("sadf",)),
    ("diagnose", "Parquet files", ("pyarrow",)),
    ("show", "-o FILE.parquet", ("pyarrow",)),
    ("import", "-o FILE.parquet", ("pyarrow",)),
    ("collect vcenter", "", ("pyVmomi",)),
    ("collect postgresql", "", ("psycopg",)),
    ("collect mysql", "", ("pymysql",)),
    ("collect linux", "ssh:// machines", ("asyncssh",)),
    ("probe", "", ("fio",)),
    ("bench run", "disks", ("fio",)),
    ("bench run", "--tool vdbench", ("vdbench",)),
    ("bench run", "ioping", ("ioping",)),
    ("bench run", "pg-test-fsync", ("pg_test_fsync",)),
    ("bench run", "pgbench", ("pgbench", "psycopg")),
    ("bench run", "pgbench --on new", ("postgres",)),
    ("bench run", "sysbench", ("sysbench",)),
    ("bench run", "tpcc and tpch", ("go-tpc",)),
    ("bench run", "MySQL", ("mariadb",)),
    ("bench run", "MySQL --on new", ("mariadbd",)),
    ("bench run", "a web server", ("wrk",)),
    ("bench run", "a web server --on new", ("nginx",)),
    ("bench run", "a network", ("iperf3", "sockperf", "ping", "ip")),
    ("bench run", "RDMA", ("ib_send_lat",)),
    ("bench sweep", "", ("fio",)),
    ("bench density", "", ("fio",)),
    ("bench density", "in guests", ("qemu-system-x86_64", "busybox")),
    ("bench hosts", "", ("fio",)),
    ("bench hosts", "ssh:// machines", ("asyncssh",)),
    ("bench fleet", "", ("pyVmomi",)),
    ("bench protect", "", ("pyeclib",)),
    ("bench protect", "--nbd", ("qemu-storage-daemon",)),
    ("bench reduction", "LZ4", ("pyarrow",)),
    ("simulate", "--check-real", ("fio", "qemu-storage-daemon")),
    ("simulate", "--dask", ("distributed",)),
    ("trace replay", "", ("fio",)),
    ("watch run", "", ("pyarrow",)),
    ("watch run", "its page", ("fastapi", "uvicorn")),
    ("watch run", "PostgreSQL", ("psycopg",)),
    ("watch run", "MySQL and MariaDB", ("pymysql",)),
    ("watch run", "vCenter", ("pyVmomi",)),
    ("watch run", "ssh:// machines", ("asyncssh",)),
    ("watch run", "secrets of a keyring", ("keyring",)),
    ("lab run", "", ("qemu-system-x86_64", "busybox", "mke2fs")),
    ("lab run", "snapshots, qcow2", ("qemu-img",)),
    ("lab run", "storage_latency", ("nbdkit",)),
)
# Debian's packages of programs that `tools.TOOLS` does not list, as no recording is read by them.
_PACKAGES = {tool.name: tool.package for tool in TOOLS} | {"mke2fs": "e2fsprogs", "nbdkit": "nbdkit"}


@dataclass(frozen=True, slots=True)
class Need:
    """One program or Python module that a verb, or a part of what it does, cannot do without."""

    verb: str
    purpose: str
    name: str
    kind: str
    is_present: bool
    install: str


def needs(states: Mapping[str, ToolState]) -> Iterator[Need]:
    """Yield what every verb needs, in the order of `VERB_NEEDS`; ``states`` are the tools that were examined."""
    for verb, purpose, names in VERB_NEEDS:
        for name in names:
            if name in EXTRAS:
                extra = EXTRAS[name][0]
                yield Need(verb, purpose, name, f"extra {extra}", _is_installed(name), install_command(extra))
                continue
            state = states.get(name)
            is_present = find_program(name) is not None if state is None else state.is_present
            yield Need(verb, purpose, name, "program", is_present, installs(_PACKAGES[name]))


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def by_command(listed: list[Need]) -> dict[str, list[str]]:
    """Command that brings something missing -> the verbs, with the part that is meant, that lack it."""
    verbs: dict[str, list[str]] = {}
    for need in listed:
        if not need.is_present:
            named = f"{need.verb} ({need.purpose})" if need.purpose else need.verb
            verbs.setdefault(need.install, []).append(named)
    return verbs


def commands(listed: list[Need], states: Iterable[ToolState]) -> list[str]:
    """The fewest commands that bring all that is missing: one for programs, one for extras."""
    missing = [need for need in listed if not need.is_present]
    unused = {state.tool.package for state in states if not state.is_present}
    needed = {_PACKAGES[need.name] for need in missing if need.kind == "program"}
    programs = sorted(name for name in unused | needed if "://" not in name)  # a page brings nothing by itself
    packages = [name for name in programs if "@" not in name]
    extras = ",".join(sorted({EXTRAS[need.name][0] for need in missing if need.kind != "program"}))
    brought = [f"apt-get install {' '.join(packages)}"] if packages else []
    modules = [installs(name) for name in programs if "@" in name]  # of Go
    return [*brought, *([install_command(extras)] if extras else []), *modules]
