"""PostgreSQL on a machine, as far as an ordinary user sees it: configuration files, limits of its main process."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from leadline.app.read.block_devices import Mount, device_of
from leadline.app.read.machine_files import Tree, whole_number
from leadline.app.read.postgresql import Configuration, configuration
from leadline.estate.knowledge.database_settings import POSTGRESQL_HARMLESS

_MIB_BYTES = 1024**2
_VALUE = re.compile(r"[A-Za-z0-9_.+-]{1,40}(?: ?[A-Za-z]{1,3})?")
_VERSION = re.compile(r"\d{1,2}(?:\.\d{1,2})?")
_LIMIT = re.compile(r"^(Max open files|Max locked memory)\s+(\d+|unlimited)\s", re.MULTILINE)


def databases(tree: Tree, mounted: list[Mount]) -> list[dict[str, Any]]:
    """PostgreSQL clusters: those that run, by the data folder they were started with; where none is known to run, all.

    Configuration is under /etc/postgresql (Debian), in the usual data folders, or in the data folder itself.
    """
    running = {folder: pid for pid in _servers(tree) if (folder := _data_folder(tree, pid)) is not None}
    clusters: dict[str, dict[str, Any]] = {}
    for version in tree.names("/etc/postgresql"):
        names = tree.names(f"/etc/postgresql/{version}") if _VERSION.fullmatch(version) else []
        for name in names:
            _add(clusters, tree, mounted, f"/etc/postgresql/{version}/{name}", f"{version}-{name}", version)
    versions = [name for name in tree.names("/var/lib/pgsql") if _VERSION.fullmatch(name)]
    for folder in ("/var/lib/pgsql/data", *(f"/var/lib/pgsql/{version}/data" for version in versions)):
        if tree.has(f"{folder}/postgresql.conf"):
            version = (tree.text(f"{folder}/PG_VERSION") or "").strip()
            _add(clusters, tree, mounted, folder, f"{version or 'data'}-main", version)
    others = [folder for folder in running if folder not in clusters]
    for place, folder in enumerate(others, 1):
        version = (tree.text(f"{folder}/PG_VERSION") or "").strip()
        name = "postgresql" if len(others) == 1 else f"postgresql-{place}"
        _add(clusters, tree, mounted, folder, name, version)
        clusters.setdefault(folder, _plain(tree, mounted, folder, name, version))
    known = [cluster for folder, cluster in clusters.items() if not running or folder in running]
    servers = _servers(tree)
    if not known and servers:
        known = [{"name": "postgresql", "engine": "postgresql"}]
    if len(known) == 1 and len(servers) == 1:
        known[0] |= _limits(tree, servers[0])
    elif running:
        for folder, pid in running.items():
            clusters[folder] |= _limits(tree, pid)
    return known


def _add(
    clusters: dict[str, dict[str, Any]], tree: Tree, mounted: list[Mount], folder: str, name: str, version: str
) -> None:
    """Take in the cluster that is configured in a folder, by its data folder."""
    settings = configuration(tree, folder)
    if settings is not None:
        clusters[tree.target(settings.data) or settings.data] = _cluster(tree, mounted, settings, name, version)


def _cluster(tree: Tree, mounted: list[Mount], settings: Configuration, name: str, version: str) -> dict[str, Any]:
    parameters = {
        key: value for key, value in settings.given.items() if key in POSTGRESQL_HARMLESS and _VALUE.fullmatch(value)
    }
    cluster = _plain(tree, mounted, settings.data, name, version)
    if parameters or settings.defaults:
        cluster["parameters"] = parameters
    if settings.defaults:
        cluster["parameter_defaults"] = settings.defaults
    return cluster


def _plain(tree: Tree, mounted: list[Mount], data: str, name: str, version: str) -> dict[str, Any]:
    """A cluster whose configuration is not known."""
    cluster: dict[str, Any] = {"name": name, "engine": "postgresql"}
    if version:
        cluster["version"] = version
    wal = tree.target(f"{data}/pg_wal")
    devices = {"data_device": device_of(tree, mounted, data), "wal_device": wal and device_of(tree, mounted, wal)}
    return cluster | {key: device for key, device in devices.items() if device}


def _servers(tree: Tree) -> list[str]:
    """Process ids of PostgreSQL's main processes: those whose parent is not PostgreSQL itself."""
    postgres_pids = {
        pid for pid in tree.names("/proc") if pid.isdecimal() and _name(tree, pid) in {"postgres", "postmaster"}
    }
    return [pid for pid in sorted(postgres_pids, key=int) if _parent(tree, pid) not in postgres_pids]


def _data_folder(tree: Tree, pid: str) -> str | None:
    """The data folder on the command line of a main process; None where it has none, or one of a container."""
    words = (tree.text(f"/proc/{pid}/cmdline") or "").split("\0")
    for word, after in pairwise([*words, ""]):
        folder = after if word == "-D" else word.removeprefix("-D")
        if word.startswith("-D") and folder.startswith("/"):
            return tree.target(folder)
    return None


def _name(tree: Tree, pid: str) -> str | None:
    return tree.text(f"/proc/{pid}/comm")


def _parent(tree: Tree, pid: str) -> str | None:
    """The fourth field of stat, after the name in parentheses, which may hold anything."""
    fields = (tree.text(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()
    return fields[1] if len(fields) > 1 else None


def _limits(tree: Tree, server: str) -> dict[str, int | float]:
    limits: dict[str, int | float] = {}
    text = tree.text(f"/proc/{server}/limits") or ""
    for name, soft in _LIMIT.findall(text):
        value = whole_number(soft)
        if value is not None and name == "Max open files":
            limits["open_files_limit_count"] = value
        elif value is not None:
            limits["memlock_limit_mib"] = value / _MIB_BYTES
    return limits
