"""offcputime: how long threads were blocked, by the stack in which they waited.

Reads:
    What ``offcputime`` of bcc prints, as stacks or folded (``-f``), that of libbpf-tools as stacks, and maps of
    bpftrace by the stack in which a thread left its CPU (``@us[kstack, ustack, comm]``, as ``offcputime.bt``).

Sample:
    .. code-block:: text

        Tracing off-CPU time (us) of all threads by user + kernel stack for 5 secs.
        mysqld;fsync;do_syscall_64;ext4_sync_file;jbd2_log_wait_commit;schedule;finish_task_switch 841233

Lost:
    The stacks: what is kept is for what each program waited, by the functions of the kernel in its stack. Threads that
    wait for work (a client, a timer, an event) look blocked, too, and are counted as idle. Those in a futex without a
    lock's name in the program's own frames may be either, and are counted apart.

Units:
    Microseconds, of all threads together: ten threads that wait for a second make ten. bpftrace prints no unit: the
    name of the map tells it (``@us``, ``@ms``), else it has nanoseconds, as ``nsecs`` of bpftrace.

Sources:
    bcc: tools/offcputime.py and its examples; libbpf-tools/offcputime.c. B. Gregg, Off-CPU Analysis; the same, BPF
    Performance Tools, offcputime.bt. Maps of stacks that bpftrace printed, in public notes of others.
    Linux: the functions in which fs, block, mm and kernel sleep.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from leadline.core.contracts.importer import UNNAMED_GUEST, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import Layer

META = ImporterMeta(
    tool="offcputime",
    marks=("off-cpu time (us)", "finish_task_switch", ";schedule", " schedule+", "__schedule+"),
    layers=(Layer.GUEST,),
    record="offcputime-bpfcc -df -p $(pgrep -d, -x mysqld) 30 > offcputime.txt",
)

IDLE, UNSURE = "work to do", "a lock or work to do"
_HEADING = re.compile(r"Tracing off-CPU time \(us\) of .{1,200}")
_WHO = re.compile(r"\s+(?:-|\S{1,60})\s{1,40}(\S.{0,40}?) \((\d{1,10})\)")
_COUNT = re.compile(r"\s+(\d{1,18})")
_MAP = re.compile(r"@(?P<name>\w{0,32})\[(?P<rest>.{0,200})")
_MAP_END = re.compile(r"(?P<rest>.{0,200})\]: (?P<number>\d{1,19})")
_UNITS = ((re.compile(r"(?:.*_)?us(?:ecs?)?"), 1.0), (re.compile(r"(?:.*_)?ms(?:ecs?)?"), 1e3))
_NANO = 1e-3
_COUNT_MAX = 1e6  # Judgement: nanoseconds of any trace add up to more than 1 ms; numbers below are counts
_LEAVES = ("finish_task_switch", "schedule", "__schedule")
_FRAMES_MAX = 512
_KEPT_MAX = 60
# What a program waits for -> the beginnings of functions of which one is in its stack; the first that fits counts.
_REASONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("memory", ("do_swap_page", "swap_readpage", "shrink_", "try_to_free_pages", "__alloc_pages_slowpath")),
    ("room for dirty pages", ("balance_dirty_pages",)),
    (
        "the sync of a file",
        (
            "jbd2_log_wait_commit",
            "xfs_log_force",
            "xfs_file_fsync",
            "ext4_sync_file",
            "btrfs_sync_file",
            "vfs_fsync",
            "do_fsync",
            "__x64_sys_fdatasync",
            "blkdev_fsync",
            "nfs_file_fsync",
            "zil_commit",
        ),
    ),
    ("a slot in the disk's queue", ("blk_mq_get_tag", "rq_qos_wait", "wbt_wait", "get_request")),
    ("an NFS server", ("rpc_wait_bit", "nfs_wait", "nfs4_")),
    (
        "the disk",
        (
            "io_schedule",
            "bit_wait_io",
            "folio_wait",
            "wait_on_page",
            "submit_bio_wait",
            "iomap_dio",
            "__blockdev_direct_IO",
            "blkdev_direct_IO",
        ),
    ),
    ("the journal of the file system", ("wait_transaction_locked", "start_this_handle", "xlog_grant", "xfs_trans")),
    ("a lock of the kernel", ("rwsem_down", "__mutex_lock", "mutex_lock", "__down", "down_read", "down_write")),
    ("a CPU", ("exit_to_user_mode", "prepare_exit_to_usermode", "irqentry_exit", "preempt_schedule", "__cond_resched")),
)
_FUTEX = ("futex_wait", "do_futex", "__futex_wait", "do_semtimedop", "__do_semtimedop", "semtimedop")
_LOCK = re.compile(r"mutex|lock(?!ed_)|latch|ProcSleep|Semaphore", re.IGNORECASE)
_NO_LOCK = re.compile(r"pthread_|__lll_|futex|block|unlock|clock|semtimedop", re.IGNORECASE)


def sniff(source: Source) -> int:
    """Sure by its heading; nearly so where every line is a stack that ends in the scheduler."""
    lines = [line for line in source.head_text.splitlines()[:20] if line.strip()]
    if any(_HEADING.fullmatch(line.strip()) for line in lines):
        return 95
    folded = [_folded(line) for line in lines]
    if lines and all(stack and stack[1][-1].startswith(_LEAVES) for stack in folded):
        return 90
    return 90 if any(_leaves_cpu(frames) for _, frames, _, _ in _maps(source.head_text.splitlines())) else 0


def read(source: Source, request: Request) -> Capture:
    """A capture of facts: for what each program waited, and how long.

    Raises:
        InputError: there is no stack.
    """
    del request
    builder = CaptureBuilder(source.name, "offcputime", META.tool)
    waits: Counter[str] = Counter()
    lines = source.lines()
    if any(_MAP.match(line) for line in lines):
        _add_maps(lines, waits, builder)
    else:
        for program, frames, micros in _stacks(lines, builder):
            waits[f"{program}: {reason_of(frames)}"] += micros
    if not waits.total():
        raise InputError(
            source.name,
            found="no stack with a time",
            expected="stacks with microseconds below them, or folded ones with them behind",
            advice=f"Record it while it is slow: {META.record}",
        )
    if len(waits) > _KEPT_MAX:
        builder.warn("short", f"only the {_KEPT_MAX} longest waits are kept")
    kept = {name: micros / 1e6 for name, micros in waits.most_common(_KEPT_MAX)}
    builder.inventory.add(UNNAMED_GUEST, source.name, off_cpu_s=kept)
    return builder.build()


def reason_of(frames: list[str]) -> str:
    """For what a thread waits, by the functions in its stack, in any order.

    >>> reason_of(["fsync", "ext4_sync_file", "jbd2_log_wait_commit", "schedule"])
    'the sync of a file'
    """
    for reason, functions in _REASONS:
        if any(frame.startswith(functions) for frame in frames):
            return reason
    if any(frame.startswith(_FUTEX) for frame in frames):
        is_lock = any(_LOCK.search(frame) and not _NO_LOCK.search(frame) for frame in frames)
        return "a lock of the program" if is_lock else UNSURE
    return IDLE


def _leaves_cpu(frames: list[str]) -> bool:
    """Whether a stack is one in which a thread left its CPU: its first frame that is no probe is the scheduler's."""
    return any(frame.startswith(_LEAVES) for frame in frames[:3])


