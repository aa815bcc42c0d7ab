"""Lab files: what is checked, what they become, and every shipped example."""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path

import pytest
import yaml

from leadline.core.model.errors import InputError
from leadline.core.model.workload import parse_workload
from leadline.core.system.cgroups import InstanceLimits, find
from leadline.lab.cpio import FILE, FOLDER, ArchiveEntry, archive
from leadline.lab.hardware import Files, chain, options
from leadline.lab.image import root_image
from leadline.lab.machine import Grounds, launched
from leadline.lab.specification import Guest, read_lab, varied
from tests.lab.conftest import lab_of, planned

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "lab").glob("*.yaml"))
GUEST = """
leadline_lab: 1
name: t
guests:
  - name: a
    adapters: [{name: s, type: pvscsi}, {name: n, type: nvme}]
    disks: [{name: d, adapter: s, size: 64m}, {name: f, adapter: n, size: 64m}]
    load: {workload: {io: [{oio: 4}]}, disk: d}
"""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_read_and_say_what_they_are_for(path: Path) -> None:
    lab = read_lab(path)
    assert lab.name == path.stem
    assert lab.question.endswith("?")
    assert lab.means.endswith(".")
    assert lab.does_not_mean.endswith(".")
    assert any(guest.load is not None for guest in lab.machines())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"guests": [{"name": "a", "memory": "128m"}]}, "at least 384m"),
        ({"guests": [{"name": "a", "disks": [{"name": "d", "adapter": "x", "size": "1m"}]}]}, "x is not there"),
        ({"guests": [{"name": "a"}, {"name": "a"}]}, "same name"),
        ({"guests": [{"name": "a", "vcpus": 3, "numa_nodes": 2}]}, "NUMA"),
        ({"guests": [{"name": "a", "host_cpus": "0-x"}]}, "list of CPUs"),
        ({"guests": [{"name": "a", "count": 2, "ports": {22: 2222}}]}, "would share a port"),
        ({"guests": [{"name": "a", "ports": {22: 2222, 23: 2222}}]}, "same port of this machine"),
        ({"guests": [{"name": "a", "ports": {22: 70000}}]}, "less than or equal to 65535"),
        ({"at_once": [2]}, "1 have a load"),
        ({"vary": {"depth": [1]}}, "no key of the workload"),
        ({"vary": {"oio": [0]}}, "greater than or equal to 1"),
        ({"surprise": 1}, "Extra inputs"),
    ],
)
def test_what_cannot_be_is_told_with_its_line(change: dict[str, object], said: str) -> None:
    plain = {**yaml.safe_load(GUEST), **change}
    with pytest.raises(InputError, match=said) as caught:
        lab_of(yaml.safe_dump(plain, sort_keys=False))
    assert caught.value.where.startswith("lab.yaml:")


def test_one_disk_per_nvme_adapter() -> None:
    with pytest.raises(InputError, match="holds one disk"):
        lab_of(GUEST.replace("adapter: s,", "adapter: n,"))


def test_guests_cases_and_variants() -> None:
    text = GUEST.replace("name: a\n", "name: a\n    count: 3\n") + "vary: {oio: [1, 8]}\nat_once: [1, 3]\n"
    lab = lab_of(text)
    assert [guest.name for guest in lab.machines()] == ["a-1", "a-2", "a-3"]
    assert lab.variants() == [{"oio": 1}, {"oio": 8}]
    assert lab.cases()[0] == {"guests": 1, "oio": 1}
    assert len(lab.cases()) == 4


def test_what_varies_is_set_in_its_part() -> None:
    io = parse_workload("name: t\nio: [{name: a, oio: 2}, {name: b}]\n", "t")
    assert [stream.oio for stream in varied(io, {"oio": 9}).io] == [9, 9]
    assert varied(io, {"block": "64k", "measure_s": 7}).timing.measure_s == 7.0
    database = parse_workload("name: t\ndatabase: {clients: 2}\n", "t")
    changed = varied(database, {"clients": 5}).database
    assert changed is not None
    assert changed.clients == 5
    with pytest.raises(ValueError, match="no key"):
        varied(database, {"oio": 1})


def test_a_limit_stands_above_the_file_and_sectors_right_above_it() -> None:
    text = "{name: a, adapters: [{name: s, type: pvscsi}], disks: [{name: d, adapter: s, size: 64m, sector: 4k, "
    guest = Guest.model_validate(yaml.safe_load(text + "limits: {iops: 200, iops_size: 32k}, queue_depth: 8}]}"))
    node = chain(guest.disks[0], Path("/images/d.raw"), direct=True)
    assert [node["driver"], node["file"]["driver"], node["file"]["file"]["driver"]] == ["throttle", "raw", "blkdebug"]
    assert node["file"]["file"]["image"]["cache"] == {"direct": True, "no-flush": False}
    assert chain(guest.disks[0], Path("d"), direct=False)["file"]["cache"]["direct"] is False
    words = options(guest, Files(Path("/f"), {"d": Path("/f/d")}, Path("/root.img")), direct=True, networks={})
    group = next(json.loads(word) for word in words if word.startswith('{"qom-type"'))
    assert group == {"qom-type": "throttle-group", "id": "limit-d", "limits": {"iops-total": 200, "iops-size": 32768}}
    device = next(json.loads(word) for word in words if '"scsi-hd"' in word)
    assert (device["bus"], device["serial"], device["physical_block_size"]) == ("s.0", "d", 4096)


@pytest.mark.real
def test_a_guest_has_its_share_of_the_cpu_and_no_group_is_left() -> None:
    text = GUEST.replace("name: a\n", "name: a\n    cpu_quota_pct: 50\n")
    made = planned(text)
    if isinstance(where := find(InstanceLimits(cpus=0.5)), str):
        pytest.skip(where)
    grounds = Grounds(made.kernel, made.accelerator, root_image(), {})
    with tempfile.TemporaryDirectory(prefix="ll") as short:
        with launched(made.machines[0], grounds, Path(short) / "a") as guest:
            (group,) = [path for path in where.folders["cpu"].iterdir() if str(os.getpid()) in path.name]
            until = time.monotonic() + 10.0
            while str(guest.process.pid) not in (group / "cgroup.procs").read_text().split():
                assert time.monotonic() < until, "the guest never entered its group"
                time.sleep(0.02)
        assert not group.exists()


def test_the_first_file_system_is_the_same_every_time() -> None:
    entries = [ArchiveEntry("bin", FOLDER | 0o755), ArchiveEntry("bin/x", FILE | 0o755, b"12345")]
    made = archive(entries)
    assert made == archive(entries)
    assert len(made) % 4 == 0
    assert made.count(b"070701") == 3
    assert b"TRAILER!!!" in made
