"""fio's options that are no part of a workload: why each is left out, or what holds instead.

Source: fio HOWTO, sections of the same names; ``fio --cmdhelp=all`` of fio 3.33.
"""

from __future__ import annotations

from leadline.formats.translation import Fate

# ioengines that have one request outstanding whatever iodepth says. Source: HOWTO, iodepth and I/O engine
SYNCHRONOUS = ("psync", "sync", "vsync", "pvsync", "pvsync2", "mmap", "splice", "libpmem", "dev-dax", "posix")
ASYNCHRONOUS = ("libaio", "io_uring", "io_uring_cmd", "posixaio", "windowsaio", "solarisaio", "xnvme", "libblkio")
# ioengines that do no reads and writes of a disk
NO_DISK = (
    *("cpuio", "net", "netsplice", "exec", "ftruncate", "falloc", "e4defrag", "rdma", "guasi"),
    *("filecreate", "filestat", "filedelete", "dircreate", "dirstat", "dirdelete", "external"),
)

_TARGET = "the target is named with --on"
_REPORT = "reports are Leadline's own: every latency is kept"
_TIMED = "a run is measured for a time, not until an amount is done"
_MACHINE = "where and as whom processes run is left to the machine"
_DEPTH = "requests are submitted one by one as others complete"
_WHERE = "requests are anywhere in the working set with the same probability"
_VERIFY = "verify is on or off: crc32c, checked when read"
_COMMAND = "no commands are run"
_ZONES = "zones are not described by a workload"
_OWN_SEED = "the seed of a run is --seed"

_REASONS: dict[str, tuple[str, ...]] = {
    _TARGET: (
        *("filename", "directory", "filename_format", "unique_filename", "opendir", "lockfile", "nrfiles", "openfiles"),
        *(
            "file_service_type",
            "allow_file_create",
            "allow_mounted_write",
            "hostname",
            "port",
            "uri",
            "rbdname",
            "pool",
        ),
        *("rbd", "clustername", "clientname", "volume", "brick", "namenode", "http_host", "filetype"),
    ),
    _REPORT: (
        *("write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log", "write_iolog", "log_avg_msec"),
        *("log_hist_msec", "log_hist_coarseness", "log_max_value", "log_offset", "log_prio", "log_compression"),
        *("log_compression_cpus", "log_store_compressed", "log_unix_epoch", "log_alternate_epoch", "log_entries"),
        *(
            "log_alternate_epoch_clock_id",
            "per_job_logs",
            "bwavgtime",
            "iopsavgtime",
            "percentile_list",
            "lat_percentiles",
        ),
        *("clat_percentiles", "slat_percentiles", "disable_lat", "disable_clat", "disable_slat", "disk_util"),
        *("disable_bw_measurement", "gtod_reduce", "gtod_cpu", "clocksource", "unified_rw_reporting", "stats"),
        *("block_error_percentiles", "significant_figures", "unit_base", "eta", "profile"),
    ),
    _TIMED: (
        *("io_size", "loops", "number_ios", "fill_device", "file_append", "exitall", "exit_what", "exitall_on_error"),
        *("rate_min", "rate_iops_min", "continue_on_error", "ignore_error", "error_dump", "max_latency"),
    ),
    _MACHINE: (
        *("cpumask", "cpus_allowed", "cpus_allowed_policy", "numa_cpu_nodes", "numa_mem_policy", "nice", "prio"),
        *("prioclass", "uid", "gid", "cgroup", "cgroup_weight", "cgroup_nodelete", "lockmem", "mem", "iomem"),
        *("hugepage-size", "ioscheduler", "cmdprio_percentage", "cmdprio", "cmdprio_class", "cmdprio_bssplit"),
        *("hipri", "sqthread_poll", "sqthread_poll_cpu", "fixedbufs", "registerfiles", "nonvectored", "userspace_reap"),
    ),
    _DEPTH: (
        *("iodepth_batch", "iodepth_batch_complete", "iodepth_batch_complete_min", "iodepth_batch_complete_max"),
        *("iodepth_low", "io_submit_mode", "serialize_overlap"),
    ),
    _WHERE: (
        *("offset", "offset_increment", "offset_align", "ba", "random_generator", "rw_sequencer", "bs_unaligned"),
        *("softrandommap", "bs_is_seq_rand", "zoned_offset"),
    ),
    _VERIFY: (
        *("verify_interval", "verify_offset", "verify_pattern", "verify_dump", "verify_async", "verify_backlog"),
        *("verify_backlog_batch", "experimental_verify", "verify_state_load", "verify_state_save", "verify_only"),
        *("verifysort", "verifysort_nr", "verify_async_cpus", "trim_percentage", "trim_verify_zero", "trim_backlog"),
        "trim_backlog_batch",
    ),
    _COMMAND: ("exec_prerun", "exec_postrun"),
    _ZONES: ("zonemode", "zonesize", "zonecapacity", "zonerange", "zoneskip", "read_beyond_wp", "max_open_zones"),
    _OWN_SEED: ("randseed", "allrandrepeat", "randrepeat"),
    "the run is steady by its own rule: see steady in the workload": (
        *("steadystate", "steadystate_duration", "steadystate_ramp_time", "steadystate_check_interval"),
    ),
    "the outstanding I/O stays what iodepth says": (
        *("latency_target", "latency_window", "latency_percentile", "latency_run"),
    ),
    "streams do not wait for each other": ("flow", "flow_id", "flow_sleep", "flow_watermark"),
    "all streams start together": ("start_delay", "delay"),
    "the time between requests passes without using the CPU": ("thinktime_spin", "thinktime_blocks_type"),
    "a rate holds whatever happened before": ("rate_cycle", "rate_ignore_thinktime"),
    "the data is random, of the share that compresses away": (
        *("buffer_pattern", "buffer_compress_chunk", "scramble_buffers", "dedupe_mode", "dedupe_global"),
        "dedupe_working_set_percentage",
    ),
    "only the shipped ways of flushing are described: sync_every": (
        *("write_barrier", "sync_file_range", "end_fsync", "fsync_on_close", "atomic", "write_hint", "overwrite"),
    ),
    "the driver lays out and fills the files": (
        *("create_serialize", "create_fsync", "create_on_open", "create_only", "pre_read", "unlink", "invalidate"),
        *("unlink_each_loop", "fallocate", "fadvise_hint", "size_percent"),
    ),
}

# What the driver does anyway, or what changes nothing of the load.
_KEPT: dict[str, tuple[str, ...]] = {
    "so runs the driver": ("thread", "group_reporting", "norandommap", "time_based", "refill_buffers", "verify_fatal"),
    "each stream is reported by itself": ("new_group",),
    "numbers are read so": ("kb_base",),
    "a name for people": ("name", "description"),
}

OTHERS: dict[str, tuple[Fate, str]] = {
    **{name: (Fate.LOST, reason) for reason, names in _REASONS.items() for name in names},
    **{name: (Fate.KEPT, reason) for reason, names in _KEPT.items() for name in names},
}
UNKNOWN = (Fate.LOST, "nothing in a workload stands for it")
