"""What ESXi hosts log of their storage."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.app.read.importing import import_paths, recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import vmkernel_log
from tests.conftest import ROOT
from tests.importers.recordings import codes, group_of, seconds, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "vmkernel.log").read_text()
FIELD = ROOT.parent / "shared" / "field" / "hypervisor-esxi-logs" / "vmkernel.log"
DEVICE = "host:esxi/device:naa.60014aa"
NINE = 1_795_510_800  # 2026-11-24 09:00 UTC


def read_text(folder: Path, text: str, request: Request | None = None) -> Capture:
    return vmkernel_log.read(source_of(folder, text), request or Request())


def total(capture: Capture, metric: str, entity: str = DEVICE) -> float:
    group = group_of(capture, metric, entity)
    return float(np.sum(group.values[0]) * group.interval_s)


def lost_s(capture: Capture, entity: str) -> float:
    return total(capture, "disk_access_lost_pct", entity) / 100


def test_latency_before_and_after_at_its_moments(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    group = group_of(capture, "disk_logged_latency_ms", DEVICE)
    assert group.values[0].tolist() == [558.476, 4.011]
    assert seconds(group) == [NINE + 11.403, NINE + 120.403]
    assert values_of(capture, "disk_logged_latency_ms_usual", DEVICE).tolist() == [3.011, 558.476]
    assert values_of(capture, "disk_logged_latency_ms", "host:esxi/datastore:my ds").tolist() == [110.614]
    assert capture.sources[0].clock_known


def test_what_failed_is_counted_once(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    assert total(capture, "disk_failed_per_s") == 4  # the paths' plug-in and the device log the same command
    assert total(capture, "disk_aborts_per_s") == 1
    assert total(capture, "disk_resets_per_s") == 1  # two commands that one reset flushed
    assert total(capture, "disk_conflicts_per_s") == 1
    assert total(capture, "disk_state_doubts_per_s") == 1
    assert total(capture, "disk_aborts_per_s", "host:esxi/path:vmhba33:C0:T0:L1") == 1
    assert total(capture, "host_storage_messages_per_s", "host:esxi") == 12
    assert codes(capture) == ["no-time", "harmless"]


def test_lost_access_has_begin_and_end(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    assert lost_s(capture, "host:esxi/datastore:8a5a1336-3d574c6d") == pytest.approx(10)
    assert lost_s(capture, "host:esxi/datastore:nfs1") == pytest.approx(41)  # to the end of the log


@pytest.mark.parametrize(
    ("lost", "back", "entity"),
    [
        (
            "cpu0:1)StorageApdHandler: 1205: APD start for 0x4302ff581ad0 [naa.6001]",
            "cpu0:1)StorageApdHandler: 1205: APD exit for 0x4302ff581ad0 [naa.6001]",
            "device:naa.6001",
        ),
        (
            "cpu0:1)ScsiDevice: 4993: Device state of naa.6001 set to APD_START; token num:1",
            "cpu0:1)ScsiDevice: 5036: Device naa.6001 is Out of APD; token num:1",
            "device:naa.6001",
        ),
        (
            "cpu0:1)HBX: 6214: APD EventType: APD_START (3) for vol 'iSCSI one'",
            "cpu0:1)HBX: 6214: APD EventType: APD_EXIT (4) for vol 'iSCSI one'",
            "datastore:iSCSI one",
        ),
        (
            "In(14) vobd[2098148]:  [APDCorrelator] 1234567890us: [esx.problem.storage.apd.start] Device or filesystem "
            "with identifier [naa.6001] has entered the All Paths Down state.",
            "In(14) vobd[2098148]:  [APDCorrelator] 1234567890us: [esx.clear.storage.apd.exit] Device or filesystem "
            "with identifier [naa.6001] has exited the All Paths Down state.",
            "device:naa.6001",
        ),
        (
            ": [scsiCorrelator] 1234567890us: [esx.problem.scsi.device.state.permanentloss] Device: naa.6001 has been "
            'removed or is permanently inaccessible. Affected datastores (if any): "ds1".',
            ": [scsiCorrelator] 1234567890us: [esx.clear.scsi.device.state.permanentloss.deviceonline] Device "
            "naa.6001, that was permanently inaccessible is now online. No data consistency guarantees.",
            "device:naa.6001",
        ),
        (
            ": [vmfsCorrelator] 1234567890us: [esx.problem.vmfs.heartbeat.timedout] Lost access to volume 4d5a-1 (ds1) "
            "due to connectivity issues.",
            ": [vmfsCorrelator] 1234567890us: [esx.problem.vmfs.heartbeat.recovered] Successfully restored access to "
            "volume 4d5a-1 (ds1) following connectivity issues.",
            "datastore:ds1",
        ),
        (
            ": [scsiCorrelator] 1234567890us: [vob.scsi.scsipath.pathstate.dead] scsiPath vmhba2:C0:T1:L0 changed "
            "state from on",
            ": [scsiCorrelator] 1234567890us: [vob.scsi.scsipath.pathstate.on] scsiPath vmhba2:C0:T1:L0 changed state "
            "from dead",
            "path:vmhba2:C0:T1:L0",
        ),
    ],
)
def test_words_for_lost_and_back(lost: str, back: str, entity: str, tmp_path: Path) -> None:
    text = f"2026-11-24T09:00:00.000Z {lost}\n2026-11-24T09:00:30.000Z {back}\n2026-11-24T09:01:00.000Z cpu0:1)x\n"
    capture = read_text(tmp_path, text)
    assert lost_s(capture, f"host:esxi/{entity}") == pytest.approx(30)
    only_back = read_text(tmp_path, f"2026-11-24T09:00:00.000Z cpu0:1)x\n{text.splitlines()[1]}\n")
    assert lost_s(only_back, f"host:esxi/{entity}") == pytest.approx(30)  # since before the log begins


@pytest.mark.parametrize(
    "prefix",
    [
        "2026-11-24T09:00:11.403Z esx01.lab vobd: [scsiCorrelator] 14807183227us: [esx.problem.scsi.device.io] ",
        "<181>2026-11-24T09:00:11.403Z esx01.lab vmkernel: cpu4:19834926)",
        "<14>1 2026-11-24T10:00:11.403+01:00 esx01.lab vmkernel - - [esx@4413] cpu2:2097963)WARNING: ",
    ],
)
def test_lines_of_a_syslog_server_name_the_host(prefix: str, tmp_path: Path) -> None:
    line = "Device naa.60014aa performance has deteriorated. I/O latency increased from average value of 1343 "
    capture = read_text(tmp_path, f"{prefix}{line}microseconds to 28022 microseconds.\n")
    group = group_of(capture, "disk_logged_latency_ms", "host:esx01.lab/device:naa.60014aa")
    assert group.values[0].tolist() == [28.022]
    assert seconds(group) == [NINE + 11.403]
    assert capture.sources[0].host == "esx01.lab"


def test_times_without_year_are_of_the_last_one(tmp_path: Path) -> None:
    line = 'esx01 vmkernel: cpu4:1)NMP device "naa.60014aa" state in doubt; requested fast path state update...\n'
    capture = read_text(tmp_path, f"Nov 24 09:00:11 {line}", Request(date="2026-11-24"))
    group = group_of(capture, "disk_state_doubts_per_s", "host:esx01/device:naa.60014aa")
    assert seconds(group) == [NINE + 12]
    assert codes(capture) == ["no-zone", "no-year"]
    assert not capture.sources[0].clock_known


def test_a_log_of_both_files_counts_a_line_once(tmp_path: Path) -> None:
    line = 'cpu4:1)WARNING: NMP: NMP device "naa.60014aa" state in doubt; requested fast path state update...\n'
    at = "2026-11-24T09:00:11.403Z"
    capture = read_text(tmp_path, f"{at} In(182) vmkernel: {line}{at} Wa(180) vmkwarning: {line}")
    assert total(capture, "disk_state_doubts_per_s") == 1


def test_a_long_log_has_longer_steps(tmp_path: Path) -> None:
    capture = read_text(tmp_path, f"{SEED}2026-12-24T09:00:11.403Z cpu0:1)x\n")
    assert group_of(capture, "disk_failed_per_s", DEVICE).interval_s == 145
    assert total(capture, "disk_failed_per_s") == 4


def test_a_log_without_times_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"vmkernel\.log"):
        read_text(tmp_path, "TSC: 0 cpu0:0)Boot: 167: Parsing\n")


def test_only_what_is_asked_for(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED, Request(metrics=frozenset({"disk_failed_per_s"})))
    assert capture.metrics() == ["disk_failed_per_s"]


def test_the_log_of_a_report(tmp_path: Path) -> None:
    if not FIELD.is_file():
        pytest.skip("the field cases are not beside this checkout")
    chosen = recognise(Source(FIELD.name, FIELD), load_units("importer"))
    assert chosen is not None
    assert chosen[0] == "vmkernel-log"
    capture = vmkernel_log.read(Source(FIELD.name, FIELD), Request())
    assert values_of(capture, "disk_logged_latency_ms", "host:esxi/device:naa.6001405aabb").max() == 858.476
    assert lost_s(capture, "host:esxi/datastore:8a5a1336-3d574c6d") > 0


@pytest.mark.parametrize(
    ("line", "metric", "entity"),
    [
        ("SCSI: vm 1039: 109: Sync CR at 64", "disk_logged_conflicts_per_s", "device:handle 109"),
        (
            "WARNING: SCSI: 119: Failing I/O due to too many reservation conflicts",
            "disk_logged_conflicts_per_s",
            "a LUN",
        ),
        ("vmw_ahci[00000017]: ahciAbortIO:(curr) HWQD: 0 BusyL: 0", "disk_logged_aborts_per_s", "vmw_ahci 00000017"),
        ("<6>qla24xx_abort_command(2): handle to abort=331", "disk_logged_aborts_per_s", "qla24xx 2"),
        ("<3>lpfc1:0713:FPe:SCSI layer issued LUN reset (0, 1) Data: x2002 x1", "", ""),
        (
            "lpfc: lpfc_handle_fcp_err:3289: 1:(0):3271: FCP cmd x2a failed, aborting",
            "disk_logged_aborts_per_s",
            "lpfc",
        ),
        (
            "HBX: 2956: 'ssd': HB at offset 3735552 - Waiting for timed out HB:",
            "datastore_heartbeat_timeouts_per_s",
            "ssd",
        ),
        (
            "FS3: 4828: Reclaimed timed out heartbeat [HB state abcdef02 uuid 4f096eb7-8e0556eb-f0fe-002264fb5e26]",
            "datastore_heartbeat_timeouts_per_s",
            "4f096eb7-8e0556eb-f0fe-002264fb5e26",
        ),
        (
            "LSOM: LSOM_ThrowAsyncCongestionVOB:2127: LSOM SSD Congestion State: Exceeded. Congestion Threshold: 200 "
            "Current Congestion: 255.",
            "vsan_logged_congestion_count",
            "disk group",
        ),
    ],
)
def test_an_event_of_a_line(tmp_path: Path, line: str, metric: str, entity: str) -> None:
    text = f"2026-11-24T09:00:11.403Z cpu0:2097803){line}\n2026-11-24T09:00:12.403Z cpu0:2097803)done\n"
    path = tmp_path / "vmkernel.log"
    path.write_text(text)
    capture = import_paths([path]).capture
    told = {
        (group.metric, one.label())
        for group in capture.groups
        for one, values in zip(group.entities, group.values, strict=True)
        if values.any() and group.metric != "host_storage_messages_per_s"
    }
    assert {name for name, _ in told} == ({metric} if metric else set())
    assert all(entity.removeprefix("device:") in label for _, label in told)


def test_lines_of_a_failed_command_and_their_repetition_are_counted(tmp_path: Path) -> None:
    head = "2017-02-25T17:34:15.505Z cpu0:65560)"
    failed = 'ScsiDeviceIO: 2927: Cmd(0x4395) 0x2a, CmdSN 0x1 from world 6 to dev "naa.60a1" failed H:0x2 D:0x0 P:0x0'
    text = f"{head}{failed}\n"
    text += f"{head}NMP: nmp_ThrottleLogForDevice:3546: last error status from device naa.60a1 repeated 10 times\n"
    path = tmp_path / "vmkernel.log"
    path.write_text(text)
    (group,) = import_paths([path]).capture.of("disk_logged_failures_per_s")
    assert group.values.sum() == 11


OLD_LINES = (
    "0:02:09:02.494 cpu3:1043)FS3: 4831: Reclaimed timed out heartbeat [HB state abcdef02 uuid 50a2d28e-497dcab4-7e86]",
    "0:02:09:11.075 cpu0:1066)<6>qla24xx_abort_command(0): handle to abort=122",
)


@pytest.mark.parametrize("dress", ["", "\t", "> ", "    | "])
def test_indented_lines_of_esx_4(tmp_path: Path, dress: str) -> None:
    text = "The log is full of this:\n\n" + "".join(
        f"{dress}Nov 24 09:00:1{second} esx vmkernel: {line}\n" for second, line in enumerate(OLD_LINES)
    )
    capture = read_text(tmp_path, text, Request(date="2026-11-24"))
    assert total(capture, "disk_logged_aborts_per_s", "host:esx/adapter:qla24xx 0") == 1
    assert total(capture, "datastore_heartbeat_timeouts_per_s", "host:esx/datastore:50a2d28e-497dcab4-7e86") == 1


def test_times_since_boot_end_at_the_files_change(tmp_path: Path) -> None:
    source = source_of(tmp_path, "\n".join(OLD_LINES) + "\n")
    assert vmkernel_log.sniff(source) == 92
    capture = vmkernel_log.read(source, Request())
    group = group_of(capture, "disk_logged_aborts_per_s", "host:esxi/adapter:qla24xx 0")
    assert np.sum(group.values[0]) * group.interval_s == 1
    assert abs(seconds(group)[-1] - source.mtime_ns / 1e9) <= 1
    assert len(seconds(group)) == 10
    assert codes(capture) == ["since-boot"]
    assert not capture.sources[0].clock_known


def test_the_host_of_a_support_bundle(tmp_path: Path) -> None:
    folder = tmp_path / "esx-esx07-2026-11-24--09.10-2101" / "var" / "log"
    folder.mkdir(parents=True)
    line = "2026-11-24T09:05:01.002Z cpu4:2097365)WARNING: ScsiDeviceIO: 1223: Device naa.60a1 performance has "
    line += "deteriorated. I/O latency increased from average value of 3011 microseconds to 558476 microseconds.\n"
    source = source_of(folder, line, "vmkernel.log")
    capture = vmkernel_log.read(Source(str(source.path), source.path), Request())
    assert capture.sources[0].host == "esx07"
    assert len(values_of(capture, "disk_logged_latency_ms", "host:esx07/device:naa.60a1")) == 1
