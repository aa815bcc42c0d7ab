"""Targets with hostile names, loaded by real fio in every way there is: what lies beside them must not change.

fio cuts a path at ``#``, ``;``, ``:`` and a newline and expands ``${x}``. Around every target lie the files that such a
reading of its name would hit; their checksums are compared, and no file may appear. Each way loads the target as a file
that holds data and, with a folder of that name, as a folder.

``python -m benches.hostile_targets`` runs all of it and prints a table; it ends with status 1 when anything changed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from leadline.app.density import instances as density_instances
from leadline.app.measure import benching, rounds
from leadline.app.probe import probing
from leadline.app.sweep.sweeping import SweepWish, plan_sweep, run_sweep
from leadline.app.traces import replaying
from leadline.core.contracts.benchmark import Step
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import LeadlineError
from leadline.core.model.workload import Workload
from leadline.core.system.opened import printable
from leadline.stores.runs import RunStore

MIB = 2**20
MARKS = ("#", ";", ":", ",", "%", "$", "{", "}", "'", '"', "\\", " ", "\n", "-", "\udcff", "${HOME}")
SPECIAL = re.compile(r"[^A-Za-z0-9]")
COMBINED = (
    "v2#1;2:3",
    "v2 #1",
    "v2 ;1",
    "v2\n#1",
    "v2\nfilename=v3",
    "v2\n[global]\nfilename=v3",
    "v2;filename=v3",
    "v2${HOME}#x",
    "v2${PWD}:v3",
    "$HOME",
    "${v2}",
    "v2$jobname",
    "v2:v3",
    "v2\\:v3",
    "v2\\",
    "v2\\\\:v3:v4",
    "-v2#1",
    "--v2=v3",
    "-",
    "v2%s%n",
    "v2,v3",
    "v2\udcff#\udcfe",
    "\udcff",
    "'v2' \"v3\"",
    "v2'#'v3",
    "  v2  ",
    "v2\t#v3",
    "v2\r\nv3",
    "v2`id`$(id)",
    "v2&v3|v4>v5",
    "v2*?[v3]",
    "~v2",
    "v2=v3",
    "new",
    "é#ü\u202e",
)


def names() -> list[str]:
    """Every mark within, at the end and at the beginning of a name, then combined; each once."""
    single = [text for mark in MARKS for text in (f"v2{mark}1", f"v2{mark}", f"{mark}v2")]
    return list(dict.fromkeys([*single, *COMBINED]))


def beside(name: str) -> list[str]:
    """What readings of a name would hit: each beginning and each rest, with blanks left out, quoted and expanded."""
    found = {"v2", "v3", os.path.expandvars(name).replace("/", "_"), name.replace("\\", ""), name.strip()}
    for mark in SPECIAL.finditer(name):
        found |= {name[: mark.start()], name[: mark.end()], name[mark.end() :], name[: mark.start()].strip()}
    return sorted(own for own in found if own and own != name and own not in (".", "..") and "/" not in own)


@dataclass(slots=True)
class Field:
    """A folder with a target of a hostile name in it, and what lies around it."""

    folder: Path
    name: str
    is_folder: bool = False
    before: dict[bytes, str] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """The target, as a user names it."""
        return f"{self.folder}/{self.name}"

    def make(self) -> Field:
        """Make it all."""
        self.folder.mkdir()
        for own in beside(self.name):
            Path(f"{self.folder}/{own}").write_bytes(random.Random(own.encode(errors="replace")).randbytes(4096))
        if self.is_folder:
            Path(self.target).mkdir()
        else:
            Path(self.target).write_bytes(os.urandom(2 * MIB))
        self.before = self.seen()
        return self

    def seen(self) -> dict[bytes, str]:
        """Everything but the target's own contents, by name, with its checksum."""
        found = {}
        for entry in os.scandir(os.fsencode(self.folder)):
            own = entry.name == os.fsencode(self.name)
            content = b"" if own or entry.is_dir() else Path(os.fsdecode(entry.path)).read_bytes()
            found[entry.name] = "target" if own else hashlib.md5(content, usedforsecurity=False).hexdigest()
        return found

    def differences(self) -> tuple[int, int]:
        """Bystanders changed or gone, and files created, in the folder of the target when it is one too."""
        after = self.seen()
        changed = sum(after.get(name) != what for name, what in self.before.items())
        inside = sum(1 for _ in Path(self.target).iterdir()) if self.is_folder else 0
        return changed, len(after.keys() - self.before.keys()) + inside


@dataclass(frozen=True, slots=True)
class Ground:
    """Where loads keep what they measure, and the trace that is replayed."""

    store: RunStore
    trace: Path
    scratch: Path


