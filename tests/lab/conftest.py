"""A guest that all tests of the lab share: booting one under software emulation takes some ten seconds."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.app.measure.guests import LabPlan, booted, plan_lab
from leadline.core.io.yaml_files import parse_model
from leadline.core.model.errors import LeadlineError
from leadline.lab.machine import Machine
from leadline.lab.specification import Lab

GUEST = """
leadline_lab: 1
name: tests
guests:
  - name: db
    memory: 896m
    adapters:
      - {name: scsi0, type: pvscsi, module_options: cmd_per_lun=64}
      - {name: scsi1, type: lsi}
      - {name: block0, type: virtio-blk}
      - {name: nvme0, type: nvme}
    disks:
      - {name: data, adapter: scsi0, size: 64m}
      - {name: wal, adapter: scsi0, size: 64m, filesystem: ext4, queue_depth: 32, cache: unsafe}
      - {name: capped, adapter: scsi0, size: 16m, limits: {iops: 100}}
      - {name: old, adapter: scsi1, size: 32m, partition_offset: 32256, sector: 4k}
      - {name: fast, adapter: block0, size: 32m, format: qcow2, overlays: 2}
      - {name: flash, adapter: nvme0, size: 32m, provisioning: thin}
    nics: [{type: vmxnet3, address: 10.9.0.1/24}]
    ports: {7: FREE_PORT}
    prepare: ["echo prepared > /tmp/prepared"]
"""
with socket.create_server(("127.0.0.1", 0)) as probe:
    PORT = int(probe.getsockname()[1])  # each worker of the tests has a guest of its own
GUEST = GUEST.replace("FREE_PORT", str(PORT))
if shutil.which("nbdkit") is not None:
    GUEST = GUEST.replace("    nics", "      - {name: far, adapter: scsi0, size: 16m, storage_latency: 40ms}\n    nics")


# What `ethtool -G eth0 rx 2048` asks of the driver. Source: Linux headers, linux/ethtool.h, ETHTOOL_[GS]RINGPARAM
SET_RING = """
import ctypes, fcntl, socket, struct
rings = ctypes.create_string_buffer(struct.pack("9I", 0x10, *[0] * 8))
request = struct.pack("16sP16x", b"eth0", ctypes.addressof(rings))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
    fcntl.ioctl(asked.fileno(), 0x8946, request)
    now = list(struct.unpack("9I", rings.raw[:36]))
    now[0], now[5] = 0x11, 2048
    struct.pack_into("9I", rings, 0, *now)
    fcntl.ioctl(asked.fileno(), 0x8946, request)
"""


def lab_of(text: str) -> Lab:
    return parse_model(text, "lab.yaml", Lab, "a lab file", "docs")


def planned(text: str) -> LabPlan:
    """What a lab will do; skips where there can be none."""
    if shutil.which("qemu-system-x86_64") is None:
        pytest.skip("QEMU is not installed")
    try:
        return plan_lab(lab_of(text))
    except LeadlineError as error:
        pytest.skip(f"no lab here: {error}")


@pytest.fixture(scope="package")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    del tmp_path_factory
    with booted(planned(GUEST), lambda _: None) as machines:
        yield machines[0]


@pytest.fixture(scope="package")
def facts(guest: Machine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `leadline facts` in the guest wrote, after its receive ring was changed."""
    answer = guest.channel.run(["python3", "-S", "-c", SET_RING], timeout_s=120.0)
    assert answer.status == 0, answer.err
    answer = guest.channel.leadline(["facts", "-o", "/tmp/facts.json"], timeout_s=300.0)
    assert answer.status == 0, answer.err
    return guest.channel.fetch("/tmp/facts.json", tmp_path_factory.mktemp("facts"))
