"""A real guest: its devices, its agent, and Leadline in it with VMware's paravirtual adapter."""

from __future__ import annotations

import json
import shutil
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from leadline.app.diagnose.auditing import audit
from leadline.app.read.importing import import_paths
from leadline.core.model.errors import ToolError
from leadline.core.model.vocabulary import EntityKind
from leadline.lab.channel import Channel
from leadline.lab.machine import Machine
from tests.lab.conftest import PORT

PVSCSI = "/etc/modprobe.d/60-leadline-pvscsi.conf"
pytestmark = [pytest.mark.real, pytest.mark.slow]


def sh(machine: Machine, script: str) -> str:
    answer = machine.channel.run(["sh", "-c", script], timeout_s=120.0)
    assert answer.status == 0, answer.err
    return answer.text.strip()


def test_every_disk_is_found_by_name_on_its_adapter(guest: Machine) -> None:
    drivers = {}
    for disk in guest.guest.disks:
        device = guest.device_of(disk.name).rpartition("/")[2]
        path = sh(guest, f"readlink -f /sys/block/{device}/device")
        pci = next(part for part in reversed(path.split("/")) if part.count(":") == 2 and part.count(".") == 1)
        drivers[disk.name] = sh(guest, f"basename $(readlink /sys/bus/pci/devices/{pci}/driver)")
        assert int(sh(guest, f"cat /sys/block/{device}/size")) * 512 == disk.size
    drivers.pop("far", None)  # where there is what serves it
    assert drivers == {
        "data": "vmw_pvscsi",
        "wal": "vmw_pvscsi",
        "capped": "vmw_pvscsi",
        "old": "sym53c8xx",
        "fast": "virtio-pci",
        "flash": "nvme",
    }


def test_this_machine_reaches_the_guest_by_its_port_and_the_guest_reaches_nothing(guest: Machine) -> None:
    sh(guest, "(echo hello | nc -l -p 7 >/tmp/heard) >/dev/null 2>&1 &")
    deadline = time.monotonic() + 30.0
    answer = b""
    while not answer and time.monotonic() < deadline:  # QEMU takes the connection before the guest listens
        with suppress(OSError), socket.create_connection(("127.0.0.1", PORT), timeout=10.0) as here:
            answer = here.recv(16)
    assert answer == b"hello\n"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        status = sh(guest, f"nc -w 3 10.0.2.2 {port} </dev/null >/dev/null 2>&1; echo $?")
    assert status != "0"


def test_the_guest_is_set_up_as_its_file_says(guest: Machine) -> None:
    assert sh(guest, "hostname") == "db"
    assert sh(guest, "cat /sys/module/vmw_pvscsi/parameters/cmd_per_lun") == "64"
    assert " /mnt/wal ext4 " in sh(guest, "cat /proc/mounts")
    wal = guest.device_of("wal").rpartition("/")[2]
    assert sh(guest, f"cat /sys/block/{wal}/device/queue_depth") == "32"
    old = guest.device_of("old").rpartition("/")[2]
    assert sh(guest, f"cat /sys/block/{old}/{old}1/start") == "63"
    assert sh(guest, f"cat /sys/block/{old}/queue/physical_block_size") == "4096"
    assert "10.9.0.1" in sh(guest, "ip addr show eth0")
    assert sh(guest, "basename $(readlink /sys/class/net/eth0/device/driver)") == "vmxnet3"
    assert sh(guest, "cat /tmp/prepared") == "prepared"


def test_commands_files_and_clock(guest: Machine, tmp_path: Path) -> None:
    answer = guest.channel.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (answer.status, answer.out, answer.err) == (3, b"out\n", b"err\n")
    assert guest.channel.run(["no-such-program"]).status == 127
    data = bytes(range(256)) * 1000
    guest.channel.put("/tmp/folder/data.bin", data, 0o600)
    assert (guest.channel.fetch("/tmp/folder", tmp_path) / "data.bin").read_bytes() == data
    with pytest.raises(ToolError, match="No such file"):
        guest.channel.fetch("/tmp/none", tmp_path)
    assert abs(guest.channel.clock_offset_s()) < 2.0
    with pytest.raises(ToolError, match="no answer within"):
        guest.channel.run(["sleep", "5"], timeout_s=0.2)


