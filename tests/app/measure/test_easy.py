"""What `--easy` chooses, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.app.measure.easy import (
    GIB,
    Choice,
    Easy,
    Folder,
    Storage,
    choose_folder,
    choose_machines,
    choose_workload,
    overhead_of,
    storage_at,
    storages,
)
from leadline.core.model.entities import Entity
from leadline.core.model.errors import UsageError
from leadline.core.model.vocabulary import EntityKind
from leadline.formats.inventory_file import parse_inventory
from tests.conftest import ROOT

ANY = Choice("workload", "hci-4k-70-30", "named")
EXAMPLE = (ROOT / "examples" / "easy" / "inventory.yaml").read_text()


def chosen(storage: Storage, machines: int | None = None, *, has_target: bool = False) -> Easy:
    return choose_machines(storage, ANY, machines, has_target=has_target)


def test_the_example_is_read_as_it_is_meant() -> None:
    inventory = parse_inventory(EXAMPLE, "inventory.yaml")
    prod, nfs = storages(inventory)
    assert (prod.name, prod.kind, prod.host_count, prod.group_count) == ("prod", "vsan-osa", 4, 8)
    assert (prod.cache_gib, prod.buffer_gib, prod.medium) == (8 * 745, 8 * 600, "flash")
    assert (prod.capacity_gib, prod.free_gib, prod.overhead) == (57232, 21000, 3.0)  # the log's third copy counts
    assert (nfs.name, nfs.kind, nfs.host_count, nfs.overhead) == ("nfs-01", "datastore", 2, 1.0)
    assert choose_workload(inventory).value == "postgresql-io"


def test_an_all_flash_cluster_gets_three_quarters_of_its_write_buffer() -> None:
    storage = Storage("s", "vsan-osa", 4, 8, 5960.0, 4800.0, 57232.0, 50000.0, "flash", 2.0, "two copies")
    found = chosen(storage)
    assert (found.machine_count, found.disk_count) == (16, 8)
    assert found.disk_bytes == int(4800 * 0.75 / 2 / 128) * GIB
    assert found.oio_max * found.disk_count == 64
    assert chosen(storage, has_target=True).disk_count == 4
    assert chosen(storage, machines=4).machine_count == 4
    assert {own.what for own in found.choices} >= {"machines", "size of each disk", "protection overhead"}
    assert all(own.why for own in found.choices)


def test_other_stores() -> None:
    hybrid = chosen(Storage("s", "vsan-osa", 4, 4, 1600.0, 1600.0, 40000.0, 30000.0, "hdd", 2.0))
    assert hybrid.disk_bytes == int(1600 * 0.25 / 2 / 64) * GIB
    esa = chosen(Storage("s", "vsan-esa", 6, 0, None, None, 60000.0, 60000.0, "flash", 1.25))
    assert (esa.machine_count, esa.oio_max * esa.disk_count) == (12, 256)
    assert esa.disk_bytes == int(60000 / 3 / 1.25 / 96) * GIB
    blind = chosen(Storage("s", "datastore", 3))
    assert blind.disk_bytes == GIB
    assert any("neither" in own.why for own in blind.choices)


@given(st.floats(100, 1e5), st.floats(0, 1), st.floats(1, 4), st.integers(1, 16))
def test_the_store_never_gets_fuller_than_80_pct(
    capacity: float, free_share: float, overhead: float, hosts: int
) -> None:
    storage = Storage("s", "datastore", hosts, capacity_gib=capacity, free_gib=capacity * free_share, overhead=overhead)
    try:
        found = chosen(storage)
    except UsageError as error:
        assert "may be used" in error.found
        return
    made = found.machine_count * found.set_bytes / GIB * overhead
    assert capacity * (1 - free_share) + made <= capacity * 0.8 + 1e-6
    assert made <= 0.8 * capacity * free_share + 1e-6


@pytest.mark.parametrize(
    ("raid", "ftt", "is_esa", "hosts", "wanted"),
    [
        (None, None, False, 4, 2.0),
        ("raid-0", 0, False, 4, 1.0),
        ("raid-1", 1, False, 4, 2.0),
        (None, 3, False, 8, 4.0),
        ("raid-5", 1, False, 4, 4 / 3),
        ("raid-5", 1, True, 4, 1.5),
        ("raid-5", 1, True, 6, 1.25),
        ("raid-6", 2, False, 6, 1.5),
    ],
)
def test_overheads_of_policies(raid: str | None, ftt: int | None, is_esa: bool, hosts: int, wanted: float) -> None:
    assert overhead_of(raid, ftt, is_esa=is_esa, host_count=hosts)[0] == wanted


def test_a_folder_with_space_before_the_root() -> None:
    root = Folder("/", 1000 * GIB, 900 * GIB)
    small, large = Folder("/a", 100 * GIB, 90 * GIB, "sda", 32), Folder("/b", 200 * GIB, 150 * GIB, "sdb", 64)
    shut = Folder("/c", 900 * GIB, 900 * GIB, writable=False)
    found = choose_folder([root, small, large, shut], ANY, 8)
    assert (found.folder, found.jobs, found.oio_max) == ("/b", 4, 32)
    assert found.disk_bytes == 20 * GIB
    assert choose_folder([root], ANY, 1, named=True).disk_bytes == 32 * GIB
    assert choose_folder([large], ANY, 8, stream_count=2).disk_bytes == 10 * GIB
    full = Folder("/f", 100 * GIB, 25 * GIB)
    assert choose_folder([full], ANY, 8).disk_bytes == 5 * GIB
    with pytest.raises(UsageError, match="80 %"):
        choose_folder([Folder("/f", 100 * GIB, 20 * GIB)], ANY, 8)
    with pytest.raises(UsageError, match="may write"):
        choose_folder([shut], ANY, 8)
    assert choose_folder([Folder("/h", 100 * GIB, 90 * GIB, is_hdd=True)], ANY, 4).oio_max == 16


def test_workloads_of_databases() -> None:
    assert choose_workload(parse_inventory("leadline_inventory: 1\n", "i")).value == "hci-4k-70-30"
    databases = "{name: a, engine: oracle}, {name: b, engine: oracle}, {name: c, engine: iris}"
    text = f"guests: [{{name: g, databases: [{databases}]}}]"
    assert choose_workload(parse_inventory(text, "i")).value == "oracle-oltp-io"


TWO_CLUSTERS = """
leadline_inventory: 1
clusters: [{name: a, vsan_enabled: true}, {name: b, vsan_enabled: true}]
datastores:
  - {name: vsan-a, type: vsan, capacity_gib: 1000, free_gib: 400, hosts: [a1]}
  - {name: vsan-b, type: vsan, capacity_gib: 9000, free_gib: 8000, hosts: [b1, b2]}
  - {name: nfs, type: nfs, capacity_gib: 500, free_gib: 300, hosts: [a1, b1]}
