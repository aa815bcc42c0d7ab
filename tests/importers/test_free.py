"""Tables of free: in every unit, of old and new versions, once and again."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import UNNAMED_GUEST
from leadline.core.model.capture import Capture

NEW = "              total        used        free      shared  buff/cache   available\n"
OLD = "             total       used       free     shared    buffers     cached\n"


def read(folder: Path, text: str) -> Capture:
    path = folder / "free.txt"
    path.write_text(text)
    return import_paths([path]).capture


def last(capture: Capture, metric: str) -> float:
    (group,) = capture.of(metric)
    return float(group.values[0][-1])


@pytest.mark.parametrize(
    "rows",
    [
        "Mem:     67108864  12582912  8388608  60576  46137344  53477376\nSwap:  2097152  1048576  1048576\n",
        "Mem:        65536     12288     8192     59     45056     52224\nSwap:     2048     1024     1024\n",
        "Mem:           64        12        8      0        44        51\nSwap:        2        1        1\n",
        "Mem:          64G       12G     8.0G    59M       44G       51G\nSwap:     2.0G     1.0G     1.0G\n",
        "Mem:         64Gi      12Gi    8.0Gi   59Mi      44Gi      51Gi\nSwap:    2.0Gi    1.0Gi    1.0Gi\n",
        "Mem: 68719476736 12884901888 8589934592 62029824 47244640256 54760833024\n"
        "Swap: 2147483648 1073741824 1073741824\n",
    ],
)
def test_the_unit_is_found(tmp_path: Path, rows: str) -> None:
    capture = read(tmp_path, NEW + rows)
    assert last(capture, "guest_memory_free_mib") == pytest.approx(8192)
    assert last(capture, "guest_memory_available_mib") == pytest.approx(52224)
    assert last(capture, "guest_swap_used_mib") == pytest.approx(1024)
    assert capture.inventory.get(UNNAMED_GUEST, "memory_mib") == pytest.approx(65536)


def test_an_old_version_with_its_line_between(tmp_path: Path) -> None:
    rows = "Mem:      16333944   15938284     395660     123456     204804    9000000\n"
    rows += "-/+ buffers/cache:    6733480    9600464\nSwap:      2097148     500000    1597148\n"
    capture = read(tmp_path, OLD + rows)
    assert last(capture, "guest_memory_cached_mib") == pytest.approx(9000000 / 1024)
    assert last(capture, "guest_memory_buffers_mib") == pytest.approx(204804 / 1024)


def test_tables_again_and_again_in_a_paste(tmp_path: Path) -> None:
    table = (
        NEW + "Mem:        65536     12288     {free}     59     45056     52224\nSwap:     2048     1024     1024\n\n"
    )
    text = "[root@db01 ~]# free -m -s 1\n" + "".join(table.format(free=8000 - n) for n in range(5))
    capture = read(tmp_path, text)
    (group,) = capture.of("guest_memory_free_mib")
    assert group.values[0].tolist() == [8000, 7999, 7998, 7997, 7996]


def test_a_damaged_line_costs_itself(tmp_path: Path) -> None:
    rows = "Mem:  65536  12288  8192  59  45056  52224\nConnection closed\nSwap:  2048  1024  1024\n"
    capture = read(tmp_path, NEW + rows)
    assert last(capture, "guest_swap_used_mib") == 1024
