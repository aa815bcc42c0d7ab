"""Limits, reservations and shares of an inventory, one row for each resource that has any."""

from __future__ import annotations

from leadline.estate.knowledge.allocations import Allocation, allocations
from leadline.formats.inventory_file import parse_inventory

TEXT = """
leadline_inventory: 1
hosts:
  - name: esx01
    vms:
      - name: db01
        cpu_limit_mhz: -1
        cpu_reservation_mhz: 9600
        cpu_shares: 4000
        memory_reservation_mib: 65536
        disks:
          - {name: "scsi1:0", iops_limit: 3000, shares: 1000}
          - {name: "scsi1:1"}
      - name: web01
"""


def test_what_is_set_is_listed_and_minus_one_is_no_limit() -> None:
    listed = [(str(one.entity), one.resource, one.limit, one.reservation, one.shares) for one in given()]
    assert listed == [
        ("host:esx01/vm:db01", "CPU", None, 9600.0, 4000.0),
        ("host:esx01/vm:db01", "memory", None, 65536.0, None),
        ("host:esx01/vm:db01/virtual-disk:scsi1:0", "disk", 3000.0, None, 1000.0),
    ]


def given() -> list[Allocation]:
    return allocations(parse_inventory(TEXT, "inventory.yaml"))
