"""What may never be loaded, whatever the user says, and that every way of loading refuses it."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest

from leadline.app.density import instances as density_instances
from leadline.app.measure import benching
from leadline.app.probe import probing
from leadline.app.sweep.sweeping import SweepWish, plan_sweep
from leadline.app.traces import replaying
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import UsageError
from leadline.core.model.workload import find_workload, parse_workload
from leadline.core.system import safety
from leadline.core.system.opened import Targets
from leadline.faces.cli.main import build_app
from tests.traces import write_vscsi

IO = "name: t\nio_settings: {working_set: 1m}\nio: [{read_pct: 50}]\n"
HOME = pwd.getpwuid(os.getuid()).pw_dir
SYSTEM = ["/", "/etc", "/etc/default", "/usr", "/usr/share", "/var", "/var/lib", "/boot", "/dev", "/proc", "/sys"]
SYSTEM += ["/home", "/root", "/dev/../etc", "/proc/self/root", "/dev/pts", "/bin", HOME]


def _replay(target: Target, folder: Path) -> None:
    trace = folder / "t.vscsi"
    write_vscsi(trace, 100)
    replaying.plan_replay(trace, replaying.ReplayAsk(target.name, target.destroy))


def _planned(name: str) -> Callable[[Target, Path], object]:
    return lambda target, _: benching.plan(find_workload(name), target)


def _io(target: Target, _: Path) -> None:
    benching.plan(parse_workload(IO, "t"), target)


WAYS: dict[str, Callable[[Target, Path], object]] = {
    "bench run": _io,
    "sweep": lambda target, _: plan_sweep(parse_workload(IO, "t"), target, SweepWish(loads="1")),
    "density": lambda target, _: density_instances.site_of(parse_workload(IO, "t"), target),
    "probe": lambda target, folder: probing.plan(
        target, folder / "out", seconds=(0.0, 1.0), limit=None, size="1m", shape=probing.PulseShape(outstanding=1)
    ),
    "replay": _replay,
    "ioping": _planned("ioping"),
    "pg_test_fsync": _planned("pg-test-fsync"),
    "pgbench": _planned("pgbench"),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_loading_refuses_what_may_never_be_loaded(way: str, tmp_path: Path) -> None:
    cluster = tmp_path / "pg" / "data"
    cluster.mkdir(parents=True)
    (cluster / "postmaster.pid").write_text("1\n")
    names = {"": "an empty name", "/etc": "a system folder", str(cluster): "PostgreSQL server that runs"}
    for name, part in names.items():
        with pytest.raises(UsageError, match=part):
            WAYS[way](Target(name, name), tmp_path)
    if way != "pgbench":
        with pytest.raises(UsageError, match="Make the folder first: mkdir -p"):
            WAYS[way](Target(str(tmp_path / "none"), str(tmp_path / "none")), tmp_path)
    assert sorted(path.name for path in cluster.iterdir()) == ["postmaster.pid"]


@pytest.mark.parametrize("name", SYSTEM)
def test_places_of_the_system_are_refused(name: str, tmp_path: Path) -> None:
    if not Path(name).exists():
        pytest.skip("not on this machine")
    (tmp_path / "link").symlink_to(name)
    for own in (name, str(tmp_path / "link")):
        with pytest.raises(UsageError, match=r"a system folder .*; expected a target that nothing else depends on"):
            safety.require_usable(own)


def test_a_file_of_the_system_is_refused_even_when_named() -> None:
    with pytest.raises(UsageError, match=r"a system folder \(/etc\)"):
        _io(Target("/etc/passwd", "/etc/passwd"), Path())


def test_what_lies_below_a_home_or_in_memory_is_a_target(tmp_path: Path) -> None:
    assert safety.require_usable("/dev/shm") == Path("/dev/shm")
    assert safety.require_usable(str(tmp_path)) == tmp_path


@pytest.mark.parametrize(
    ("path", "place"),
    [("/etc", "/etc"), ("//etc/x/..", "/etc"), ("/usr/lib", "/usr"), ("/var", "/var"), ("/var/tmp", None)],
)
def test_places_of_other_machines_are_told_by_their_names(path: str, place: str | None) -> None:
    assert safety.system_place(path) == place


def test_the_files_of_a_server_are_found_above_at_and_below(tmp_path: Path) -> None:
    cluster = tmp_path / "postgresql" / "15" / "main"
    (cluster / "base" / "1").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    for folder in (tmp_path, cluster, cluster / "base"):
        safety.require_usable(str(folder))
    (cluster / "postmaster.pid").write_text("1\n")
    (cluster / "base" / "1" / "1234").write_bytes(bytes(2**21))
    file = str(cluster / "base" / "1" / "1234")
    for name in (str(tmp_path), str(cluster.parent), str(cluster), str(cluster / "base"), file):
        with pytest.raises(UsageError, match="the files of a PostgreSQL server that runs"):
            _io(Target(name, name), tmp_path)
    safety.require_usable(str(tmp_path / "other"))


def test_the_log_a_server_keeps_elsewhere_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, log, space = (tmp_path / name for name in ("data", "log", "space"))
    for folder in (data / "pg_tblspc", log, space):
        folder.mkdir(parents=True)
    (data / "pg_wal").symlink_to(log)
    (data / "pg_tblspc" / "16384").symlink_to(space)
    for folder in (log, space):
        safety.require_usable(str(folder))
    monkeypatch.setattr(safety, "_served_folders", lambda: iter([data]))
    for folder in (log, space, data, tmp_path):
        with pytest.raises(UsageError, match="PostgreSQL server"):
            safety.require_usable(str(folder))


def test_two_roles_may_not_name_one_file(tmp_path: Path) -> None:
    data, log = tmp_path / "data", tmp_path / "log"
    data.write_bytes(bytes(2**21))
    log.write_bytes(bytes(2**21))
    (tmp_path / "link").symlink_to(data)
    (tmp_path / "hard").hardlink_to(data)
    streams = "[{name: data, read_pct: 100}, {name: wal, role: wal, read_pct: 100}]"
    workload = parse_workload(f"name: t\nio_settings: {{working_set: 1m}}\nio: {streams}\n", "t")
    for name in ("data", "link", "hard"):
        with pytest.raises(UsageError, match="--wal: the same file or device as --on"):
            benching.plan(workload, Target(str(data), roles={"wal": str(tmp_path / name)}))
    assert len(benching.plan(workload, Target(str(data), roles={"wal": str(log)})).places) == 2


def test_a_target_of_another_run_is_refused_in_the_plan(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(bytes(2**21))
    own = Targets()
    own.open(str(file), "t0", None, writes=True)
    for way in ("bench run", "sweep", "density", "probe", "replay", "ioping"):
        with pytest.raises(UsageError, match=f"process {os.getpid()} has locked"):
            WAYS[way](Target(str(file), str(file)), tmp_path)
    own.close()
    folder = tmp_path / "folder"
    folder.mkdir()
    plans = [benching.plan(parse_workload(IO, "t"), Target(str(folder))) for _ in range(2)]
    from leadline.benchmarks import fio

    fio.reach(plans[0])
    with pytest.raises(UsageError, match="has locked"):
        fio.reach(plans[1])
    with pytest.raises(UsageError, match="has locked"):
        benching.plan(parse_workload(IO, "t"), Target(str(folder)))
    fio.clean(plans[1])
    assert len(list(folder.iterdir())) == 1
    fio.clean(plans[0])
    assert list(folder.iterdir()) == []


def test_a_file_a_loop_device_is_made_of_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "swap file"
    file.write_bytes(bytes(2**21))
    (tmp_path / "swap").hardlink_to(file)
    swaps = tmp_path / "swaps"
    swaps.write_text(f"Filename Type Size Used Priority\n{tmp_path}/swap file 1 0 -2\n")
    monkeypatch.setattr(safety, "_SWAPS", swaps)
    with pytest.raises(UsageError, match=r"a device in use \(swap\)"):
        safety.usable(file, str(file), writes=True)
    assert safety.usable(file, None, writes=False).size_bytes == 2**21


def test_yes_does_not_allow_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app = build_app()
    for verb in (["bench", "run", "hci-8k-50-50"], ["bench", "sweep", "hci-8k-50-50"], ["probe", "-o", "never"]):
        for name in ("/etc", "", "/nowhere/at/all", "/usr"):
            with pytest.raises(UsageError, match=r"an empty name|a system folder|Make the folder first"):
                app([*verb, "--on", name, "--destroy-data", name, "--yes"], standalone_mode=False)
    assert list(tmp_path.iterdir()) == []
