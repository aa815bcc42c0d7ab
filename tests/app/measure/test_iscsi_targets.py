"""LUNs as targets of a load: their addresses, and a real target in user space with one session and with several."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from leadline.app.measure import benching
from leadline.app.measure.iscsi_targets import lun_of
from leadline.benchmarks import fio
from leadline.core.contracts.benchmark import LoadPlan, Place, Step
from leadline.core.contracts.honoured import StreamLoad
from leadline.core.contracts.load_target import Target, TargetKind
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.workload import Workload, find_workload

IQN = "iqn.2026-11.org.leadline:db"
NAME = f"iscsi://10.0.0.5/{IQN}/1"
MIB = 1024**2


def test_an_address_is_a_kind_of_its_own() -> None:
    assert Target(NAME).kind is TargetKind.LUN


def test_an_address_names_a_lun(tmp_path: Path) -> None:
    assert lun_of(NAME).options("d0") == (
        f"driver=iscsi,transport=tcp,node-name=d0,portal=10.0.0.5:3260,target={IQN},lun=1"
    )
    password = tmp_path / "password"
    password.write_text("a-long-password")
    lun = lun_of(f"iscsi://dba@[fe80::1]:3261/{IQN}/7?sessions=4&chap_file={password}")
    assert (lun.portal, lun.lun, lun.sessions) == ("[fe80::1]:3261", 7, 4)
    assert lun.options("d0").endswith(",user=dba,password-secret=chap")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("iscsi://10.0.0.5", "an address that names no LUN"),
        (f"iscsi://10.0.0.5/{IQN}", "an address that names no LUN"),
        (f"iscsi://10.0.0.5/{IQN},x=y/1", "an address that names no LUN"),
        (f"{NAME}?sessions=0", "0 of sessions"),
        (f"{NAME}?sessions=many", "many of sessions"),
        (f"{NAME}?session=2", "session after the ?"),
        (f"iscsi://dba@10.0.0.5/{IQN}/1", "a user without chap_file"),
        (f"iscsi://dba@10.0.0.5/{IQN}/1?chap_file=/nowhere/at-all", "chap_file /nowhere/at-all"),
    ],
)
def test_what_names_no_lun_is_refused(name: str, found: str) -> None:
    with pytest.raises(UsageError, match=r".*") as caught:
        lun_of(name)
    assert found in str(caught.value)


def test_data_is_overwritten_only_when_it_is_named() -> None:
    workload = find_workload("hci-8k-50-50")
    with pytest.raises(UsageError, match="data that would be overwritten"):
        benching.plan(workload, Target(NAME))
    assert not benching.plan(workload, Target(NAME, NAME)).read_only
    assert benching.plan(find_workload("hci-4k-read"), Target(NAME)).read_only


def test_there_is_a_job_for_each_session() -> None:
    with pytest.raises(UsageError, match="jobs"):
        benching.plan(reads(jobs=2), Target(f"{NAME}?sessions=3"))


def test_all_streams_are_on_luns() -> None:
    workload = Workload.model_validate(
        {"name": "two", "io": [{"name": "a"}, {"name": "b", "role": "wal"}], "io_settings": {"working_set": "1m"}}
    )
    with pytest.raises(UsageError, match="beside one that is"):
        benching.plan(workload, Target(NAME, roles={"wal": "/tmp"}))


def test_jobs_are_dealt_out_to_the_sessions_as_one_stream() -> None:
    place = Place("nbd+unix:///s0?socket=/x", MIB, is_made=False, further=("nbd+unix:///s1?socket=/x",))
    text = fio.job_file(LoadPlan(reads(jobs=5), Target(NAME), {"io": place}, engine="nbd"), Step("round-1", 1.0, 1))
    sections = text.split("\n\n")[1:]
    assert [section.splitlines()[0] for section in sections] == ["[io]", "[io]"]
    assert ["new_group=1" in section for section in sections] == [True, False]
    assert ["s0" in section for section in sections] == [True, False]
    assert sum(int(line.partition("=")[2]) for line in text.splitlines() if line.startswith("numjobs=")) == 5


def reads(jobs: int) -> Workload:
    return Workload.model_validate(
        {
            "name": "reads",
            "io": [{"name": "io", "jobs": jobs, "oio": 1, "block": "4k"}],
            "io_settings": {"working_set": "16m"},
            "timing": {"warm_up_s": 0, "rounds": 1, "measure_s": 2},
        }
    )


@dataclass
class TgtServer:
    """A target of the Linux SCSI target framework, in user space."""

    image: Path
    port: int
    control: int
    process: subprocess.Popen[bytes]

    def admin(self, *words: str) -> str:
        command = ["tgtadm", "-C", str(self.control), "--lld", "iscsi", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def name(self, rest: str = "", user: str = "") -> str:
        return f"iscsi://{user}127.0.0.1:{self.port}/{IQN}/1{rest}"


@pytest.fixture(scope="module")
def tgt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TgtServer]:
    if shutil.which("tgtd") is None or os.geteuid() != 0:
        pytest.skip("tgtd is not installed, or nobody may start it here")
    image = tmp_path_factory.mktemp("tgt") / "disk.img"
    with image.open("xb") as file:
        file.truncate(64 * MIB)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    control = 1000 + os.getpid() % 30000
    words = ["tgtd", "-f", "-C", str(control), "--iscsi", f"portal=127.0.0.1:{port}"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    server = TgtServer(image, port, control, process)
    try:
        for _ in range(100):
            try:
                server.admin("--op", "new", "--mode", "target", "--tid", "1", "-T", IQN)
                break
            except subprocess.CalledProcessError:
                time.sleep(0.1)
        server.admin("--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "-b", str(image))
        server.admin("--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL")
        yield server
    finally:
        process.kill()  # it ends by no other signal while it has a target
        process.wait(10)


@pytest.mark.real
@pytest.mark.parametrize("sessions", [1, 3])
def test_a_lun_is_loaded_by_so_many_sessions(
    tgt: TgtServer, tmp_path: Path, sessions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    before = fio.measure

    def looked_at(*words: object) -> object:
        seen.append(tgt.admin("--op", "show", "--mode", "target").count("I_T nexus: "))
        return before(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(fio, "measure", looked_at)
    name = tgt.name(f"?sessions={sessions}")
    load_plan = benching.plan(reads(jobs=3), Target(name))
    driver = benching.carrier_of(load_plan)
    try:
        driver.prepare(load_plan, tmp_path, print)
        measured = driver.measure(load_plan, Step("round-1", 2.0, 1), tmp_path, lambda _: True)
    finally:
        driver.clean(load_plan)
    assert seen == [sessions]
    (load,) = measured.loads
    assert isinstance(load, StreamLoad)
    assert load.name == "io"
    assert load.reads > 50
    assert round(load.jobs) == 3


@pytest.mark.real
def test_what_a_load_writes_is_on_the_lun(tgt: TgtServer, tmp_path: Path) -> None:
    name = tgt.name("?sessions=2")
    stream = reads(jobs=2).io[0].model_copy(update={"read_pct": 0.0})
    workload = reads(jobs=2).model_copy(update={"io": (stream,)})
    load_plan = benching.plan(workload, Target(name, name))
    driver = benching.carrier_of(load_plan)
    said: list[str] = []
    try:
        driver.prepare(load_plan, tmp_path, said.append)
    finally:
        driver.clean(load_plan)
    assert any(text.startswith(f"filling {name}") for text in said)
    content = tgt.image.read_bytes()[: 16 * MIB]
    assert all(any(content[start : start + 4096]) for start in range(0, 16 * MIB, 4096))


@pytest.mark.real
def test_a_target_that_refuses_is_told(tgt: TgtServer, tmp_path: Path) -> None:
    with pytest.raises(ToolError) as caught:
        prepared(f"{tgt.name()[:-1]}9", tmp_path)
    assert "LUN 9" in str(caught.value)


@pytest.mark.real
def test_a_working_set_larger_than_the_lun_is_refused(tgt: TgtServer, tmp_path: Path) -> None:
    workload = reads(jobs=1)
    large = workload.model_copy(
        update={"io_settings": workload.io_settings.model_copy(update={"working_set": 128 * MIB})}
    )
    load_plan = benching.plan(large, Target(tgt.name()))
    with pytest.raises(ToolError, match="64 MiB"):
        try:
            benching.carrier_of(load_plan).prepare(load_plan, tmp_path, print)
        finally:
            benching.carrier_of(load_plan).clean(load_plan)


@pytest.mark.real
def test_a_user_logs_in_by_the_password_in_a_file(tgt: TgtServer, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("twelve-letters")
    tgt.admin("--op", "new", "--mode", "account", "--user", "dba", "--password", "twelve-letters")
    tgt.admin("--op", "bind", "--mode", "account", "--tid", "1", "--user", "dba")
    try:
        prepared(tgt.name(f"?chap_file={password}", "dba@"), tmp_path)
        password.write_text("another-secret")
        with pytest.raises(ToolError) as caught:
            prepared(tgt.name(f"?chap_file={password}", "dba@"), tmp_path)
        assert "another-secret" not in str(caught.value)
        with pytest.raises(ToolError):
            prepared(tgt.name(), tmp_path)
    finally:
        tgt.admin("--op", "unbind", "--mode", "account", "--tid", "1", "--user", "dba")


def prepared(name: str, folder: Path) -> None:
    load_plan = benching.plan(reads(jobs=1), Target(name))
    driver = benching.carrier_of(load_plan)
    try:
        driver.prepare(load_plan, folder, print)
    finally:
        driver.clean(load_plan)
