"""Hosts over SSH: a real SSH server on loopback, real fio behind it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.app.bench.hosts import hosts_of, run_hosts
from leadline.app.measure.benching import capture_of
from leadline.app.measure.comparing_runs import compare_runs
from leadline.app.measure.hosts import Host, HostsOptions, HostsResult, load_hosts, read_hosts, require_destroyable
from leadline.app.measure.remote_scripts import objection, read_check
from leadline.core.model.errors import InputError, ToolError, UsageError
from leadline.core.model.workload import Workload, parse_workload
from leadline.core.system.secret import Secret
from leadline.core.system.ssh import parse_login
from leadline.core.system.tools import find_program
from leadline.stores.runs import RunStore
from tests import sshd
from tests.fio_servers import fio_server

pytestmark = pytest.mark.real
NO_SSH = sshd.missing() or (None if find_program("fio") else "fio is not installed")
needs_ssh = pytest.mark.skipif(NO_SSH is not None, reason=str(NO_SSH))
SECRET = "correct horse battery staple"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sshd.Server]:
    """A server, and its user's home as ours."""
    own = tmp_path / "ssh"
    own.mkdir()
    with sshd.ssh_server(own) as found:
        monkeypatch.setenv("HOME", str(found.home))
        monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
        yield found


@pytest.fixture
def target(tmp_path: Path) -> Path:
    found = tmp_path / "target"
    found.mkdir()
    return found


def workload(seconds: int = 3, rounds: int = 1) -> Workload:
    timing = f"timing: {{warm_up_s: 0, measure_s: {seconds}, rounds: {rounds}}}\n"
    return parse_workload(f"name: t\nio_settings: {{working_set: 4m}}\n{timing}io: [{{rate_iops: 200, oio: 4}}]\n", "t")


def load(hosts: list[Host], folder: Path, seconds: int = 3, options: HostsOptions | None = None) -> HostsResult:
    work = folder / "work"
    work.mkdir()
    own = options or HostsOptions()
    return load_hosts(workload(seconds), hosts, work, seed=1, say=lambda _: None, options=own)


def error_of(done: HostsResult, index: int = 0) -> str:
    return str(done.hosts[index].error)


@needs_ssh
def test_a_run_over_ssh_is_kept_with_the_counters_of_the_host(
    server: sshd.Server, target: Path, tmp_path: Path
) -> None:
    store = RunStore(tmp_path / "store")
    with fio_server(tmp_path) as other:
        hosts = [Host(server.address, str(target)), Host(other, str(target))]
        runs = [run_hosts(workload(2, 2), hosts, store, say=lambda _: None, seed=seed) for seed in (1, 2)]
    for own, done in runs:
        assert [host.error for host in done.hosts] == [None, None]
        assert own.state == "done"
        assert own.host[f"{server.address} kernel"] == os.uname().release
        assert done.per_s == pytest.approx(400, rel=0.5)
        assert done.start_spread_s >= 0.0
        assert ("fio", "--output-format=json+", f"--client={server.address}", "host-1-round-1.fio") in own.commands
        assert any(note.startswith("hosts started within") for note in own.notes)
        kept = store.get(own.id)
        again = hosts_of(kept)
        assert again is not None
        assert [host.per_s for host in again.hosts] == [host.per_s for host in done.hosts]
        assert again.percentiles_ms() == done.percentiles_ms()
        # All hosts are one row: rates added up, latencies pooled.
        (pooled,) = kept.pooled()
        assert pooled.per_s == pytest.approx(done.per_s)
        assert pooled.percentiles_ms == done.percentiles_ms()
        found = capture_of(own.id, store)
        assert [s.host for s in found.sources if s.name.endswith("linux-1.txt")] == [os.uname().nodename]
        assert found.series_count > 20
    assert "operations" in [metric.name for metric in compare_runs([runs[0][0]], [runs[1][0]]).metrics]
    assert list(target.iterdir()) == []


@needs_ssh
def test_nothing_is_left_there(server: sshd.Server, target: Path, tmp_path: Path) -> None:
    done = load([Host(server.address, str(target))], tmp_path)
    assert done.hosts[0].error is None, done.hosts[0].error
    assert list(target.iterdir()) == []
    assert not servers_of(target)
    assert (tmp_path / "work" / "linux-1.txt").stat().st_size > 1000


@needs_ssh
@pytest.mark.parametrize("configured", ["", "Host *\n  StrictHostKeyChecking no\n  UserKnownHostsFile none\n"])
def test_a_host_whose_key_is_not_known_is_never_logged_in_to(
    server: sshd.Server, target: Path, tmp_path: Path, configured: str
) -> None:
    server.forget()
    (server.home / ".ssh" / "config").write_text(configured)
    done = load([Host(server.address, str(target))], tmp_path)
    assert "a host key that is not in known_hosts; expected a login over SSH. Log in once" in error_of(done)
    assert f"ssh -p {server.port}" in error_of(done)
    assert (server.home / ".ssh" / "known_hosts").read_text() == ""


