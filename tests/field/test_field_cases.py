"""Small cases as people hand them over, with what must be said of each; they lie beside the project."""

from __future__ import annotations

import re

import pytest

from leadline.app.diagnose.diagnosing import diagnose, metrics_read
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.core.model.finding import Diagnosis
from leadline.core.model.vocabulary import Layer, LayerState
from leadline.faces.words.answers import disk_sentence, headline
from leadline.faces.words.findings import Quotes
from tests.conftest import ROOT

FIELD = ROOT.parent / "shared" / "field"

_BESIDE = "hypervisor-cause-beside-the-symptom"
# Folder, files, what the headline says, and what "is it the disk?" is answered.
SAID = [
    ("short-recording", "iostat_5_reports.txt", r"422 ms .*xvdf", r"Yes as the guest sees it"),
    ("short-recording", "iostat_one_report_frozen.txt", r"Disk .*vda stood still", r"Yes as the guest sees it"),
    ("short-recording", "vmstat_5_lines_steal.txt", r"Steal time 9\d", r"Not known"),
    ("short-recording", "vmstat_3_lines_iowait.txt", r"I/O wait [67]\d", r"Not known: I/O wait"),
    ("short-recording", "top_one_screen_steal.txt", r"Steal time 95", r"Not known"),
    ("results-show-latency", "ioping.txt", r"read mean 185 ms", r"Yes as the guest sees it"),
    ("results-show-latency", "pg_test_fsync.txt", r"fdatasync mean 83.9 ms", r"Yes as the guest sees it"),
    ("results-show-latency", "fio_qd1_fdatasync.json", r"write mean 250 ms", r"Yes as the guest sees it"),
    ("results-show-latency", "fio_text.txt", r"write mean 183 ms", r"Yes as the guest sees it"),
    ("hypervisor-stalled-storage", "esxtop_nfs.csv", r"ds1 stood still for 60 s: 22 commands", r"Yes"),
    ("hypervisor-stalled-storage", "esxtop_lun.csv", r"naa.6001 stood still for 60 s: 52 commands", r"Yes"),
    ("hypervisor-latency-only-per-direction", "esxtop_read_write_columns.csv", r"Device latency 6\d", r"Yes"),
    ("hypervisor-latency-only-per-direction", "getstat_device.csv", r"Device latency 6\d", r"Yes"),
    ("hypervisor-latency-only-per-direction", "telegraf_host_disk.influx", r"Device latency 6\d", r"Yes"),
    ("hypervisor-vcenter-latency-counters-unused", "getstat_adapter.csv", r"6\d(\.\d)? ms on esx01 vmhba2", r"Yes"),
    ("hypervisor-vcenter-latency-counters-unused", "getstat_host_datastore.csv", r"70 ms", r"Yes"),
    ("hypervisor-vcenter-latency-counters-unused", "getstat_vm_datastore.csv", r"7\d ms", r"Yes"),
    ("hypervisor-vcenter-latency-counters-unused", "getstat_vm_highest_latency.csv", r"8\d ms on db01", r"Yes"),
    (_BESIDE, "nfs_gavg.csv", r"25.1 ms on esx01.lab.local export_1", r"Yes"),
    (_BESIDE, "reservation_conflicts.csv", r"Reservation conflicts 13.9/s", r"Yes"),
    (_BESIDE, "queue_depth_falls.csv", r"Device latency 33.4 ms", r"Yes"),
    (_BESIDE, "balloon_host_has_memory.csv", r"14\d GiB of its host are free: a limit of the VM", r"Not known"),
    (_BESIDE, "slow_writes_only.csv", r"only writes are slow: 51.3 ms", r"Yes: "),
    ("hypervisor-full-lun-queue-called-a-limit", "esxtop.csv", r"(Commands queued|[Qq]ueue slots) ", r"Yes"),
    ("hypervisor-zpool-waits-unused", "zpool_iostat.txt", r"synchronous writes .*disks take 10 ms", r"Yes, before"),
    ("hypervisor-gap-in-recording-crash", "esxtop.csv", r"(Device latency|Latency).* (49|50)(\.\d)? ms", r"Yes"),
    ("hypervisor-ready-of-the-whole-vm", "chart.csv", r"35\d % in sum on pki01: harmless from 7\d vCPUs", r"Not known"),
    ("hypervisor-ready-of-the-whole-vm", "getstat_past_day.csv", r"harmless from 7\d vCPUs", r"Not known"),
    (
        "hypervisor-ready-of-the-whole-vm",
        "getstat_past_day.csv inventory.yaml",
        r"per vCPU 4[34](\.\d)? % .*look for a CPU limit",
        r"Not known",
    ),
]


def diagnosed(folder: str, files: str) -> Diagnosis:
    paths = [FIELD / folder / name for name in files.split()]
    if not all(path.is_file() for path in paths):
        pytest.skip("the cases do not lie beside this checkout")
    return diagnose(import_paths(paths, Request(metrics=metrics_read())).capture)


@pytest.mark.parametrize(("folder", "files", "said", "answer"), SAID, ids=[f"{f}/{n}" for f, n, _, _ in SAID])
def test_what_is_said_of_a_case(folder: str, files: str, said: str, answer: str) -> None:
    diagnosis = diagnosed(folder, files)
    assert re.search(said, headline(diagnosis, Quotes())), headline(diagnosis, Quotes())
    text = disk_sentence(diagnosis.answer, Quotes())
    assert re.match(answer, text), text


@pytest.mark.parametrize(
    ("files", "named", "unnamed"),
    [
        ("nfs_gavg.csv", "network and the filer", "DAVG"),
        ("reservation_conflicts.csv", "ATS", "queue depth"),
        ("queue_depth_falls.csv", "was cut from 64 to 8", "limit of the VM"),
        ("balloon_host_has_memory.csv", "limit of this VM", "overcommitment"),
        ("slow_writes_only.csv", "write cache", "give the device its role"),
    ],
)
def test_evidence_and_advice_fit_the_cause(files: str, named: str, unnamed: str) -> None:
    lead = diagnosed(_BESIDE, files).findings[0]
    text = " ".join([lead.remedy, *(evidence.statement for evidence in lead.evidence)])
    assert named in text
    assert unnamed not in text


@pytest.mark.parametrize("files", ["chart.csv", "getstat_past_day.csv", "getstat_past_day.csv inventory.yaml"])
def test_ready_time_of_a_whole_vm_never_clears_the_cpu(files: str) -> None:
    diagnosis = diagnosed("hypervisor-ready-of-the-whole-vm", files)
    assert diagnosis.layer(Layer.HYPERVISOR_CPU).state is not LayerState.CLEARED
