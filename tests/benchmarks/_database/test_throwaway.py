"""Throw-away database servers of a Leadline that is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from leadline.core.system.leftovers import remove_leftovers
from leadline.core.system.tools import find_program

PROGRAMS = {
    "postgresql": ("initdb", "postgres", "setpriv"),
    "mysql": ("mariadb-install-db", "mariadbd", "mariadb", "setpriv"),
}
STARTS = """
import sys, time
from pathlib import Path
from leadline.benchmarks._database.throwaway_{engine} import start
start(Path(sys.argv[1]), Path(sys.argv[2]), 2)
print("started", flush=True)
time.sleep(300)
"""


def _is_served(base: Path) -> bool:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(base) in entry.read_bytes():
                return True
        except OSError:
            continue
    return False


@pytest.mark.real
@pytest.mark.parametrize("engine", PROGRAMS)
def test_the_next_start_removes_the_server_of_a_killed_run(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = [name for name in PROGRAMS[engine] if find_program(name) is None]
    if missing:
        pytest.skip(f"{missing[0]} is not installed")
    with tempfile.TemporaryDirectory(prefix="leadline-db-") as name:  # pytest keeps its own folders from other users
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "bystander.dat").write_bytes(b"the user's\n")
        monkeypatch.setenv("LEADLINE_HOME", str(folder / "home"))
        base = folder / "leadline-bench-test"
        words = [sys.executable, "-c", STARTS.format(engine=engine), str(base), str(folder / "output")]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"started\n"
            assert _is_served(base)
            process.kill()
        deadline = time.monotonic() + 30
        while (base.exists() or _is_served(base)) and time.monotonic() < deadline:
            remove_leftovers()
            time.sleep(0.1)
        assert not _is_served(base)
        assert not base.exists()
        assert (folder / "bystander.dat").read_bytes() == b"the user's\n"
