"""Forty real files, drawn by seed, give the numbers that an independent reading of them gives."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import leadline
from tests.conftest import ROOT
from tests.importers.independent import load_files as load
from tests.importers.independent import sysstat_files as sysstat
from tests.importers.independent import vmware_files as vmware
from tests.importers.independent.reading import Reading, assert_same

SHARED = ROOT.parent / "shared"
READERS: dict[str, Callable[[Path], Reading]] = {
    "more_samples/inventory/kubev2v__migration-planner__data_MigrationAssessment.ovf": vmware.ovf,
    "more_samples/nmon/adejoux__nmon2influxdb__samples_aixlpar.nmon.gz": sysstat.nmon,
    "more_samples/nmon/hritsyk__nmonChart__nmonchart33_sampleC.nmon": sysstat.nmon,
    "more_samples/postgresql_log/Goose97__postgres_long_commit__postgres.log": load.postgresql_log,
    "more_samples/sysbench/radikru96__proxy_for_SQL__sysbench.log": load.sysbench,
    "more_samples/sysstat/Goose97__postgres_long_commit__iostat.log": sysstat.iostat_extended,
    "more_samples/vdbench/masakioui__vdb__create_file_32T_new_summary.html": load.vdbench_summary,
    "samples/esxtop/gsliu__VisualEsxtopOnline__1001_origincsv.csv": vmware.esxtop_saved,
    "samples/esxtop/rach-sharp__esxtopd__small-esxtop-data.csv": vmware.esxtop,
    "samples/fio/SamYaple__fio-plot-results__randread-iodepth-8-numjobs-64_iops.64.log": load.fio_iops_log,
    "samples/fio/louwrentius__fio-plot__fio-2.18-59-g618e__test-data03_randread-128-08.json": load.fio_json,
    "samples/fio/louwrentius__fio-plot__fio-3.16__benchmark_data_SERVER_HIGHPOINT_RAID5_"
    "randwrite-2-8.json": load.fio_json,
    "samples/fio/louwrentius__fio-plot__benchmark_data_HPMICROSERVERG10_USB_CRUCIAL_240GB_"
    "randwrite-iodepth-16-numjobs-1_bw.1.log": load.fio_bandwidth_log,
    "samples/hammerdb/Rickylss__hammerdb_to_excel__hammerdb.log": load.hammerdb,
    "samples/inventory/vmware__govmomi__vminfo.json": vmware.vm_config,
    "samples/ioping/AbhishekGhosh__OpenVZ-2GB-Host1Plus-Benchmark__ioping.txt": load.ioping,
    "samples/iperf3/thiezn__iperf3-python__results.json": load.iperf3,
    "samples/perfmon/Narmadha6790__sample__DataCollector01.csv": vmware.perfmon_disks,
    "samples/perfmon/jg185342__memeData__DataCollector02.csv": vmware.perfmon_processes,
    "samples/pgbench/gregs1104__pgbench-tools__latency_metric.csv": load.pgbench_tools,
    "samples/pgbench/gregs1104__pgbench-tools__results-init.txt": load.pgbench_init,
    "samples/pgbench/gregs1104__pgbench-tools__results-normal.txt": load.pgbench,
    "samples/pgconf/felipebrgs1__pgbench_13x18beta__postgresql.conf": load.postgresql_conf,
    "samples/sysstat/gregs1104__pgbench-tools__pgbenchtools_iostat-darwin-2.log": sysstat.bsd_iostat,
    "samples/sysstat/gregs1104__pgbench-tools__pgbenchtools_iostat-darwin.log": sysstat.bsd_iostat,
    "samples/sysstat/gregs1104__pgbench-tools__pgbenchtools_meminfo.log": sysstat.meminfo,
    "samples/sysstat/kellyjonbrazil__jc__centos77_mpstat-A-2-5.out": sysstat.mpstat,
    "samples/sysstat/kellyjonbrazil__jc__centos77_vmstat-dt.out": sysstat.vmstat_disks,
    "samples/sysstat/kellyjonbrazil__jc__centos77_vmstat.out": sysstat.vmstat,
    "samples/sysstat/kellyjonbrazil__jc__generic_zpool-iostat.out": sysstat.zpool_iostat,
    "samples/sysstat/kellyjonbrazil__jc__ubuntu1804_mpstat-A.out": sysstat.mpstat,
    "samples/sysstat/performancecopilot__pcp__iostat-z-p-ALL": sysstat.iostat_blocks,
    "samples/sysstat/performancecopilot__pcp__sa-sysstat-11.5.7.xz": sysstat.sar_binary,
    "samples/sysstat/sysstat__sysstat__expected.sadf-d": sysstat.sadf_d,
    "samples/vdbench/TheOtherOtherOperation__vdbconvert__test_flatfile.html": load.vdbench_flatfile,
    "samples/vdbench/TheOtherOtherOperation__vdbconvert__test_wd50.histogram.html": load.vdbench_histogram,
    "samples/vmware_counters/performancecopilot__pcp__vmware_exporter.txt": vmware.vmware_exporter,
    "samples/vrops/vmware__vrops-export__vmprops.json": vmware.vrops_properties,
    "samples/vrops/vmware__vrops-export__vmstats.json": vmware.vrops_stats,
    "samples/vscsistats/er0080__vscsiStats-helper__algonquin.csv": vmware.vscsistats,
}


@pytest.mark.parametrize("name", READERS, ids=lambda name: name.rpartition("/")[2])
def test_a_real_file_gives_the_numbers_of_an_independent_reading(name: str) -> None:
    path = SHARED / name
    if not path.is_file():
        pytest.skip("the sample recordings are not beside this checkout")
    if READERS[name] is sysstat.sar_binary and shutil.which("sadf") is None:
        pytest.skip("sadf of sysstat is not installed")
    reading = READERS[name](path)
    assert reading.count >= 3
    assert_same(leadline.open(path).capture, reading)