def _add_maps(lines: list[str], waits: Counter[str], builder: CaptureBuilder) -> None:
    """Add the stacks of bpftrace's maps; others, and maps of counts, are left out and counted."""
    stacks = [stack for stack in _maps(lines) if _leaves_cpu(stack[1])]
    numbers: Counter[str] = Counter()
    for _, _, number, name in stacks:
        numbers[name] += number
    for program, frames, number, name in stacks:
        micros = next((micros for pattern, micros in _UNITS if pattern.fullmatch(name)), _NANO)
        if micros == _NANO and numbers[name] < _COUNT_MAX:
            builder.warn("left-out", "stacks whose numbers are counts, no times, were left out")
            continue
        waits[f"{program}: {reason_of(frames)}"] += round(number * micros)
    if any(not any(pattern.fullmatch(name) for pattern, _ in _UNITS) for name in numbers):
        builder.warn("unit", "the map's name tells no unit; its numbers were taken as nanoseconds")


def _maps(lines: list[str]) -> Iterator[tuple[str, list[str], int, str]]:
    """Program, frames, number and map of each entry that bpftrace prints of a map with stacks."""
    name, first = "", ""
    frames: list[str] = []
    is_open = False
    for line in lines:
        if (begin := _MAP.match(line)) is not None:
            name, first, frames = begin["name"], begin["rest"], []
            is_open = _MAP_END.fullmatch(first.rstrip()) is None  # an entry of one line has no stack
            continue
        if not is_open:
            continue
        if (end := _MAP_END.fullmatch(line.rstrip())) is not None:
            if frames:
                named = [word.strip() for text in (first, end["rest"]) for word in text.split(",")]
                programs = [word for word in named if word and not word.isdecimal()]
                yield (programs[-1][:40] if programs else "a program"), frames, int(end["number"]), name
            is_open = False
        elif line[:1].isspace() and line.strip() and len(frames) < _FRAMES_MAX:
            frames.append(line.strip().partition("+")[0][:200])


def _folded(line: str) -> tuple[str, list[str], int] | None:
    """Program, frames and microseconds of a folded stack; None where it is none."""
    stack, _, number = line.strip().rpartition(" ")
    if not (number.isascii() and number.isdigit() and len(number) <= 18) or ";" not in stack:
        return None
    program, *frames = stack.split(";")
    named = [frame for frame in frames[:_FRAMES_MAX] if frame not in {"", "-", "--"}]
    return (program.strip()[:40], named, int(number)) if program.strip() and named else None


def _stacks(lines: list[str], builder: CaptureBuilder) -> Iterator[tuple[str, list[str], int]]:
    """The stacks of both forms; lines that belong to none are counted."""
    frames: list[str] = []
    program = ""
    for line in lines:
        text = line.strip()
        if not text or _HEADING.fullmatch(text) or text in {"^C", "--", "-"}:
            continue
        folded = _folded(line)
        if folded is not None:
            yield folded
            continue
        if (who := _WHO.fullmatch(line)) is not None:
            program = who[1]
        elif program and (count := _COUNT.fullmatch(line)) is not None:
            yield program, frames, int(count[1])
            frames, program = [], ""
        elif line[:1].isspace() and len(frames) < _FRAMES_MAX:
            frames.append(text.partition("+")[0][:200])
        else:
            builder.warn("left-out", "lines that are no stack were left out")
            frames, program = [], ""
