"""A guest with an NVDIMM: what QEMU is told, and fio's dev-dax engine on the device that a real guest has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from leadline.app.measure.guests import booted, plan_guests
from leadline.core.model.errors import InputError
from leadline.lab import persistent_memory
from leadline.lab.hardware import Files, options
from leadline.lab.machine import Machine
from leadline.lab.specification import Guest
from tests.lab.conftest import lab_of, planned

MIB = 1024**2
GUEST = """
leadline_lab: 1
name: pmem
guests:
  - name: pm
    memory: 768m
    persistent_memory: 256m
"""
STORED = ["--on", persistent_memory.DEVICE, "--destroy-data", persistent_memory.DEVICE, "--yes"]


def words_of(guest: Guest) -> list[str]:
    return options(guest, Files(Path("/lab/pm"), {}, Path("/root.img")), direct=True, networks={})


def test_qemu_is_told_of_an_nvdimm_of_a_file_in_the_folder_of_the_guest() -> None:
    (guest,) = lab_of(GUEST).machines()
    words = words_of(guest)
    assert "nvdimm=on" in words
    assert "slots=1,maxmem=1024M" in words
    assert "memory-backend-file,id=nvdimm0-memory,share=on,size=268435456,mem-path=/lab/pm/nvdimm.0.raw" in words
    assert persistent_memory.modules(guest) == persistent_memory.MODULES
    assert len(list(persistent_memory.steps(guest))) == 2


def test_other_guests_have_none() -> None:
    guest = Guest(name="plain")
    assert "nvdimm" not in " ".join(words_of(guest))
    assert persistent_memory.modules(guest) == ()
    assert list(persistent_memory.steps(guest)) == []


@pytest.mark.parametrize("size", ["32m", "100m"])
def test_a_size_that_linux_makes_no_namespace_of_is_refused(size: str) -> None:
    with pytest.raises(InputError, match="multiple of 16m"):
        lab_of(GUEST.replace("256m", size))


def test_its_file_is_counted_as_space() -> None:
    planned(GUEST)  # skips where there can be none
    assert plan_guests(lab_of(GUEST)).disk_bytes == 256 * MIB


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with booted(planned(GUEST), lambda _: None) as machines:
        yield machines[0]


def bench(machine: Machine, name: str, on: list[str], **stream: Any) -> tuple[int, dict[str, Any], str]:
    """Status, document and messages of a run of Leadline in the guest."""
    settings = stream.pop("io_settings", {})
    workload = {
        "leadline_workload": 1,
        "name": name,
        "io": [{"block": "4k", **stream}],
        "io_settings": {"working_set": "33m", **settings},
        "timing": {"warm_up_s": 0, "measure_s": 3, "rounds": 1},
    }
    machine.channel.put(f"/tmp/{name}.yaml", yaml.safe_dump(workload).encode())
    answer = machine.channel.leadline(["bench", "run", f"/tmp/{name}.yaml", *on, "--json"], timeout_s=300.0)
    return answer.status, json.loads(answer.text or "{}"), answer.err.decode(errors="replace")


@pytest.mark.real
@pytest.mark.slow
class TestInGuest:
    """Loads of the DAX device of a guest, by Leadline in the guest."""

    def test_the_guest_has_the_device(self, machine: Machine) -> None:
        script = "stat -c %F /dev/dax0.0; cat /sys/bus/dax/devices/dax0.0/size /sys/bus/dax/devices/dax0.0/align"
        kind, size, align = machine.channel.run(["sh", "-c", script]).text.splitlines()
        assert kind == "character special file"
        assert int(align) == 2 * MIB
        assert 240 * MIB <= int(size) < 256 * MIB  # what says the kind of namespace is in it
        assert (machine.files.folder / "nvdimm.0.raw").stat().st_size == 256 * MIB

    def test_it_is_not_overwritten_unless_it_is_named(self, machine: Machine) -> None:
        status, _, messages = bench(machine, "unnamed", ["--on", persistent_memory.DEVICE, "--yes"], read_pct=50)
        assert status == 2
        assert "--destroy-data /dev/dax0.0" in messages

    def test_reads_and_writes_are_those_of_the_workload(self, machine: Machine) -> None:
        """Two jobs of two requests are four jobs; each of 34 MiB, as 33 MiB cannot be mapped."""
        status, document, messages = bench(machine, "mixed", STORED, read_pct=70, random_pct=100, oio=2, jobs=2)
        assert status == 0, messages
        assert "dev-dax has one request at a time" in json.dumps(document)
        report = machine.channel.run(["sh", "-c", "cat $(find / -xdev -name round-1.json -newer /tmp/mixed.yaml)"]).text
        counted = json.loads(report[report.rindex("\n{\n") :] if "\n{\n" in report else report)
        options_of_job = counted["jobs"][0]["job options"]
        assert options_of_job["ioengine"] == "dev-dax"
        assert int(options_of_job["size"]) == 34 * MIB
        assert int(options_of_job["numjobs"]) == 4
        reads, writes = (counted["jobs"][0][way]["total_ios"] for way in ("read", "write"))
        assert reads + writes > 1000
        assert abs(reads / (reads + writes) - 0.7) < 0.02

    def test_writes_are_read_again_as_they_were_written(self, machine: Machine) -> None:
        settings = {"verify": True, "working_set": "4m"}
        status, _, messages = bench(machine, "verified", STORED, read_pct=0, random_pct=0, io_settings=settings)
        assert status == 0, messages

    def test_flushes_of_whole_pages_and_a_paced_load(self, machine: Machine) -> None:
        paced = {"rate_iops": 200, "arrivals": "even"}  # fio 3.33 divides by zero when Poisson arrivals are flushed
        status, _, messages = bench(machine, "paced", STORED, read_pct=0, sync_every=1, **paced)
        assert status == 0, messages

    def test_another_process_that_has_it_open_is_seen(self, machine: Machine) -> None:
        opened = "exec sleep 600 9</dev/dax0.0"
        pid = machine.channel.run(["sh", "-c", f"({opened}) >/dev/null 2>&1 & echo $!; sleep 1"]).text.strip()
        try:
            status, _, messages = bench(machine, "opened", STORED, read_pct=0)
        finally:  # the tests run in any order: none finds the device open
            machine.channel.run(["sh", "-c", f"kill {int(pid)}; while [ -d /proc/{int(pid)} ]; do sleep 0.1; done"])
        assert status == 2
        assert "has it open or mapped" in messages
