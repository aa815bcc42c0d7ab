"""Archives as the recorder of incidents writes them, made of the examples while a test runs."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import yaml

from tests.conftest import ROOT

EXAMPLES = ROOT / "examples" / "incidents"
FAULTS: dict[str, dict[str, Any]] = {
    "throttled-wal-disk": {
        "cause": "disk-capped",
        "layers": ["vm", "datastore"],
        "entities": [{"kind": "block-device", "name": "loop1"}],
    },
    "cpu-starved-guest": {"cause": "cpu-taken", "layers": ["guest"], "entities": []},
}
DISK = {"throttled-wal-disk": "yes", "cpu-starved-guest": "no", "healthy": "no"}
INNOCENT: dict[str, dict[str, Any]] = {
    "throttled-wal-disk": {"layers": ["network"], "entities": [{"kind": "block-device", "name": "loop0"}]},
    "cpu-starved-guest": {"layers": ["vm", "network", "storage-path", "datastore"], "entities": []},
    "healthy": {"layers": [], "entities": []},
}
VISIBLE = {
    "throttled-wal-disk": ["iostat", "sar"],
    "cpu-starved-guest": ["vmstat", "mpstat", "psi", "sar", "iostat"],
    "healthy": [],
}


def truth_of(name: str, variant: int = 1, *, is_set_aside: bool = False) -> dict[str, Any]:
    """The truth of an example in the words of the recorder."""
    example = yaml.safe_load((EXAMPLES / name / "truth.yaml").read_text(encoding="utf-8"))
    fault = FAULTS.get(name)
    if fault is not None:
        fault = {**fault, "start": example["fault"]["start"], "end": example["fault"]["end"]}
    recordings = {
        file: {"recorder": file.split(".")[0].removesuffix("_aggregate"), "command": command}
        for file, command in example["recordings"].items()
    }
    return {
        **{"kind": name, "variant": variant, "set_aside": is_set_aside, "seed": variant, "parameters": {}},
        **{"summary": example["summary"], "host": "db01", "timezone": "UTC", "database": "postgresql"},
        **{"fault": fault, "disk": DISK[name], "innocent": INNOCENT[name], "visible_in": VISIBLE[name]},
        "phases": [{key: phase[key] for key in ("name", "start", "end")} for phase in example["phases"]],
        "recordings": recordings,
        "wait_shares": {"fault": {"LWLock:WALWrite": 0.63, "CPU": 0.1}, "outside": {"CPU": 0.2}},
        "usual": {"vmstat": "wa 45, b 1"},
    }


def pack(folder: Path, name: str, variant: int = 1, *, is_set_aside: bool = False) -> Path:
    """Write ``NAME/VARIANT.tar.xz`` of an example into a folder; compressed as little as possible."""
    truth = folder / f"{name}-{variant}.yaml"
    truth.write_text(yaml.safe_dump(truth_of(name, variant, is_set_aside=is_set_aside)), encoding="utf-8")
    archive = folder / name / f"{variant}.tar.xz"
    archive.parent.mkdir(exist_ok=True)
    with tarfile.open(archive, "w:xz", preset=0) as tar:
        for path in sorted((EXAMPLES / name).iterdir()):
            tar.add(truth if path.name == "truth.yaml" else path, path.name)
    truth.unlink()
    return archive
