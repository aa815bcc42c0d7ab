"""What libvirt counts of its virtual machines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import virsh_domstats
from tests.conftest import ROOT
from tests.importers.recordings import MTIME_NS, codes, group_of, seconds, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "domstats.txt").read_text()
UNTIMED = "".join(line for line in SEED.splitlines(keepends=True) if not line.startswith("Tue "))
FIELD = ROOT.parent / "shared" / "field" / "hypervisor-kvm-host-text"
DISK = "vm:db01/virtual-disk:vda"
NINE = 1_795_510_800  # 2026-11-24 09:00 UTC


def read_text(folder: Path, text: str, request: Request | None = None) -> Capture:
    return virsh_domstats.read(source_of(folder, text), request or Request())


def test_counters_become_rates_and_latencies(tmp_path: Path) -> None:
    chosen = recognise(source_of(tmp_path, SEED), load_units("importer"))
    assert chosen is not None
    assert chosen[0] == "virsh-domstats"
    capture = read_text(tmp_path, SEED)
    assert values_of(capture, "cpu_ready_pct", "vm:db01/vcpu:0").tolist() == [55.0]
    assert values_of(capture, "cpu_ready_pct", "vm:db01").tolist() == [27.5]
    assert values_of(capture, "cpu_run_pct", "vm:db01").tolist() == [35.0]
    assert values_of(capture, "virtual_disk_latency_ms_read", DISK) == pytest.approx([2.0])
    assert values_of(capture, "virtual_disk_latency_ms_write", DISK) == pytest.approx([25.0])
    assert values_of(capture, "virtual_disk_latency_ms_flush", DISK) == pytest.approx([40.0])
    assert values_of(capture, "disk_iops", DISK).tolist() == [250.0]
    assert values_of(capture, "disk_read_mib_per_s", DISK) == pytest.approx([1.0])
    assert values_of(capture, "memory_balloon_mib", "vm:db01").tolist() == [2048.0]
    group = group_of(capture, "disk_iops", DISK)
    assert seconds(group) == [NINE + 60]
    assert group.interval_s == 60
    assert capture.sources[0].clock_known
    assert codes(capture) == []


@pytest.mark.parametrize(
    ("first", "second", "zoned"),
    [
        ("1795510800", "1795510860", True),
        ("2026-11-24T10:00:00+01:00", "2026-11-24T10:01:00+01:00", True),
        ("Tue Nov 24 09:00:00 AM UTC 2026", "Tue Nov 24 09:01:00 AM UTC 2026", True),
        ("Tue Nov 24 10:00:00 CET 2026", "Tue Nov 24 10:01:00 CET 2026", True),
        ("Tue Nov 24 12:00:00 +03 2026", "Tue Nov 24 12:01:00 +03 2026", True),
        ("2026-11-24 09:00:00", "2026-11-24 09:01:00", False),
    ],
)
def test_forms_of_the_time(first: str, second: str, zoned: bool, tmp_path: Path) -> None:
    text = SEED.replace("Tue Nov 24 09:00:00 UTC 2026", first).replace("Tue Nov 24 09:01:00 UTC 2026", second)
    capture = read_text(tmp_path, text)
    assert seconds(group_of(capture, "disk_iops", DISK)) == [NINE + 60]
    assert capture.sources[0].clock_known is zoned


def test_without_times_there_are_latencies_only(tmp_path: Path) -> None:
    capture = read_text(tmp_path, UNTIMED)
    group = group_of(capture, "virtual_disk_latency_ms_flush", DISK)
    assert group.values[0] == pytest.approx([40.0])
    assert group.times_ns.tolist() == [MTIME_NS]
    assert np.isnan(group.interval_s)  # nothing is cleared by it
    assert not {"disk_iops", "cpu_ready_pct"} & set(capture.metrics())
    assert codes(capture) == ["no-times"]


def test_one_sample_is_the_mean_since_the_start(tmp_path: Path) -> None:
    capture = read_text(tmp_path, UNTIMED[: UNTIMED.index("Domain: 'web01'")])
    group = group_of(capture, "virtual_disk_latency_ms_flush", DISK)
    assert group.values[0] == pytest.approx([181_262.854634 / 46_269])
    assert group.since_boot
    assert codes(capture) == ["one-sample"]


def test_a_restarted_vm_is_not_measured_meanwhile(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED.replace("fl.reqs=51669", "fl.reqs=12"))
    assert "virtual_disk_flushes_per_s" not in capture.metrics()
    assert codes(capture) == ["reset"]


def test_a_cut_line_and_others_are_left_out(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED.replace("Domain: 'web01'", "error: timeout") + "  balloon.cur=12")
    assert set(codes(capture)) == {"cut", "left-out"}
    assert values_of(capture, "memory_size_mib", "vm:db01").tolist() == [8192.0]  # not web01's


def test_a_message_among_counters_loses_none(tmp_path: Path) -> None:
    lines = SEED.splitlines()
    messages = [part for line in lines for part in (line, "error: timeout")]
    whole, damaged = read_text(tmp_path, SEED), read_text(tmp_path, "\n".join(messages) + "\n")
    assert (
        values_of(damaged, "memory_size_mib", "vm:db01").tolist()
        == values_of(whole, "memory_size_mib", "vm:db01").tolist()
    )
    assert damaged.metrics() == whole.metrics()


def test_vms_that_do_not_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="leadline collect qemu"):
        read_text(tmp_path, "Domain: 'web01'\n  state.state=5\n  state.reason=1\n")


def test_the_counters_of_a_report(tmp_path: Path) -> None:
    if not FIELD.is_dir():
        pytest.skip("the field cases are not beside this checkout")
    first, second = ((FIELD / f"domstats_{i}.txt").read_text() for i in (0, 1))
    capture = read_text(tmp_path, f"1795510800\n{first}\n1795510860\n{second}")
    assert values_of(capture, "cpu_ready_pct", "vm:db01").tolist() == [55.0]
    assert values_of(capture, "virtual_disk_latency_ms_write", DISK) == pytest.approx([25.0])
    assert values_of(capture, "virtual_disk_latency_ms_flush", DISK) == pytest.approx([40.0])