def ground(base: Path) -> Ground:
    """A store, and a trace of a few requests."""
    trace = base / "t.vscsi"
    kinds = "cmd:u2 ver:u2 sn:u4 len:u4 nsg:u4 lbn:u8 ts:u8 rt:u8"
    made = np.zeros(20, dtype=[(key, f"<{kind}") for key, kind in (each.split(":") for each in kinds.split())])
    made["cmd"], made["ver"], made["sn"] = np.where(np.arange(20) % 2, 0x28, 0x2A), 0x0200, np.arange(20)
    made["len"], made["lbn"], made["ts"], made["rt"] = 4096, np.arange(20) * 8, 10**12 + np.arange(20) * 1000, 100
    made.tofile(trace)
    scratch = base / "scratch"
    scratch.mkdir()
    return Ground(RunStore(base / "home"), trace, scratch)


def workload() -> Workload:
    """One second of writes and reads on a mebibyte."""
    return Workload.model_validate(
        {
            "name": "hostile",
            "io": [{"block": "8k", "read_pct": 50.0, "oio": 2}],
            "io_settings": {"working_set": "1m"},
            "timing": {"measure_s": 1.0, "warm_up_s": 0.0, "rounds": 1},
        }
    )


def _bench_run(own: Ground, target: Target) -> None:
    benching.run(benching.plan(workload(), target), own.store, seed=1)


def _sweep(own: Ground, target: Target) -> None:
    run_sweep(plan_sweep(workload(), target, SweepWish(loads="1", seed=1)), own.store)


def _density(own: Ground, target: Target) -> None:
    made = density_instances.Instances(workload(), target, density_instances.site_of(workload(), target), None)
    try:
        made.grow(1, own.scratch, lambda _: None)
        done = made.measure(1, Step("round-1", 1.0, 1), 0.0, own.scratch)
        if done.errors:
            raise RuntimeError(done.errors)
    finally:
        made.close()


def _probe(own: Ground, target: Target) -> None:
    folder = Path(tempfile.mkdtemp(dir=own.scratch))
    made = probing.plan(
        target, folder, seconds=(0.0, 2.0), limit=None, size="1m", shape=probing.PulseShape(outstanding=2)
    )
    probing.probe(made, rounds.SILENT, lambda: None)


def _replay(own: Ground, target: Target) -> None:
    ask = replaying.ReplayAsk(target.name, target.destroy, lanes=2)
    replaying.replay(replaying.plan_replay(own.trace, ask), lambda _: None)


WAYS: dict[str, Callable[[Ground, Target], None]] = {
    "bench run": _bench_run,
    "sweep": _sweep,
    "density": _density,
    "probe": _probe,
    "replay": _replay,
}


@dataclass(slots=True)
class Row:
    """What one way of loading did to all fields."""

    loaded: int = 0
    bystanders: int = 0
    changed: int = 0
    created: int = 0
    failed: list[str] = field(default_factory=list)

    def __iadd__(self, other: Row) -> Row:
        self.loaded += other.loaded
        self.bystanders += other.bystanders
        self.changed += other.changed
        self.created += other.created
        self.failed += other.failed
        return self


def cell(which: tuple[str, str]) -> Row:
    """One way and one name, in a process and folders of its own."""
    probing.PAUSE_S = 0.0
    with tempfile.TemporaryDirectory(prefix="hostile-") as name:
        row = Row()
        tried(Path(name), ground(Path(name)), *which, row)
        return row


def tried(base: Path, own: Ground, way: str, name: str, row: Row) -> None:
    """Load one target in one way, as a file and as a folder, and count what happened around it."""
    for number, is_folder in enumerate((False, True)):
        place = Field(base / f"field-{row.loaded + len(row.failed)}-{number}", name, is_folder).make()
        target = Target(place.target, None if is_folder else place.target)
        row.bystanders += len(place.before) - 1
        try:
            WAYS[way](own, target)
            row.loaded += 1
        except (LeadlineError, OSError, ValueError, RuntimeError) as error:
            row.failed.append(f"{way} {name!a}: {type(error).__name__}: {printable(str(error))}")
        changed, created = place.differences()
        row.changed += changed
        row.created += created


def main() -> int:
    """Run the matrix and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", type=int, default=None, help="only so many names, spread over all")
    parser.add_argument("--ways", nargs="*", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--jobs", type=int, default=4, help="loads at a time: most of each is waiting")
    asked = parser.parse_args()
    wanted = names()
    if asked.names is not None:
        wanted = wanted[:: max(len(wanted) // asked.names, 1)][: asked.names]
    cells = [(way, name) for way in asked.ways for name in wanted]
    rows = {way: Row() for way in asked.ways}
    with ProcessPoolExecutor(asked.jobs) as pool:
        for (way, _), row in zip(cells, pool.map(cell, cells), strict=True):
            rows[way] += row
    print(f"{len(wanted)} names x {len(rows)} ways, each as a file and as a folder")
    print(f"{'way':<12}{'loads':>8}{'failed':>8}{'bystanders':>12}{'changed':>9}{'created':>9}")
    for way, row in rows.items():
        counts = f"{row.loaded:>8}{len(row.failed):>8}{row.bystanders:>12,}{row.changed:>9}{row.created:>9}"
        print(f"{way:<12}{counts}")
    for text in [text for row in rows.values() for text in row.failed]:
        print(text)
    return int(any(row.changed or row.created or row.failed for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
