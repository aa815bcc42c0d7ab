"""A sentinel password in every place where one can be given: nothing that is printed, kept or started has it.

Tools are stand-ins that write down their words and their environment, so that a leak to a child is seen however short
it lives. The real servers are in tests/benchmarks (a password that lets in) and in tests/collectors.
"""

from __future__ import annotations

import io
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from typer.main import get_command

from leadline.core.system import secret as secrets_of
from leadline.faces.cli import main
from leadline.faces.cli.main import build_app

PASSWORD = "Kq7zSentinel"
ODD = "Kq7z%Sqx5n/Tz3qn@Ewv8l#Xj4k y'\"\\"  # what is odd in an address, in a shell and in a file of options
# Every place is tried with every fourth form, each form in every fourth place; LEADLINE_EVERY=1 tries all with all.
STRIDE = 1 if os.environ.get("LEADLINE_EVERY") else 4
TOOLS = (
    "fio",
    "pgbench",
    "sysbench",
    "mariadb",
    "mysql",
    "psql",
    "iperf3",
    "sockperf",
    "ioping",
    "ssh",
    "postgres",
    "pg_test_fsync",
)
_STAND_IN = """#!/bin/sh
{ tr '\\0' '\\n' < /proc/$$/cmdline; tr '\\0' '\\n' < /proc/$$/environ; } >> "$RECORD" 2>/dev/null
case "$*" in *--version*) echo "fio-3.33 pgbench (PostgreSQL) 15.1 sysbench 1.0.20";; *) exit 1;; esac
"""


def forms(password: str) -> list[str]:
    """Addresses with a password, well formed and not."""
    quoted = quote(password, safe="")
    both = [
        f"{scheme}://me:{quoted}@127.0.0.1:1/shop" for scheme in ("postgresql", "mysql", "https", "nbd", "ssh", "tcp")
    ]
    return [
        *both,
        f"postgresql://me:{quoted}@127.0.0.1:port/shop",
        f"postgresql://127.0.0.1:1/shop?user=me&password={quoted}",
        f"postgresql://127.0.0.1:1/shop?sslpassword={quoted}",
        f"mysql://me:{quoted}@127.0.0.1:port/shop",
        f"https://127.0.0.1/sdk?password={quoted}",
        f"postgresql://me:{password}@127.0.0.1:1/shop",
        f"postgresql://me:{password}%zz@127.0.0.1:1/shop",
        f"mysql://me:{password}@127.0.0.1:1/a/b",
        f"https://me:{password}@vc/sdk",
        f"me:{password}@127.0.0.1",
        f"host=127.0.0.1 port=1 dbname=shop password={password}",
        f"host=127.0.0.1 port=no dbname=shop password='{password}' unknown=x",
        f"passwd={password}",
    ]


