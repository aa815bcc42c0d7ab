"""PostgreSQL on a machine, as far as an ordinary user sees it: configuration files, limits of its main process."""

from __future__ import annotations

import re
from typing import Any

from leadline.app.read.block_devices import Mount, device_of
from leadline.app.read.machine_files import Tree, whole_number
from leadline.app.read.postgresql import configuration
from leadline.estate.knowledge.database_settings import POSTGRESQL_HARMLESS

_MIB_BYTES = 1024**2
_VALUE = re.compile(r"[A-Za-z0-9_.+-]{1,40}(?: ?[A-Za-z]{1,3})?")
_VERSION = re.compile(r"\d{1,2}(?:\.\d{1,2})?")
_LIMIT = re.compile(r"^(Max open files|Max locked memory)\s+(\d+|unlimited)\s", re.MULTILINE)


def databases(tree: Tree, mounted: list[Mount]) -> list[dict[str, Any]]:
    """PostgreSQL clusters: those with configuration under /etc/postgresql (Debian), or under the usual data folders."""
    clusters = []
    for version in tree.names("/etc/postgresql"):
        names = tree.names(f"/etc/postgresql/{version}") if _VERSION.fullmatch(version) else []
        base = f"/etc/postgresql/{version}"
        clusters += [_cluster(tree, mounted, f"{base}/{name}", f"{version}-{name}", version) for name in names]
    versions = [name for name in tree.names("/var/lib/pgsql") if _VERSION.fullmatch(name)]
    for folder in ("/var/lib/pgsql/data", *(f"/var/lib/pgsql/{version}/data" for version in versions)):
        if tree.has(f"{folder}/postgresql.conf"):
            version = (tree.text(f"{folder}/PG_VERSION") or "").strip()
            clusters.append(_cluster(tree, mounted, folder, f"{version or 'data'}-main", version))
    known = [cluster for cluster in clusters if cluster is not None]
    servers = _servers(tree)
    limits = _limits(tree, servers)
    if not known and servers:
        known = [{"name": "postgresql", "engine": "postgresql"}]
    # Which process serves which cluster its command line alone would say: known where there is one of each.
    if len(known) == 1 and len(servers) == 1:
        known[0] |= limits
    return known


def _cluster(tree: Tree, mounted: list[Mount], folder: str, name: str, version: str) -> dict[str, Any] | None:
    settings = configuration(tree, folder)
    if settings is None:
        return None
    parameters = {
        key: value for key, value in settings.given.items() if key in POSTGRESQL_HARMLESS and _VALUE.fullmatch(value)
    }
    cluster: dict[str, Any] = {"name": name, "engine": "postgresql"}
    if version:
        cluster["version"] = version
    if parameters or settings.defaults:
        cluster["parameters"] = parameters
    if settings.defaults:
        cluster["parameter_defaults"] = settings.defaults
    wal = tree.target(f"{settings.data}/pg_wal")
    devices = {
        "data_device": device_of(tree, mounted, settings.data),
        "wal_device": wal and device_of(tree, mounted, wal),
    }
    return cluster | {key: device for key, device in devices.items() if device}


def _servers(tree: Tree) -> list[str]:
    """Process ids of PostgreSQL's main processes: those whose parent is not PostgreSQL itself."""
    postgres_pids = {
        pid for pid in tree.names("/proc") if pid.isdecimal() and _name(tree, pid) in {"postgres", "postmaster"}
    }
    return [pid for pid in sorted(postgres_pids, key=int) if _parent(tree, pid) not in postgres_pids]


def _name(tree: Tree, pid: str) -> str | None:
    return tree.text(f"/proc/{pid}/comm")


def _parent(tree: Tree, pid: str) -> str | None:
    """The fourth field of stat, after the name in parentheses, which may hold anything."""
    fields = (tree.text(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()
    return fields[1] if len(fields) > 1 else None


def _limits(tree: Tree, servers: list[str]) -> dict[str, int | float]:
    limits: dict[str, int | float] = {}
    text = tree.text(f"/proc/{servers[0]}/limits") or "" if servers else ""
    for name, soft in _LIMIT.findall(text):
        value = whole_number(soft)
        if value is not None and name == "Max open files":
            limits["open_files_limit_count"] = value
        elif value is not None:
            limits["memlock_limit_mib"] = value / _MIB_BYTES
    return limits