@needs_ssh
def test_a_login_that_is_refused_is_told_without_the_password(
    server: sshd.Server, target: Path, tmp_path: Path
) -> None:
    (server.home / ".ssh" / "id_ed25519").unlink()
    options = HostsOptions(password=Secret(SECRET))
    assert SECRET not in repr(options)
    store = RunStore(tmp_path / "store")
    hosts = [Host(server.address, str(target))]
    own, done = run_hosts(workload(), hosts, store, say=lambda _: None, options=options)
    assert "login refused" in error_of(done)
    assert own.state == "failed"
    kept = [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert kept
    assert all(SECRET.encode() not in path.read_bytes() for path in kept)


@needs_ssh
def test_a_connection_that_breaks_leaves_nothing_there(server: sshd.Server, target: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with fio_server(tmp_path) as address:
        hosts = [Host(server.address, str(target)), Host(address, str(other))]

        def cut() -> None:
            while not servers_of(target):  # until it is loaded
                time.sleep(0.1)
            time.sleep(1.5)
            for child in children_of(server.pid):
                os.kill(child, signal.SIGKILL)

        thread = threading.Thread(target=cut, daemon=True)
        thread.start()
        done = load(hosts, tmp_path, seconds=6)
        thread.join(10)
    assert "connection to it was lost" in error_of(done), error_of(done)
    assert done.hosts[1].error is None
    assert done.per_s == pytest.approx(200, rel=0.5)
    deadline = time.monotonic() + 20
    while list(target.iterdir()) or servers_of(target):
        assert time.monotonic() < deadline, "something is left there"
        time.sleep(0.1)


@needs_ssh
@pytest.mark.parametrize(
    ("path", "part"), [("/nonexistent/folder", "no such folder there"), ("/etc/passwd", "a file; name its folder")]
)
def test_a_target_that_may_not_be_loaded_is_refused_there(
    server: sshd.Server, tmp_path: Path, path: str, part: str
) -> None:
    assert part in error_of(load([Host(server.address, path)], tmp_path))


def children_of(pid: int) -> list[int]:
    told = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in told.split()]


def servers_of(target: Path) -> list[int]:
    """Processes that hold a file below a folder open."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            held = [str(link.readlink()) for link in (process / "fd").iterdir()]
        except OSError:
            continue
        if any(path.startswith(f"{target}/") for path in held):
            found.append(int(process.name))
    return found


CHECKED = "fio=fio-3.33\nkind=folder\nwritable=yes\nspace=1000000 500000\nchecked=yes\n"
DEVICE = "fio=fio-3.33\nkind=device\nwritable=yes\nsectors=4096\nfamily=8:0\n{more}checked=yes\n"


@pytest.mark.parametrize(
    ("text", "needed", "destroy", "part"),
    [
        (CHECKED, 100 * 2**20, False, None),
        (CHECKED, 480 * 2**20, False, "may be used"),  # a twentieth stays free
        (CHECKED.replace("fio-3.33", ""), 1, False, "fio is not installed"),
        (CHECKED.replace("writable=yes", ""), 1, False, "may not write"),
        (CHECKED.replace("space=1000000 500000", ""), 1, False, "not known"),
        (DEVICE.format(more=""), 2**20, False, "--destroy-data /x"),
        (DEVICE.format(more=""), 2**20, True, None),
        (DEVICE.format(more=""), 3 * 2**20, True, "smaller than"),
        (DEVICE.format(more="mount=8:0 /srv\n"), 1, True, "mounted at /srv"),
        (DEVICE.format(more="swapped=8:0\n"), 1, True, "swap"),
        (DEVICE.format(more="holder=dm-0\n"), 1, True, "dm-0 is made of it"),
    ],
)
def test_what_a_host_says_decides_whether_it_is_loaded(text: str, needed: int, destroy: bool, part: str | None) -> None:
    found = objection(read_check(text), "/x", needed, destroy=destroy)
    assert found is None if part is None else found is not None and part in found


def test_an_answer_that_was_cut_is_no_answer() -> None:
    with pytest.raises(ToolError, match="no answer"):
        read_check(CHECKED.replace("checked=yes", ""))


def test_the_shell_scripts_are_posix() -> None:
    from leadline.app.measure import remote_scripts as scripts

    for text in (scripts.CHECK, scripts.CLOCK, scripts.SERVE, scripts.SAMPLE):
        subprocess.run(["sh", "-n"], input=text, text=True, check=True)


@pytest.mark.parametrize(
    "address",
    [f"ssh://root:{SECRET.replace(' ', '-')}@db1", "ssh://", "ssh://db1/path", "ssh://db1:port", "ssh://-oProxy"],
)
def test_an_address_that_is_none_is_told_without_its_password(tmp_path: Path, address: str) -> None:
    path = tmp_path / "hosts.txt"
    path.write_text(f"{address} /srv\n")
    with pytest.raises(InputError) as caught:
        read_hosts(path, "/srv")
    assert caught.value.where == f"{path}:1"
    assert "horse" not in str(caught.value)
    assert "horse" not in repr(caught.value.__context__)


def test_an_address_may_name_user_and_port() -> None:
    assert parse_login("ssh://bench@[::1]:2222").command == "ssh -p 2222 bench@::1"


def test_a_target_nobody_named_is_refused() -> None:
    writes = parse_workload("name: t\nio: [{read_pct: 50}]\n", "t")
    reads = parse_workload("name: t\nio: [{read_pct: 100}]\n", "t")
    export, device = Host("a", "nbd://b/disk"), Host("a", "/dev/sdb")
    with pytest.raises(UsageError, match="--destroy-data nbd://b/disk"):
        require_destroyable(writes, [export], ())
    require_destroyable(writes, [export], ("nbd://b/disk",))
    require_destroyable(reads, [export], ())
    with pytest.raises(UsageError):  # nobody can look whether it is mounted there
        require_destroyable(writes, [device], ("/dev/sdb",))
    require_destroyable(writes, [Host("ssh://a", "/dev/sdb")], ())  # looked at there


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Path]:
    """A block device with a hostile name beside it: a loop device of 8 MiB that only this test has."""
    (tmp_path / "image").write_bytes(bytes(8 * 2**20))
    made = subprocess.run(
        ["losetup", "--find", "--show", str(tmp_path / "image")], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"no loop device can be made here: {made.stderr.strip()}")
    yield Path(made.stdout.strip())
    subprocess.run(["losetup", "--detach", made.stdout.strip()], check=True)


@needs_ssh
def test_a_device_is_opened_there_and_fio_sees_a_plain_name(server: sshd.Server, device: Path, tmp_path: Path) -> None:
    link = tmp_path / "v2#1;${HOME}"
    link.symlink_to(device)
    (tmp_path / "v2").write_bytes(b"bystander")
    done = load([Host(server.address, str(link))], tmp_path, 2)
    assert "data that would be overwritten" in error_of(done)
    (tmp_path / "work").rename(tmp_path / "work-1")
    done = load([Host(server.address, str(link))], tmp_path, 2, HostsOptions(destroy=(str(link),)))
    assert done.hosts[0].error is None, done.hosts[0].error
    assert len(set((tmp_path / "image").read_bytes()[:4096])) > 200
    assert (tmp_path / "v2").read_bytes() == b"bystander"
    for job in (tmp_path / "work").glob("*.fio"):
        assert "filename=t0\n" in job.read_text()
        assert "v2" not in job.read_text()


@needs_ssh
def test_a_folder_of_a_hostile_name_is_loaded_there_and_nothing_beside_it(server: sshd.Server, tmp_path: Path) -> None:
    field = tmp_path / "field"
    for name in ("v2#1;x:3 ${HOME}\n", "v2'\"\\"):
        target = field / name
        target.mkdir(parents=True)
        for bystander in ("v2", "v2#1", "v2#1;x", "v2#1;x:3 ${HOME}", "v2'"):
            (field / bystander).write_bytes(b"bystander")
        before = sorted(entry.name for entry in field.iterdir())
        done = load([Host(server.address, str(target))], tmp_path, 1)
        assert done.hosts[0].error is None, done.hosts[0].error
        assert list(target.iterdir()) == []
        assert sorted(entry.name for entry in field.iterdir()) == before
        assert {(field / name).read_bytes() for name in before if (field / name).is_file()} == {b"bystander"}
        (tmp_path / "work").rename(tmp_path / f"work-{len(name)}")


@needs_ssh
@pytest.mark.parametrize(
    ("name", "part"), [("pg", "PostgreSQL server that runs there"), ("/usr/share", "a system folder")]
)
def test_what_may_never_be_loaded_is_refused_there(server: sshd.Server, tmp_path: Path, name: str, part: str) -> None:
    (tmp_path / "pg" / "15" / "main").mkdir(parents=True)
    (tmp_path / "pg" / "15" / "main" / "postmaster.pid").write_text("1\n")
    assert part in error_of(load([Host(server.address, str(tmp_path / name))], tmp_path))


@pytest.mark.parametrize(
    ("path", "part"),
    [("", "an empty name"), ("/a\udcff", "no UTF-8"), ("/a#b", "fio would cut"), ("/etc/x", "a system folder")],
)
def test_a_server_without_ssh_is_given_plain_paths_only(path: str, part: str) -> None:
    with pytest.raises(UsageError, match=part):
        require_destroyable(workload(), [Host("db01", path)], ())