# Where an address can be named; ADDRESS stands for it.
PLACES: tuple[tuple[str, ...], ...] = (
    *(("bench", "run", load, "--on", "ADDRESS", "--yes") for load in ("hci-4k-read", "pgbench", "sysbench-mysql")),
    *(("bench", "run", load, "--on", "ADDRESS", "--yes") for load in ("network", "ioping", "pg-test-fsync")),
    ("bench", "run", "pgbench", "--on", "ADDRESS", "--destroy-data", "ADDRESS", "--yes", "--json"),
    ("bench", "run", "hci-4k-read", "--on", ".", "--destroy-data", "ADDRESS", "--yes", "--set-size", "1m"),
    ("bench", "run", "hci-4k-read", "--on", ".", "--wal", "ADDRESS", "--yes", "--set-size", "1m"),
    ("bench", "run", "ADDRESS", "--on", "."),
    ("bench", "run", "hci-4k-read", "--hosts", "HOSTS", "--yes"),
    ("bench", "run", "hci-4k-read", "--on", "ADDRESS", "--hosts", "ADDRESS", "--yes"),
    ("bench", "hosts", "hci-4k-read", "--hosts", "HOSTS", "--yes", "--json"),
    ("bench", "fleet", "FLEET", "--dry-run"),
    ("bench", "fleet", "FLEET", "--password-file", "ADDRESS", "--dry-run"),
    ("bench", "sweep", "hci-4k-read", "--on", "ADDRESS", "--yes"),
    ("bench", "sweep", "pgbench", "--on", "ADDRESS", "--destroy-data", "ADDRESS", "--yes"),
    ("bench", "sweep", "--resume", "ADDRESS", "--on", "ADDRESS"),
    ("bench", "density", "vdi", "--on", "ADDRESS", "--service-level", "p95<=20ms", "--yes"),
    ("bench", "protect", "--on", "ADDRESS", "--yes"),
    ("probe", "--on", "ADDRESS", "--yes", "--json", "--seconds", "1", "--pulse", "1"),
    ("trace", "replay", "ADDRESS", "--on", "ADDRESS", "--yes"),
    ("collect", "postgresql", "ADDRESS", "-o", "out", "--seconds", "1", "--every", "1"),
    ("collect", "vcenter", "ADDRESS", "-u", "ro", "-o", "vc.parquet"),
    ("collect", "vcenter", "127.0.0.1", "--port", "1", "-u", "ADDRESS", "-o", "vc.parquet"),
    ("collect", "qemu", "ADDRESS", "-o", "out", "--seconds", "1", "--every", "1"),
    ("diagnose", "ADDRESS", "--json"),
    ("diagnose", ".", "--html", "ADDRESS"),
    ("audit", "ADDRESS"),
    ("show", "ADDRESS"),
    ("import", "ADDRESS", "-o", "x.parquet"),
    ("calibrate", "ADDRESS", "-o", "x.yaml"),
    ("simulate", "ADDRESS"),
    ("plan", "ADDRESS"),
    ("explain", "ADDRESS"),
    ("runs", "show", "ADDRESS"),
    ("runs", "compare", "ADDRESS", "ADDRESS"),
    ("lab", "run", "ADDRESS"),
    ("doctor", "ADDRESS"),
    ("diagnose", "--nothing=ADDRESS"),
    ("ADDRESS",),
)


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder with stand-ins of every tool first on the path."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in TOOLS:
        (programs / name).write_text(_STAND_IN)
        (programs / name).chmod(0o755)
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("RECORD", str(tmp_path / "record.txt"))
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("LEADLINE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "tmp").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(secrets_of, "_known", set())
    monkeypatch.setattr(secrets_of, "_taken", {})
    yield tmp_path
    monkeypatch.setattr("tempfile.tempdir", None)


@cache
def built() -> Any:
    """The command line, built once."""
    return get_command(build_app())


def command(words: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """One command line, from beginning to end, in this process."""
    monkeypatch.setattr(sys, "argv", ["leadline", *words])
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setattr(main, "build_app", built)
    with pytest.raises(SystemExit) as ended:
        main.run()
    return int(ended.value.code or 0)


def words_of(place: tuple[str, ...], address: str) -> list[str]:
    """The words of a place; what is named in files is in files, as users would have it."""
    Path("hosts.txt").write_text(f"127.0.0.1,1 {address}\n{address} /tmp\n")
    Path("fleet.yaml").write_text(
        f"leadline_fleet: 1\nvcenter: {{host: {address!r}, user: me}}\ntemplate: t\ncount: 1\n"
        "place: {datastores: [d]}\nload: {workload: hci-4k-read, paths: /tmp}\n"
    )
    files = {"HOSTS": "hosts.txt", "FLEET": "fleet.yaml"}
    return [files.get(word, word.replace("ADDRESS", address)) for word in place]


def traces(password: str) -> list[str]:
    """How a password may look when it comes back; the parts of an odd one, too."""
    parts = [part for part in re.split(r"[^A-Za-z0-9]+", password) if len(part) > 2]
    return list(dict.fromkeys([password, quote(password, safe=""), *parts]))


def everything(ground: Path, *more: str) -> Iterator[tuple[str, str]]:
    """What was printed, and what is in the files that are left, but for those that are the user's own."""
    for number, text in enumerate(more):
        yield f"output {number}", text
    for path in ground.rglob("*"):
        if path.is_file() and path.name not in ("hosts.txt", "fleet.yaml", "secret.txt"):
            yield str(path.relative_to(ground)), path.read_bytes().decode("utf-8", "replace")


def leaks(ground: Path, password: str, *more: str) -> list[str]:
    return [
        f"{trace} in {where}: {text[max(text.find(trace) - 60, 0) :][:160]!r}"
        for where, text in everything(ground, *more)
        for trace in traces(password)
        if trace.casefold() in text.casefold() or trace.casefold() in where.casefold()
    ]


@pytest.mark.parametrize("password", [PASSWORD, ODD], ids=["plain", "odd"])
@pytest.mark.parametrize("place", PLACES, ids=lambda place: "-".join(place[:3]))
def test_a_password_in_an_address_is_seen_nowhere(
    place: tuple[str, ...],
    password: str,
    ground: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    found: list[str] = []
    at = PLACES.index(place)
    for number, address in enumerate(forms(password)):
        if (number + at) % STRIDE:
            continue
        monkeypatch.setenv("LEADLINE_PASSWORD", "another-one")
        monkeypatch.setattr(secrets_of, "_known", set())
        command(words_of(place, address), monkeypatch)
        printed = capfd.readouterr()
        found += [f"{place} {address}: {leak}" for leak in leaks(ground, password, printed.out, printed.err)]
    assert found == []


@pytest.mark.parametrize("variable", secrets_of.VARIABLES)
@pytest.mark.parametrize(
    "words",
    [
        ("bench", "run", "pgbench", "--on", "host=127.0.0.1 port=1 dbname=x", "--destroy-data", "SAME", "--yes"),
        ("bench", "run", "sysbench-mysql", "--on", "mysql://me@127.0.0.1:1/x", "--destroy-data", "SAME", "--yes"),
        ("bench", "run", "hci-4k-read", "--on", ".", "--set-size", "1m", "--yes"),
        ("bench", "run", "network", "--on", "127.0.0.1", "--yes"),
        ("bench", "hosts", "hci-4k-read", "--hosts", "HOSTS", "--yes", "--ask-password"),
        ("bench", "fleet", "FLEET", "--dry-run"),
        ("probe", "--on", ".", "--yes", "--seconds", "1", "--pulse", "1"),
        ("collect", "postgresql", "host=127.0.0.1 port=1", "-o", "out", "--seconds", "1", "--every", "1"),
        ("collect", "vcenter", "127.0.0.1", "--port", "1", "-u", "ro", "-o", "vc.parquet"),
        ("doctor",),
    ],
    ids=lambda words: "-".join(words[:3]),
)
def test_a_password_of_the_environment_reaches_no_child(
    words: tuple[str, ...],
    variable: str,
    ground: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(variable, PASSWORD)
    own = words_of(tuple(words[4] if word == "SAME" else word for word in words), "127.0.0.1,1")
    command(own, monkeypatch)
    printed = capfd.readouterr()
    assert leaks(ground, PASSWORD, printed.out, printed.err) == []
    assert variable not in os.environ


def test_the_stand_ins_would_see_it(ground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search finds what it looks for: a child that is given the password in its environment writes it down."""
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    subprocess.run(["pgbench", f"password={ODD}"], check=False)
    assert {leak.split(" in ")[0] for leak in leaks(ground, PASSWORD)} == set(traces(PASSWORD))
    assert leaks(ground, ODD)


def test_a_password_of_a_file_is_not_repeated(
    ground: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("secret.txt").write_text(f"{PASSWORD}\n")
    for words in (("bench", "fleet", "FLEET", "--password-file", "secret.txt", "--dry-run"),):
        command(words_of(words, "127.0.0.1"), monkeypatch)
        printed = capfd.readouterr()
        assert leaks(ground, PASSWORD, printed.out, printed.err) == []


def test_our_own_command_line_and_environment_hide_it(ground: Path) -> None:
    """What the kernel shows of the process itself, sampled while it waits for an answer that never comes."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        target = f"postgresql://me:{PASSWORD}@127.0.0.1:{silent.getsockname()[1]}/x"
        words = [sys.executable, "-m", "leadline.faces.cli.main", "collect", "postgresql", target, "-o", "out"]
        code = "import sys; sys.argv[0] = 'leadline'; from leadline.faces.cli.main import run; run()"
        words = [sys.executable, "-c", code, *words[3:]]
        own = subprocess.Popen(words, env={**os.environ, "PGPASSWORD": ODD, "LEADLINE_PASSWORD": PASSWORD})
        try:
            silent.settimeout(60.0)
            held, _ = silent.accept()
            seen = [Path(f"/proc/{own.pid}/{name}").read_bytes() for name in ("cmdline", "environ")]
            held.close()
        finally:
            own.kill()
            own.wait()
    assert b"collect" in seen[0]
    for trace in traces(PASSWORD):
        assert trace.encode() not in b"".join(seen)
    assert ODD.encode() not in seen[1]


def test_stores_are_their_owners_alone(
    ground: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    home = ground / "home"
    for _ in range(2):
        command(["simulate", "mm1", "--keep"], monkeypatch)
        command(["bench", "run", "hci-4k-read", "--on", ".", "--set-size", "1m", "--yes"], monkeypatch)
        capfd.readouterr()
        newest = max((home / "runs").iterdir(), key=lambda path: path.stat().st_mtime_ns)
        kept = [home, home / "runs", newest, *home.glob("runs.sqlite*"), *newest.rglob("*")]
        assert any(path.name == "runs.sqlite" for path in kept)
        assert {stat.S_IMODE(path.stat().st_mode) for path in kept if path.is_dir()} == {0o700}
        assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in kept if path.is_file()} == {0}
        for path in (home, *home.rglob("*")):  # as older versions left them
            path.chmod(0o755 if path.is_dir() else 0o644)
    command(["runs", "list"], monkeypatch)
    assert {stat.S_IMODE(path.stat().st_mode) for path in (home, home / "runs")} == {0o700}
    assert stat.S_IMODE((home / "runs.sqlite").stat().st_mode) == 0o600
