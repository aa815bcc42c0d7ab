"""Kill every verb that writes at random moments: earlier outputs stay whole, and the next start leaves nothing behind.

For each verb: run it once whole, then end it COUNT times by SIGKILL and COUNT times by SIGTERM at random moments of
that time. After each, `leadline metrics` is the next start. Then the output is either the earlier file or a whole new
one, and the folders of targets, of temporary files and of the user hold nothing that was not there before.

    python -m benches.bench_kills [--count 100] [--verb NAME ...] [--seed 1]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.traces import write_vscsi

ROOT = Path(__file__).resolve().parent.parent
LEADLINE = (str(Path(sys.executable).parent / "leadline"),)
RECORDING = ROOT / "examples" / "incidents" / "throttled-wal-disk"
SETTLE_S = 5.0  # children of a killed process may take that long to be gone
_TINY = ("--set-size", "16m", "--seconds", "1", "--warm-up", "0", "--yes")


@dataclass(frozen=True, slots=True)
class Verb:
    """A command that writes: its words, the outputs it replaces and the folder it loads, below the ground of a run."""

    name: str
    words: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    target: str | None = None
    keeps: tuple[str, ...] = field(default=())  # what a run keeps on purpose when it is ended; removed before the next
    needs: tuple[str, ...] = field(default=())  # folders to make before each run


VERBS = (
    Verb("import", ("import", "cap.csv", "-o", "out.parquet"), ("out.parquet",)),
    Verb("show", ("show", "cap.csv", "-m", "cpu_*", "-o", "out.csv"), ("out.csv",)),
    Verb("diagnose", ("diagnose", "cap.csv", str(RECORDING), "--html", "out.html"), ("out.html",)),
    Verb("audit", ("audit", "cap.csv", "inventory.yaml", "--sarif", "out.sarif"), ("out.sarif",)),
    Verb(
        "generate", ("generate", "out.csv", "--columns", "4000", "--samples", "200"), ("out.csv", "out.csv.truth.yaml")
    ),
    Verb("facts", ("facts", "-o", "out.json"), ("out.json",)),
    Verb(
        "calibrate", ("calibrate", str(RECORDING / "iostat.txt"), "--entity", "loop1", "-o", "out.yaml"), ("out.yaml",)
    ),
    Verb("simulate", ("simulate", str(ROOT / "examples/scenarios/iops-cap.yaml"), "--html", "out.html"), ("out.html",)),
    Verb(
        "plan", ("plan", "queues", "--set", "iops=40000", "--set", "latency_ms=1", "--html", "out.html"), ("out.html",)
    ),
    Verb("collect", ("collect", "linux", "-o", "recorded", "--seconds", "1", "--every", "0.2"), keeps=("recorded",)),
    Verb("guest", ("guest", "export", "-o", "out.ps1"), ("out.ps1",)),
    Verb("guest apply", ("guest", "apply", "--root", "image", "--yes"), keeps=("image",), needs=("image/etc",)),
    Verb("trace model", ("trace", "model", "db01.vscsi", "-o", "out.yaml"), ("out.yaml",)),
    Verb(
        "trace replay",
        ("trace", "replay", "db01.vscsi", "--on", "scratch", "--set-size", "16m", "--yes"),
        (),
        "scratch",
    ),
    Verb("bench run", ("bench", "run", "hci-8k-50-50", "--on", "scratch", *_TINY, "--rounds", "1"), (), "scratch"),
    Verb("bench sweep", ("bench", "sweep", "hci-4k-read", "--on", "scratch", "--oio", "1,2", *_TINY), (), "scratch"),
    Verb(
        "bench density",
        (
            *("bench", "density", "hci-8k-50-50", "--on", "scratch", "--service-level", "p95<=1s", "--max", "1"),
            *("--set-size", "16m", "--seconds", "5", "--rounds", "2", "--warm-up", "0", "--yes"),
        ),
        (),
        "scratch",
    ),
    Verb(
        "bench protect",
        ("bench", "protect", "--on", "scratch", "--vms", "1", "--size-per-vm", "8M", "--yes"),
        (),
        "scratch",
    ),
    Verb(
        "probe",
        ("probe", "--on", "scratch", "--seconds", "1", "--pulse", "1", "--set-size", "16m", "--yes", "-o", "probed"),
        (),
        "scratch",
        ("probed",),
    ),
    Verb(
        "bench postgresql",
        ("bench", "run", str(ROOT / "benches" / "kills-pgbench.yaml"), "--on", "scratch", "--yes"),
        (),
        "scratch",
    ),
)


@dataclass(slots=True)
class Outcome:
    """What killing one verb showed."""

    whole_s: float
    killed_count: int = 0
    late_count: int = 0  # it had ended by itself
    faults: list[str] = field(default_factory=list)


class Ground:
    """Folders of one verb's runs: inputs, outputs, a target with a bystander, temporary files, the user's folder."""

    def __init__(self, base: Path) -> None:
        self.work, self.temporary, self.home = (base / name for name in ("work", "temporary", "home"))
        for path in (self.work, self.temporary, self.home):
            path.mkdir()
        self.env = {
            **os.environ,
            "TMPDIR": str(self.temporary),
            "LEADLINE_HOME": str(self.home),
            "XDG_CACHE_HOME": str(base / "cache"),
        }

    def start(self, verb: Verb) -> subprocess.Popen[bytes]:
        """Start a verb."""
        quiet = subprocess.DEVNULL
        words = [*LEADLINE, *verb.words]
        for name in verb.keeps:
            shutil.rmtree(self.work / name, ignore_errors=True)
        for name in verb.needs:
            (self.work / name).mkdir(parents=True)
        return subprocess.Popen(words, cwd=self.work, env=self.env, stdin=quiet, stdout=quiet, stderr=quiet)

    def next_start(self) -> None:
        """Start Leadline again, which cleans up."""
        subprocess.run([*LEADLINE, "metrics"], cwd=self.work, env=self.env, capture_output=True, check=True)

    def found(self, verb: Verb) -> set[str]:
        """What is in the folders, but the runs that are kept on purpose."""
        stores = {"runs", "sweeps", "fleets", "leftovers", "runs.sqlite", "runs.sqlite-wal", "runs.sqlite-shm"}
        paths = [path for path in self.work.rglob("*") if path.relative_to(self.work).parts[0] not in verb.keeps]
        paths += [*self.temporary.iterdir(), *(path for path in self.home.iterdir() if path.name not in stores)]
        paths += (self.home / "leftovers").glob("*")
        paths += (path for path in self.home.rglob("*") if path.suffix == ".part" or path.name.startswith(".leadline"))
        return {str(path.relative_to(self.work.parent)) for path in paths}


@contextlib.contextmanager
def made_ground(verb: Verb) -> Iterator[Ground]:
    """Make the ground of a verb with its inputs."""
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        Path(name).chmod(0o755)  # root starts PostgreSQL as another user, who must get to its folder
        ground = Ground(Path(name))
        words = ("generate", "cap.csv", "--vms", "20", "--minutes", "20", "-q")
        subprocess.run([*LEADLINE, *words], cwd=ground.work, env=ground.env, check=True)
        (ground.work / "cap.csv.truth.yaml").unlink(missing_ok=True)
        (ground.work / "inventory.yaml").write_text("guests:\n- name: db01\n")
        write_vscsi(ground.work / "db01.vscsi", count=1000, mean_gap_us=1000)
        if verb.target is not None:
            (ground.work / verb.target).mkdir()
            (ground.work / verb.target / "bystander.dat").write_bytes(b"the user's\n")
        yield ground


def kill(verb: Verb, count: int, seed: int) -> Outcome:
    """End a verb at random moments, half by SIGKILL and half by SIGTERM, and look at what is left."""
    moments = random.Random(seed)
    with made_ground(verb) as ground:
        began = time.monotonic()
        status = ground.start(verb).wait()
        outcome = Outcome(time.monotonic() - began)
        if status not in (0, 1):
            outcome.faults.append(f"the whole run ended with status {status}")
            return outcome
        expected = ground.found(verb)
        earlier = {name: (ground.work / name).read_bytes() for name in verb.outputs}
        for number in range(2 * count):
            how = (signal.SIGKILL, signal.SIGTERM)[number % 2]
            process = ground.start(verb)
            time.sleep(moments.uniform(0.0, 1.05 * outcome.whole_s))
            outcome.late_count += process.poll() is not None
            outcome.killed_count += process.poll() is None
            process.send_signal(how)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                outcome.faults.append(f"{how.name}: it did not end within 60 s")
                process.kill()
                process.wait()
            outcome.faults += [f"{how.name}: {fault}" for fault in _look(verb, ground, expected, earlier)]
    return outcome


def _look(verb: Verb, ground: Ground, expected: set[str], earlier: dict[str, bytes]) -> list[str]:
    """Start Leadline again and say what is not as it was."""
    faults: list[str] = []
    deadline = time.monotonic() + SETTLE_S
    while True:
        ground.next_start()
        more = ground.found(verb) - expected
        more = {name for name in more if not more.intersection(map(str, Path(name).parents))}  # of a folder all is
        if not more or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    faults += [f"left behind: {name}" for name in sorted(more)]
    for name, content in earlier.items():
        path = ground.work / name
        now = path.read_bytes() if path.exists() else b""
        # What a verb writes anew differs in times and random marks alone: about the same size, the same end.
        if now != content and (abs(len(now) - len(content)) > 0.1 * len(content) + 200 or now[-4:] != content[-4:]):
            faults.append(f"{name} is neither the earlier file nor a new one ({len(now)} of {len(content)} bytes)")
    if verb.target is not None and (ground.work / verb.target / "bystander.dat").read_bytes() != b"the user's\n":
        faults.append("the bystander changed")
    for name in more:  # so that one fault is told once
        path = ground.work.parent / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    return faults


def main() -> None:
    """Kill every verb and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="kills of each kind per verb")
    parser.add_argument("--verb", action="append", help="only these verbs")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(f"{'verb':18} {'whole s':>8} {'ended':>6} {'too late':>9} {'faults':>7}")
    fault_count = 0
    for verb in VERBS:
        if given.verb and verb.name not in given.verb:
            continue
        outcome = kill(verb, given.count, given.seed)
        fault_count += len(outcome.faults)
        numbers = f"{outcome.whole_s:8.2f} {outcome.killed_count:6} {outcome.late_count:9} {len(outcome.faults):7}"
        print(f"{verb.name:18} {numbers}", flush=True)
        for fault in dict.fromkeys(outcome.faults):
            print(f"    {fault} ({outcome.faults.count(fault)}x)", flush=True)
    sys.exit(1 if fault_count else 0)


if __name__ == "__main__":
    main()
