"""A recording with its truth, packed: ``recorded/KIND/VARIANT.tar.xz``."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from incidents import bystanders, numbers, recorders
from incidents.contract import KindModule, Stage, described
from incidents.lab import facts
from incidents.session import SEED, Recording, Variant

HISTORIES = ("pg_active_sessions.csv", "mysql_active_sessions.csv")
SHARES_KEPT = 8


def path(output: Path, variant: Variant) -> Path:
    """Where a recording is kept."""
    return output / variant.kind / f"{variant.number}.tar.xz"


def write(stage: Stage, module: KindModule, recording: Recording, output: Path, count: int) -> None:
    """Pack a recording; what was there is replaced only when the new one is whole."""
    (recording.folder / "inventory.yaml").write_text(_document(_inventory(stage, module)))
    (recording.folder / "truth.yaml").write_text(_document(_truth(stage, module, recording, count)))
    target = path(output, recording.variant)
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_suffix(".new")
    with tarfile.open(aside, "w:xz", preset=9) as packed:
        for file in sorted(recording.folder.iterdir()):
            data = file.read_bytes()
            member = tarfile.TarInfo(f"{recording.folder.name}/{file.name}")
            member.size, member.mtime, member.mode = len(data), int(file.stat().st_mtime), 0o644
            packed.addfile(member, io.BytesIO(data))
    aside.replace(target)


def _truth(stage: Stage, module: KindModule, recording: Recording, count: int) -> dict[str, Any]:
    kind = module.KIND
    fault = next(phase for phase in recording.phases if phase.name == "fault")
    document: dict[str, Any] = {
        "kind": recording.variant.kind,
        "variant": recording.variant.number,
        "set_aside": recording.variant.is_set_aside(count),
        "seed": f"{SEED}/{recording.variant.kind}/{recording.variant.number}/{recording.variant.attempt}",
        "parameters": recording.parameters,
        "summary": described(kind, recording.parameters),
        "host": "db01",
        "timezone": "UTC",
        "database": kind.database,
        "fault": None,
        "disk": "no",
        "innocent": {"layers": [], "entities": []},
        "visible_in": [],
        "bystanders": [],
    }
    if kind.truth is not None:
        document["fault"] = {
            "cause": kind.truth.cause,
            "others": list(kind.truth.others),
            "layers": list(kind.truth.layers),
            "entities": _entities(stage, kind.truth.roles, recording),
        } | _times(fault)
        document["disk"] = kind.truth.disk
        document["innocent"] = {
            "layers": list(kind.truth.innocent_layers),
            "entities": _entities(stage, kind.truth.innocent_roles, recording),
        }
        document["visible_in"] = list(kind.truth.visible_in)
    if recording.company is not None:
        document["innocent"]["entities"] += recording.company.entities()
        document["bystanders"] = recording.company.facts()
    document["shown"] = [shown.text for shown in recording.shown]
    document["phases"] = [{"name": phase.name} | _times(phase) for phase in recording.phases]
    document["actions"] = [{"at": _stamp(at), "did": did} for at, did in recording.actions]
    document["load"] = recording.load_command
    document["recordings"] = _recordings(recording)
    document["wait_shares"] = _wait_shares(recording)
    document["usual"] = _usual(kind.usual, recording.measured)
    if kind.database == "lab":
        document["host"] = facts(stage.guest)["guest"]
        document["guest"] = facts(stage.guest)
    else:
        document["disks"] = {disk.role: disk.device for disk in stage.rig.disks.values()}
    document["tools"] = {"kernel": os.uname().release, "cpu_count": os.cpu_count()}
    return document


def _entities(stage: Stage, roles: tuple[str, ...], recording: Recording) -> list[dict[str, str]]:
    named = (role.format(**recording.parameters) for role in roles)
    return [{"kind": "block-device", "name": stage.rig.device(role)} for role in named]


def _recordings(recording: Recording) -> dict[str, dict[str, str]]:
    """File -> its recorder and the command that wrote it."""
    by_file = {recorder.file: recorder for recorder in recording.recorders}
    folders = {recorder.name: recorder for recorder in recording.recorders if recorder.writes_itself}
    found = {}
    for file in sorted(recording.folder.iterdir()):
        name = file.name
        if name in by_file:
            found[name] = {"recorder": by_file[name].name, "command": recorders.printed(by_file[name])}
        elif name.startswith("pgbench") or name == "sysbench.txt":
            found[name] = {"recorder": name.partition("_")[0].partition(".")[0], "command": recording.load_command}
        elif name == "postgresql.log":
            found[name] = {"recorder": "postgresql-log", "command": "the server's log"}
        elif name.startswith("pg_") and "postgresql" in folders:
            recorder = "active-sessions" if name in HISTORIES else "pg-stat"
            found[name] = {"recorder": recorder, "command": "leadline collect postgresql"}
        elif name in ("qemu.jsonl", "linux.txt", "iostat.txt"):
            found[name] = {"recorder": name.partition(".")[0], "command": f"leadline lab, {name}"}
        elif name.startswith("mysql_"):
            found[name] = {"recorder": name.partition(".")[0].replace("_", "-"), "command": "python -m incidents.mysql"}
    return found


def _wait_shares(recording: Recording) -> dict[str, dict[str, float]]:
    """True shares of the sessions' time, from the history, inside the fault and before it."""
    for name in HISTORIES:
        file = recording.folder / name
        if file.exists():
            phases = {phase.name: phase for phase in recording.phases}
            return {
                title: {
                    event: round(share, 4)
                    for event, share in list(numbers.wait_shares(file, phases[phase]).items())[:SHARES_KEPT]
                }
                for title, phase in (("fault", "fault"), ("outside", "healthy"))
            }
    return {}


