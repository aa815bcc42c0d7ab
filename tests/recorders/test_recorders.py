"""The scripts that record where nothing can be installed: whole, readable by every shell, tried on real machines."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import Imported, import_paths
from leadline.app.recorders import RecorderAsk, parts, script
from leadline.core.model.errors import UsageError
from leadline.core.model.vocabulary import EntityKind, Layer
from tests.command_line import leadline as run

SHELL = [name for name, part in parts().items() if part.ending == ".sh"]
BUSYBOX, SHELLCHECK = shutil.which("busybox"), shutil.which("shellcheck")
NEEDED = tuple(
    "sh awk cat cut date df du grep gzip head hostname mkdir rm rmdir sed sleep tail tar tr uname".split()
)  # what every Unix has


def recorded(folder: Path, text: str, *, seconds: float, path: str = "", shell: tuple[str, ...] = ("sh",)) -> Path:
    """The archive that a script makes in a folder when Ctrl-C ends it."""
    (folder / "record.sh").write_text(text)
    environment = {"PATH": path or os.environ["PATH"], "HOME": str(folder), "WHERE": str(folder)}
    environment |= {name: value for name, value in os.environ.items() if name.startswith("PG")}
    process = subprocess.Popen([*shell, str(folder / "record.sh")], env=environment, cwd=folder, stderr=subprocess.PIPE)
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    (archive,) = folder.glob("leadline-*.tar*")
    assert f"Recorded: {folder}/{archive.name}" in said.decode()
    return archive


def only_needed(folder: Path, *more: str) -> str:
    """A PATH on which nothing is but what every Unix has, and what is named where it is here."""
    tools = folder / "bin"
    tools.mkdir()
    for name in (*NEEDED, *more):
        where = shutil.which(name)
        if where is not None:
            (tools / name).symlink_to(where)
    return str(tools)


def read(archive: Path) -> Imported:
    return import_paths([archive])


def names_in(archive: Path) -> dict[str, str]:
    with tarfile.open(archive) as tar:
        files = [member for member in tar.getmembers() if member.isfile()]
        return {Path(m.name).name: tar.extractfile(m).read().decode() for m in files}  # type: ignore[union-attr]


@pytest.mark.parametrize("name", sorted(parts()))
def test_a_script_is_whole_and_says_what_it_does(name: str) -> None:
    text = script([name], RecorderAsk(minutes=7, interval_s=3, max_mib=50))
    assert re.findall(r"@[A-Z_]+@", text) == []
    head = text.split("\n\n")[0]
    for line in parts()[name].collects:
        assert line in head
    assert "What it does not collect: data, passwords" in head
    assert parts()[name].tried in head
    assert "7" in text
    assert not any(line.rstrip() != line for line in text.splitlines())


def test_texts_of_statements_are_collected_on_request_only() -> None:
    assert "statement_text" in script(["postgresql"], RecorderAsk())
    assert 'QUERIES=""' in script(["postgresql"], RecorderAsk())
    assert 'QUERIES="yes"' in script(["postgresql"], RecorderAsk(with_queries=True))
    assert "texts of statements." in script(["mysql"], RecorderAsk()).split("\n\n")[0]
    assert "which holds the texts of statements" in script(["mysql"], RecorderAsk(with_queries=True)).split("\n\n")[0]


def test_a_target_that_is_not_there_and_a_mixture_are_refused() -> None:
    with pytest.raises(UsageError, match="expected one of esxi, linux, mysql"):
        script(["aix"], RecorderAsk())
    with pytest.raises(UsageError, match="targets of one system"):
        script(["linux", "windows"], RecorderAsk())


@pytest.mark.parametrize("name", SHELL)
@pytest.mark.parametrize("shell", [("sh",), ("busybox", "sh")])
def test_every_shell_can_read_it(tmp_path: Path, name: str, shell: tuple[str, ...]) -> None:
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not here")
    (tmp_path / "record.sh").write_text(script([name], RecorderAsk()))
    done = subprocess.run([*shell, "-n", str(tmp_path / "record.sh")], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(SHELLCHECK is None, reason="shellcheck is not here")
@pytest.mark.parametrize("name", SHELL)
def test_shellcheck_finds_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "record.sh").write_text(script([name], RecorderAsk()))
    done = subprocess.run([str(SHELLCHECK), "-s", "sh", str(tmp_path / "record.sh")], capture_output=True, check=False)
    assert done.stdout.decode() == ""


def test_the_verb_lists_and_writes(tmp_path: Path) -> None:
    listed = run("recorder")
    assert all(name in listed.stdout for name in parts())
    assert "never run on a real ESXi host" in " ".join(listed.stdout.split())
    assert {t["name"] for t in json.loads(run("recorder", "--json").stdout)["targets"]} == set(parts())
    printed = run("recorder", "linux", "--minutes", "3")
    assert printed.stdout == script(["linux"], RecorderAsk(minutes=3))
    written = run("recorder", "linux", "postgresql", "-o", str(tmp_path / "record.sh"))
    assert written.returncode == 0
    assert (tmp_path / "record.sh").read_text() == script(["linux", "postgresql"], RecorderAsk())
    refused = run("recorder", "solaris")
    assert refused.returncode == 2
    assert "leadline recorder lists them" in refused.stderr


@pytest.mark.real
@pytest.mark.smoke
def test_a_machine_with_nothing_installed_is_recorded(tmp_path: Path) -> None:
    archive = recorded(tmp_path, script(["linux"], RecorderAsk()), seconds=6, path=only_needed(tmp_path))
    files = names_in(archive)
    assert "neither pidstat (sysstat) nor procps' top is here" in files["not-recorded.txt"]
    assert "ss (iproute2) is not here" in files["not-recorded.txt"]
    imported = read(archive)
    assert {"linux.txt", "facts.json"} <= {Path(one.name).name for one in imported.capture.sources}
    capture = imported.capture
    assert len(capture.of("guest_cpu_busy_pct", EntityKind.GUEST)[0].times_ns) >= 4
    assert capture.of("guest_memory_available_mib")
    assert capture.of("disk_iops") or capture.of("disk_reads_per_s")
    (guest,) = capture.inventory.of_kind(EntityKind.GUEST)
    assert capture.inventory.get(guest, "cpu_count") == os.cpu_count()
    assert diagnose(capture).layer(Layer.GUEST) is not None


@pytest.mark.real
@pytest.mark.skipif(BUSYBOX is None, reason="BusyBox is not here")
def test_busybox_records_alone(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in (*NEEDED, "top"):
        (tools / name).symlink_to(str(BUSYBOX))
    archive = recorded(
        tmp_path, script(["linux"], RecorderAsk()), seconds=6, path=str(tools), shell=(str(tools / "sh"),)
    )
    capture = read(archive).capture
    assert len(capture.of("guest_cpu_busy_pct", EntityKind.GUEST)[0].times_ns) >= 3


@pytest.mark.real
def test_all_that_is_installed_is_used(tmp_path: Path) -> None:
    if shutil.which("pidstat") is None:
        pytest.skip("sysstat is not here")
    archive = recorded(tmp_path, script(["linux"], RecorderAsk()), seconds=7)
    imported = read(archive)
    assert "pidstat.txt" in {Path(one.name).name for one in imported.capture.sources}
    assert imported.capture.of("process_cpu_pct")


@pytest.mark.real
def test_it_ends_by_itself_by_size_and_after_a_kill(tmp_path: Path) -> None:
    text = script(["linux"], RecorderAsk(max_mib=1)).replace("MAX_MIB * 1024", "20")
    (tmp_path / "record.sh").write_text(text)
    done = subprocess.run(["sh", "record.sh"], cwd=tmp_path, capture_output=True, timeout=90, check=True)
    assert b"Recorded: ./leadline-" in done.stderr
    (archive,) = tmp_path.glob("*.tar.gz")
    assert "ended early: more than 1 MiB" in names_in(archive)["not-recorded.txt"]
    (tmp_path / "record.sh").write_text(script(["linux"], RecorderAsk()))
    process = subprocess.Popen(["sh", "record.sh"], cwd=tmp_path, stderr=subprocess.DEVNULL)
    time.sleep(5)
    process.kill()
    process.wait()
    (folder,) = (path for path in tmp_path.glob("leadline-*") if path.is_dir())
    time.sleep(4)
    size = sum(path.stat().st_size for path in folder.glob("linux.txt"))
    time.sleep(3)
    assert sum(path.stat().st_size for path in folder.glob("linux.txt")) == size  # nothing records on
    assert read(folder).capture.of("guest_cpu_busy_pct")


@pytest.mark.real
def test_a_folder_without_room_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "record.sh").write_text(script(["linux"], RecorderAsk(max_mib=100_000_000)))
    done = subprocess.run(["sh", "record.sh"], cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert done.returncode == 1
    assert b"MiB free; expected twice MAX_MIB" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["record.sh"]


@pytest.mark.real
def test_a_database_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", str(tmp_path))
    path = only_needed(tmp_path, "psql")
    archive = recorded(tmp_path, script(["postgresql", "mysql"], RecorderAsk()), seconds=3, path=path)
    said = names_in(archive)["not-recorded.txt"]
    assert re.search(r"PostgreSQL: psql (reaches no server|is not here)", said)
    assert "MySQL: neither mysql nor mariadb is here" in said
