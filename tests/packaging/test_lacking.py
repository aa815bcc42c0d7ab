"""Leadline without the packages of extras, and without the modules that Windows lacks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from leadline.core.system.extras import EXTRAS
from tests.conftest import ROOT

INCIDENT = "examples/incidents/throttled-wal-disk"
UNIX_ONLY = ("fcntl", "pwd", "resource", "termios", "grp")
BLOCK = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocker())
for name in BLOCKED:
    sys.modules.pop(name, None)
"""
# What `os` and `signal` of Python on Windows lack. Source: Python documentation, "Availability: Unix" of each.
OS_LACKS = """
O_CLOEXEC O_NOFOLLOW O_NONBLOCK O_DIRECTORY O_DIRECT O_DSYNC O_SYNC O_NOCTTY O_PATH O_TMPFILE
chown chroot confstr fchmod fchown fdatasync fork forkpty fstatvfs getegid geteuid getgid getgroups getloadavg getpgid
getpgrp getpriority getresuid getsid getuid initgroups killpg lchown lockf major makedev memfd_create minor mkfifo mknod
nice openpty pidfd_open pipe2 posix_fadvise posix_fallocate posix_spawn pread preadv pwrite pwritev register_at_fork
sched_getaffinity sched_setaffinity sched_yield sendfile setpgid setpriority setsid statvfs sync sysconf sysconf_names
tcgetpgrp tcsetpgrp ttyname uname wait wait3 wait4 waitid
""".split()
SIGNALS_LACK = """
SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGTSTP SIGTTIN SIGTTOU SIGUSR1 SIGUSR2 SIGWINCH
alarm pthread_kill pthread_sigmask setitimer siginterrupt sigpending sigtimedwait sigwait sigwaitinfo
""".split()
# What the standard library itself takes by name where `os.name` says posix.
WINDOWS = f"""
import asyncio, logging, multiprocessing.util, os, platform, random, shutil, signal, sqlite3, subprocess, tempfile
import concurrent.futures.thread
import numpy
platform.platform()
os_kept = type(os)("os"); os_kept.__dict__.update(os.__dict__)
for module in (subprocess, shutil, tempfile, platform):
    module.os = os_kept
signals_kept = type(signal)("signal"); signals_kept.__dict__.update(signal.__dict__)
subprocess.signal = signals_kept
os.environ["PATH"] = "/nonexistent"  # nor sadf and its like
for name in {OS_LACKS!r}:
    if hasattr(os, name):
        delattr(os, name)
for name in {SIGNALS_LACK!r}:
    if hasattr(signal, name):
        delattr(signal, name)
"""
RUN = "from leadline.faces.cli.main import run; run()"
HELPS = """
import typer
from leadline.faces.cli.main import build_app
def walk(command, words, parent):
    context = command.context_class(command, info_name=words[-1], parent=parent)
    assert command.get_help(context), words
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        walk(command.get_command(context, name), [*words, name], context)
        print(*words[1:], name)
walk(typer.main.get_command(build_app()), ["leadline"], None)
"""