def _usual(measures: tuple[str, ...], measured: numbers.Numbers | None) -> dict[str, str]:
    """What the tools printed, before -> in the fault."""
    if measured is None:
        return {}
    nothing = float("nan")
    return {
        name: f"{measured.outside.get(name, nothing):.4g} -> {measured.inside.get(name, nothing):.4g}"
        for name in measures
    }


def _inventory(stage: Stage, module: KindModule) -> dict[str, Any]:
    """What an operator knows without measuring; the fault is not among it."""
    if module.KIND.database == "lab":
        vm = facts(stage.guest)
        disks = {role: names["in_guest"] for role, names in vm["disks"].items() if role != "swap"}
        return {
            "leadline_inventory": 1,
            "guests": [
                {
                    "name": vm["guest"],
                    "cpu_count": vm["vcpus"],
                    "devices": [{"name": name, "role": role, "filesystem": "ext4"} for role, name in disks.items()],
                    "databases": [{"name": "main", "engine": "postgresql"}],
                }
            ],
        }
    devices = [
        {"name": disk.device, "role": disk.role, "mount": str(disk.mount), "filesystem": "ext4", "medium": "flash"}
        for disk in stage.rig.disks.values()
        if disk.role not in ("swap", *bystanders.ROLES)
    ]
    engine = "mysql" if module.KIND.database == "mysql" else "postgresql"
    database = {"name": "main", "engine": engine}
    return {
        "leadline_inventory": 1,
        "guests": [{"name": "db01", "cpu_count": os.cpu_count(), "devices": devices, "databases": [database]}],
    }


def _times(phase: numbers.Phase) -> dict[str, str]:
    return {"start": _stamp(phase.start), "end": _stamp(phase.end)}


def _stamp(at: datetime) -> str:
    """ISO 8601 UTC, milliseconds."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _document(document: Mapping[str, Any]) -> str:
    return yaml.safe_dump(json.loads(json.dumps(document)), sort_keys=False, allow_unicode=True, width=118)


def read_truth(archive: Path) -> dict[str, Any]:
    """The truth of a packed recording."""
    with tarfile.open(archive) as packed:
        for member in packed:
            if member.name.endswith("/truth.yaml"):
                stream = packed.extractfile(member)
                if stream is not None:
                    return dict(yaml.safe_load(stream.read()))
    raise FileNotFoundError(f"{archive}: no truth.yaml")


def every_truth(output: Path) -> Iterator[dict[str, Any]]:
    """The truth of every packed recording."""
    for archive in sorted(output.glob("*/*.tar.xz")):
        yield read_truth(archive)