def test_commands_run_beside_each_other(guest: Machine) -> None:
    began = time.monotonic()
    done: list[int] = []
    threads = [threading.Thread(target=lambda: done.append(guest.channel.run(["sleep", "4"]).status)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == [0, 0, 0]
    assert time.monotonic() - began < 11.0


def test_a_shell_for_a_person(guest: Machine) -> None:
    shown: list[bytes] = []
    words = [b"stty size; echo $((40 + 2)); exit 5\n"]

    def typed() -> bytes:
        if words:
            return words.pop()
        time.sleep(0.2)
        return b" "

    channel = Channel(guest.files.terminal, "db")
    try:
        status = channel.shell(31, 97, typed, lambda _, data: shown.append(data))
    finally:
        channel.close()
    text = b"".join(shown).decode()
    assert "31 97" in text
    assert "\r\n42\r\n" in text
    assert status == 5


def test_the_hypervisor_counts_what_the_guest_does(guest: Machine) -> None:
    before = guest.blocks()["data"]
    sh(guest, f"dd if={guest.device_of('data')} of=/dev/null bs=64k count=100 iflag=direct")
    after = guest.blocks()["data"]
    assert after["rd_operations"] - before["rd_operations"] == 100
    assert after["rd_bytes"] - before["rd_bytes"] == 100 * 65536
    assert guest.blocks()["wal"] == guest.blocks()["wal"]


def test_a_limit_of_the_hypervisor_holds(guest: Machine) -> None:
    device = guest.device_of("capped")
    words = f"fio --name=x --filename={device} --rw=randread --bs=4k --iodepth=16 --ioengine=libaio --direct=1"
    report = json.loads(sh(guest, f"{words} --size=16m --runtime=6 --ramp_time=2 --time_based --output-format=json"))
    assert report["jobs"][0]["read"]["iops"] == pytest.approx(100.0, rel=0.05)


@pytest.mark.skipif(shutil.which("nbdkit") is None, reason="nbdkit is not installed")
def test_storage_takes_its_time_for_each_request_and_many_at_once(guest: Machine) -> None:
    device = guest.device_of("far")
    words = f"fio --name=x --filename={device} --rw=randread --bs=4k --ioengine=libaio --direct=1 --size=16m"
    rates = {}
    for depth in (1, 8):
        report = json.loads(sh(guest, f"{words} --iodepth={depth} --runtime=4 --time_based --output-format=json"))
        rates[depth] = report["jobs"][0]["read"]["iops"]
    assert 0.5 * 25.0 < rates[1] <= 25.5  # 40 ms each, one after the other
    assert rates[8] > 4.0 * rates[1]


def test_the_guests_pgbench_is_the_program(guest: Machine) -> None:
    if not list(Path("/usr/lib/postgresql").glob("*/bin/pgbench")):
        pytest.skip("PostgreSQL is not installed")
    path = sh(guest, "PATH=$PATH which pgbench")
    assert sh(guest, f"head -c 4 {path} | tail -c 3") == "ELF"
    assert "pgbench" in sh(guest, "pgbench --version")


def test_facts_of_a_pvscsi_guest_feed_the_audit(guest: Machine, facts: Path) -> None:
    capture = import_paths([facts]).capture
    (own,) = [entity for entity in capture.inventory.of_kind(EntityKind.GUEST) if entity.name == "db"]
    held = {key: fact.value for key, fact in capture.inventory.facts[own].items()}
    assert held["kernel_version"] == sh(guest, "uname -r")
    assert held["module_parameters"]["vmw_pvscsi.cmd_per_lun"] == 64.0
    assert held["cpu_count"] == 1
    rules = {finding.rule for finding in audit(capture).findings}
    assert {"guest-partition-misaligned", "guest-time-not-synced"} <= rules, sorted(rules)


def test_facts_know_the_paravirtual_devices(guest: Machine, facts: Path) -> None:
    told = json.loads(facts.read_text())["guests"][0]
    devices = {device["name"]: device for device in told["devices"]}
    queues = {}
    for disk in ("data", "wal", "old"):
        own = devices[guest.device_of(disk).rpartition("/")[2]]
        queues[disk] = (own["driver"], own["queue_depth_count"], own["timeout_s"])
    assert queues["data"] == ("vmw_pvscsi", 64, 180)  # cmd_per_lun of the lab file
    assert queues["wal"] == ("vmw_pvscsi", 32, 180)  # queue_depth of the lab file
    assert queues["old"][0] == "sym53c8xx"
    assert devices[guest.device_of("wal").rpartition("/")[2]]["mount"] == "/mnt/wal"
    nic, way = told["nics"]
    assert (way["name"], way["type"]) == ("eth1", "virtio-net")  # the card of its ports
    assert (nic["name"], nic["type"], nic["connected"], nic["rx_ring_count"]) == ("eth0", "vmxnet3", True, 2048)


def test_a_probe_recognises_a_limit_from_within(guest: Machine) -> None:
    device = guest.device_of("capped")
    sh(guest, "rm -rf /tmp/probed")  # of a try before this one
    words = ["probe", "--on", device, "--destroy-data", device, "--set-size", "16m", "--seconds", "2", "--pulse", "5"]
    words += ["--oio", "32", "--iops-limit", "100", "-o", "/tmp/probed", "--yes", "--quiet", "--json"]
    answer = guest.channel.leadline(words, timeout_s=400.0)
    assert answer.status in (0, 1), answer.err
    found = json.loads(answer.text)
    assert found["schema"] == "leadline.probe/1"
    assert found["observed"]["disk"] == device.rpartition("/")[2]
    hard, gentle, *_ = found["pulses"]
    assert hard["per_s"] == pytest.approx(100.0, rel=0.1)
    assert hard["mean_ms"] == pytest.approx(320.0, rel=0.3)  # Little's law: 32 outstanding at 100 per second
    assert gentle["offered_per_s"] == pytest.approx(70.0, rel=0.15)
    assert gentle["mean_ms"] < hard["mean_ms"] / 2.0
    assert found["verdict"]["is_limit"] is True
    assert found["verdict"]["ceiling_per_s"] == pytest.approx(100.0, rel=0.1)
    assert any("Little's law" in reason for reason in found["verdict"]["reasons"])


def test_guest_optimisation_is_applied_and_taken_back(guest: Machine) -> None:
    leadline = guest.channel.leadline
    sh(guest, "mkdir -p /etc/sysctl.d /etc/systemd/system")
    listing = "find /etc /usr/lib -xdev -type f -newer /tmp/prepared -o -path '/etc/*' -type f | sort | xargs md5sum"
    before = sh(guest, listing)
    analysed = leadline(["guest", "analyze", "--json"], timeout_s=300.0)
    assert analysed.status in (0, 1), analysed.err
    queues = next(item for item in json.loads(analysed.text)["items"] if item["id"] == "pvscsi-queues")
    assert (queues["state"], queues["current"], queues["wanted"]) == ("differs", "64", "254")
    was = sh(guest, "sysctl -n vm.swappiness")
    applied = leadline(["guest", "apply", "--template", "postgresql", "--yes"], timeout_s=300.0)
    assert applied.status == 0, applied.err
    assert sh(guest, listing) != before
    assert sh(guest, f"cat {PVSCSI}").endswith("options vmw_pvscsi cmd_per_lun=254 ring_pages=32")
    written = sh(guest, "cat /etc/sysctl.d/*leadline*.conf")
    wanted = dict(line.replace(" ", "").split("=") for line in written.splitlines() if "=" in line and line[0] != "#")
    assert "vm.swappiness" in wanted
    sh(guest, "sysctl -q -p /etc/sysctl.d/*leadline*.conf || true")
    assert sh(guest, "sysctl -n vm.swappiness") == wanted["vm.swappiness"] != was
    sh(guest, f"sysctl -q -w vm.swappiness={was}")
    reverted = leadline(["guest", "revert", "--yes"], timeout_s=300.0)
    assert reverted.status == 0, reverted.err
    assert sh(guest, listing) == before
    assert sh(guest, f"ls {PVSCSI} 2>&1 || true").endswith("No such file or directory")