def lacking(blocked: Sequence[str], code: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What Python code does where some modules cannot be imported."""
    program = f"BLOCKED = {tuple(blocked)!r}\n{BLOCK}\n{code}"
    # A folder for scratch of its own: where this has no locks, processes that have some would take it for abandoned.
    places = {"LEADLINE_HOME": str(folder / "home"), "TMPDIR": str(folder)}
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "LEADLINE_PASSWORD": "sesame", **places}
    command = [sys.executable, "-W", "ignore", "-c", program, *words]
    return subprocess.run(command, check=False, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    "blocked",
    [
        pytest.param(tuple(EXTRAS), id="extras"),
        pytest.param(UNIX_ONLY, id="windows"),
        *(pytest.param((module,), id=module, marks=pytest.mark.slow) for module in EXTRAS),  # above all are lacking
    ],
)
def test_every_verb_shows_its_help(blocked: tuple[str, ...], tmp_path: Path) -> None:
    done = lacking(blocked, HELPS, tmp_path)
    assert done.returncode == 0, done.stderr
    assert {"diagnose", "bench run", "collect vcenter", "lab console"} <= set(done.stdout.splitlines())


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (
            "asyncssh",
            ("bench", "run", "hci-4k-read", "--hosts", "hosts.txt", "--set-size", "8m", "--seconds", "1", "--yes"),
        ),
        ("distributed", ("simulate", "iops-cap", "--dask", "tcp://127.0.0.1:1", "--quiet")),
        ("psycopg", ("collect", "postgresql", "host=127.0.0.1 port=1", "-o", "db", "--seconds", "9")),
        ("psycopg", ("bench", "run", "pgbench", "--on", "postgresql://127.0.0.1:1/x", "--seconds", "1", "--yes")),
        ("pyVmomi", ("collect", "vcenter", "127.0.0.1:1", "-u", "me", "-o", "vc.parquet")),
        ("pyVmomi", ("bench", "fleet", "examples/fleet.yaml", "--dry-run")),
        ("pyarrow", ("import", INCIDENT, "-o", "incident.parquet")),
        ("pyarrow", ("show", f"{INCIDENT}/iostat.txt", "-o", "incident.parquet")),
        ("pyarrow", ("diagnose", "old.parquet")),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value[:2]),
)
def test_a_verb_that_lacks_a_package_names_its_extra(module: str, words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "hosts.txt").write_text("ssh://bench@127.0.0.1:1 /srv/scratch\n")
    (tmp_path / "old.parquet").write_bytes(b"PAR1" + bytes(64) + b"PAR1")
    done = lacking((module,), RUN, tmp_path, *words)
    lines = done.stderr.strip().splitlines()
    assert done.returncode == 4, done.stderr
    assert f"pip install 'leadline[{EXTRAS[module][0]}]'" in lines[-1]
    assert lines[-1].startswith("error: ") and "; expected " in lines[-1]


def commands() -> Iterator[tuple[str, ...]]:
    yield "diagnose", INCIDENT
    yield "audit", "examples/easy/inventory.yaml"
    yield "plan", "queues", "--set", "iops=40000", "--set", "latency_ms=1"
    yield "simulate", "iops-cap", "--quiet"
    yield "reproduce", "iops-cap-latency"
    yield "show", f"{INCIDENT}/iostat.txt"
    yield ("doctor",)


# The modules of Windows alone are slow: the next test lacks its calls, too.
@pytest.mark.parametrize(
    "blocked",
    [pytest.param(tuple(EXTRAS), id="extras"), pytest.param(UNIX_ONLY, id="windows", marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("words", [*commands()], ids=lambda words: words[0])
def test_reading_and_reckoning_lack_nothing(blocked: tuple[str, ...], words: tuple[str, ...], tmp_path: Path) -> None:
    done = lacking(blocked, RUN, tmp_path, *words)
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout


@pytest.mark.parametrize("words", [*commands()], ids=lambda words: words[0])
def test_reading_and_reckoning_run_with_the_calls_of_windows(words: tuple[str, ...], tmp_path: Path) -> None:
    done = lacking(UNIX_ONLY, WINDOWS + RUN, tmp_path, *words)
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout
    assert "fault in Leadline" not in done.stderr


def test_output_is_written_with_the_calls_of_windows(tmp_path: Path) -> None:
    done = lacking(UNIX_ONLY, WINDOWS + RUN, tmp_path, "diagnose", INCIDENT, "--html", "page.html")
    assert done.returncode in (0, 1), done.stderr
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_a_notebook_without_data_frames_names_the_extra(tmp_path: Path) -> None:
    code = f"import leadline; leadline.open({str(ROOT / INCIDENT / 'iostat.txt')!r}).series()"
    done = lacking(("polars",), code, tmp_path)
    assert "pip install 'leadline[frames]'" in done.stderr