hosts:
  - {name: a1, cluster: a, disk_groups: [{name: g, cache_gib: 400, capacity_gib: 1000, capacity_medium: flash}]}
  - {name: b1, cluster: b, disk_groups: [{name: g, cache_gib: 800, capacity_gib: 4500, capacity_medium: flash}]}
  - {name: b2, cluster: b, disk_groups: [{name: g, cache_gib: 800, capacity_gib: 4500, capacity_medium: flash}]}
"""


@pytest.mark.parametrize(
    ("cluster", "datastore", "there"),
    [
        ("a", "vsan-a", ("vsan-osa", 1, 1, 1000, 400)),
        ("b", "vsan-b", ("vsan-osa", 2, 2, 9000, 8000)),
        ("b", "nfs", ("datastore", 1, 0, 500, 300)),
    ],
)
def test_a_datastore_of_one_cluster_among_several(
    cluster: str, datastore: str, there: tuple[str, int, int, float, float]
) -> None:
    inventory = parse_inventory(TWO_CLUSTERS, "i")
    storage = storage_at(inventory, Entity(EntityKind.CLUSTER, cluster), Entity(EntityKind.DATASTORE, datastore))
    assert storage.name == datastore
    counts = (storage.kind, storage.host_count, storage.group_count)
    assert (*counts, storage.capacity_gib, storage.free_gib) == there
