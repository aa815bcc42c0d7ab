"""The account of time, on small recordings whose answer is known."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from leadline.app.diagnose.account import account_of
from leadline.app.diagnose.seconds import Seconds
from leadline.core.model.account import Account, AccountBasis, Share, Term
from leadline.core.model.capture import Capture, CaptureBuilder, SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Window
from leadline.core.model.incident import Basis, Incident
from leadline.core.model.vocabulary import EntityKind
from leadline.faces.words.accounts import account_sentence

GUEST = Entity(EntityKind.GUEST, "db01")
SERVER = Entity(EntityKind.DATABASE, "postgresql", GUEST)
DATA = Entity(EntityKind.BLOCK_DEVICE, "sdb", GUEST)
LOG = Entity(EntityKind.BLOCK_DEVICE, "sdc", GUEST)
SWAP = Entity(EntityKind.BLOCK_DEVICE, "sdd", GUEST)
VCPU = Entity(EntityKind.VCPU, "0", Entity(EntityKind.VM, "db01", Entity(EntityKind.HOST, "esx01")))
SECOND = 1_000_000_000
HALF = 30  # seconds before the incident, and seconds of it
START = 1_800_000_000 * SECOND
TIMES = START + SECOND * np.arange(1, 2 * HALF + 1, dtype=np.int64)
NORMAL, BAD = Window(START, START + HALF * SECOND), Window(START + HALF * SECOND, START + 2 * HALF * SECOND)
INCIDENT = Incident(BAD, (NORMAL,), Basis.TOLD)
WHOLE = Incident(Window(START, BAD.end_ns), (), Basis.TOLD)

# A metric of an entity in the normal part and in the incident: two levels, or a level for each of its seconds.
Levels = Sequence[float]
Series = Mapping[tuple[str, Entity], Levels]


def backend(pid: int, command: str = "postgres") -> Entity:
    return Entity(EntityKind.PROCESS, f"{command}[{pid}]", GUEST)


def load(tps: Levels, latency: Levels, lag: Levels = (0.0, 0.0)) -> Series:
    return {("db_tps", SERVER): tps, ("db_latency_ms", SERVER): latency, ("db_schedule_lag_ms", SERVER): lag}


def active(sessions: Levels) -> Series:
    """What pg_stat_database counts of active sessions."""
    scaled = [1e2 * one for one in sessions]
    return {("db_active_time_pct", SERVER): (scaled[0], scaled[1])}


def disk(entity: Entity, **metrics: Levels) -> Series:
    names = {
        "reads": "disk_reads_per_s",
        "writes": "disk_writes_per_s",
        "flushes": "guest_disk_flushes_per_s",
        "read_ms": "guest_disk_await_ms_read",
        "write_ms": "guest_disk_await_ms_write",
        "flush_ms": "guest_disk_flush_latency_ms",
        "util": "guest_disk_util_pct",
    }
    return {(name, entity): metrics.get(key, (0.0, 0.0)) for key, name in names.items()}


def process(entity: Entity, cpu: Levels, wait: Levels = (0.0, 0.0), read_kib: Levels = (0.0, 0.0)) -> Series:
    return {
        ("process_cpu_pct", entity): cpu,
        ("process_cpu_wait_pct", entity): wait,
        ("process_read_kib_per_s", entity): read_kib,
    }


def capture(*parts: Series) -> Capture:
    builder = CaptureBuilder("a.csv", "test", "test")
    builder.inventory.add(DATA, "a.csv", role="data")
    builder.inventory.add(LOG, "a.csv", role="wal")
    for (metric, entity), levels in (item for part in parts for item in part.items()):
        values = np.repeat(levels, HALF) if len(levels) == 2 else np.asarray(levels)
        builder.add_series(metric, entity, TIMES, values)
    return builder.build()


def of(account: Account | None, term: Term) -> Share:
    assert account is not None
    return next(share for share in account.shares if share.term is term)


def share_of(account: Account | None, *terms: Term) -> float:
    assert account is not None
    return account.of(*terms)


SLOW_READS: tuple[Series, ...] = (
    load((100.0, 100.0), (2.0, 22.0)),
    active((0.2, 2.2)),
    {("db_data_read_time_pct", SERVER): (10.0, 210.0)},
    disk(DATA, reads=(100.0, 100.0), read_ms=(1.0, 21.0), util=(10.0, 60.0)),
)


def test_reads_that_the_database_timed_are_all_of_the_added_time() -> None:
    account = account_of(capture(*SLOW_READS), INCIDENT)
    assert account is not None
    assert (account.total_normal_ms, account.total_during_ms) == pytest.approx((2.0, 22.0))
    reads = account.shares[0]
    assert (reads.term, reads.entity) == (Term.DISK, DATA)
    assert (reads.ms_normal, reads.ms_during, reads.share) == pytest.approx((1.0, 21.0, 1.0))
    assert reads.arithmetic == "2.1 s of block reads per second / 100 transactions/s"
    assert reads.low < 1.0 <= reads.high
    assert account.basis is AccountBasis.STATISTICS


def test_the_sentence_names_share_interval_time_and_disk() -> None:
    text = account_sentence(
        Account(10.0, 2080.0, (Share(Term.DISK, DATA, 1.0, 2000.0, 0.96, 0.9, 0.99, ""),), AccountBasis.MACHINE)
    )
    assert text == "96 % (90 to 99) of the 2.07 s that a transaction takes longer is waiting for reads from sdb"


def test_the_sentence_names_a_second_term_that_counts() -> None:
    log = Share(Term.LOG, LOG, 0.0, 6.0, 0.6, 0.5, 0.7, "")
    lock, cpu = (Share(term, None, 0.0, 1.0, part, 0.0, 0.4, "") for term, part in ((Term.LOCK, 0.3), (Term.CPU, 0.09)))
    text = account_sentence(Account(0.0, 10.0, (log, lock, cpu), AccountBasis.MACHINE))
    assert text == (
        "60 % (50 to 70) of the 10 ms that a transaction takes is waiting for the log on sdc; "
        "30 % (0 to 40) is waiting for a lock"
    )


def test_without_statistics_reads_are_counted_times_their_latency() -> None:
    reads = disk(DATA, reads=(100.0, 200.0), read_ms=(1.0, 10.0), util=(10.0, 60.0))
    account = account_of(capture(load((100.0, 100.0), (2.0, 21.0)), reads), INCIDENT)
    found = of(account, Term.DISK)
    assert (found.ms_normal, found.ms_during) == pytest.approx((1.0, 20.0))
    assert found.arithmetic == "200 reads/s x 10 ms / 100 transactions/s"


def test_reads_of_another_program_are_not_waited_for() -> None:
    """300 reads/s reach the disk, 100 of them (800 KiB/s in pages of 8 KiB) are the database's."""
    account = account_of(
        capture(
            load((100.0, 100.0), (20.0, 50.0)),
            disk(DATA, reads=(100.0, 300.0), read_ms=(1.0, 10.0), util=(10.0, 60.0)),
            process(backend(1), (1.0, 1.0), read_kib=(800.0, 800.0)),
            process(backend(2, "tar"), (0.0, 9.0), read_kib=(0.0, 1600.0)),
        ),
        INCIDENT,
    )
    assert of(account, Term.DISK).ms_during - of(account, Term.DISK).ms_normal == pytest.approx(9.0)


def test_a_commit_waits_for_a_flush_and_for_half_of_the_one_under_way() -> None:
    """100 writes and 100 flushes a second, counted together as 200 writes of 0.5 ms: 1 ms each time, 10 % busy."""
    log = disk(
        LOG, writes=(200.0, 200.0), flushes=(100.0, 100.0), write_ms=(0.5, 0.5), flush_ms=(0.6, 0.6), util=(10.0, 10.0)
    )
    account = account_of(capture(load((100.0, 100.0), (2.1, 2.1)), log), WHOLE)
    found = of(account, Term.LOG)
    assert (found.ms_during, found.share) == pytest.approx((1.05, 0.5))
    assert found.arithmetic == "100 commits/s x 1 ms x (1 + 0.5 x 10 % busy) / 100 transactions/s"
    assert found.entity == LOG


def test_flushes_that_are_not_among_the_writes_take_their_own_time() -> None:
    log = disk(
        LOG, writes=(100.0, 100.0), flushes=(100.0, 100.0), write_ms=(0.5, 0.5), flush_ms=(0.8, 0.8), util=(13.0, 13.0)
    )
    account = account_of(capture(load((100.0, 100.0), (2.1, 2.1)), log), WHOLE)
    assert "x 1.3 ms x" in of(account, Term.LOG).arithmetic


def test_flushes_the_database_timed_come_first() -> None:
    wal: Series = {
        ("db_log_sync_time_pct", SERVER): (10.0, 50.0),
        ("db_log_flushes_per_s", SERVER): (100.0, 100.0),
    }
    account = account_of(capture(load((100.0, 100.0), (2.0, 8.0)), active((0.2, 0.8)), wal), INCIDENT)
    assert of(account, Term.LOG).arithmetic == "100 commits/s x 5 ms x (1 + 0.5 x 50 % busy) / 100 transactions/s"


def test_transactions_that_do_not_commit_to_the_log_do_not_wait_for_it() -> None:
    """5 flushes a second of 2 ms serve 5 commits; the other 395 transactions only read."""
    log = disk(LOG, writes=(10.0, 10.0), flushes=(5.0, 5.0), write_ms=(1.0, 1.0), flush_ms=(1.0, 1.0), util=(1.0, 1.0))
    account = account_of(capture(load((400.0, 400.0), (0.3, 3.0)), active((0.12, 1.2)), log), INCIDENT)
    assert account is not None
    assert account.of(Term.LOG) == pytest.approx(0.0, abs=0.02)


BUSY_LOG = (200.0, 200.0), (100.0, 100.0), (0.5, 4.9), (0.5, 4.9)


@pytest.mark.parametrize(("util", "term"), [(98.0, Term.LOG), (40.0, Term.LOCK)])
def test_what_queues_behind_a_busy_log_is_the_logs_and_otherwise_a_lock(util: float, term: Term) -> None:
    """6 sessions are in transactions of 60 ms, of which flushes make less than a quarter."""
    writes, flushes, write_ms, flush_ms = BUSY_LOG
    log = disk(LOG, writes=writes, flushes=flushes, write_ms=write_ms, flush_ms=flush_ms, util=(10.0, util))
    account = account_of(capture(load((100.0, 100.0), (2.0, 60.0)), active((0.2, 6.0)), log), INCIDENT)
    assert account is not None
    assert account.shares[0].term is term
    assert account.of(term) > (0.95 if term is Term.LOG else 0.6)


def test_what_waits_without_any_busy_resource_is_a_lock() -> None:
    account = account_of(capture(load((100.0, 100.0), (2.0, 60.0)), active((0.2, 6.0))), INCIDENT)
    lock = of(account, Term.LOCK)
    assert lock.share == pytest.approx(1.0)
    assert lock.entity == SERVER
    assert lock.arithmetic == "60 ms in the database - 0 ms of the other terms"


def test_without_active_sessions_the_rest_is_not_explained_and_may_be_a_lock_or_the_network() -> None:
    account = account_of(capture(load((100.0, 100.0), (2.0, 60.0))), INCIDENT)
    assert of(account, Term.UNEXPLAINED).share == pytest.approx(1.0)
    assert of(account, Term.LOCK).high == of(account, Term.CLIENT).high == 1.0
    assert account is not None
    assert account.basis is AccountBasis.MACHINE


def test_beside_an_idle_load_generator_the_rest_is_a_lock() -> None:
    parts = (
        load((100.0, 100.0), (2.0, 60.0)),
        process(backend(1), (5.0, 5.0)),
        process(backend(9, "pgbench"), (4.0, 4.0)),
    )
    account = account_of(capture(*parts), INCIDENT)
    assert share_of(account, Term.LOCK) > 0.9


def test_a_flush_that_waits_for_a_cpu_belongs_to_the_cpu() -> None:
    writes, flushes = (200.0, 200.0), (100.0, 100.0)
    log = disk(LOG, writes=writes, flushes=flushes, write_ms=(0.5, 2.5), flush_ms=(0.5, 2.5), util=(10.0, 50.0))
    busy: Series = {("guest_cpu_busy_pct", GUEST): (20.0, 100.0)}
    backends = process(backend(1), (10.0, 10.0), wait=(5.0, 100.0))
    account = account_of(capture(load((100.0, 100.0), (2.5, 30.0)), active((0.25, 2.0)), log, busy, backends), INCIDENT)
    assert share_of(account, Term.CPU_WAIT) > 0.95
    assert of(account, Term.CPU_WAIT).entity == GUEST


def test_ready_time_of_the_virtual_cpu_is_waiting_for_a_cpu() -> None:
    """The sessions run 0.2 s of each second; the hypervisor keeps half of the time, so they wait as long again."""
    ready: Series = {("cpu_ready_pct", VCPU): (0.0, 50.0)}
    parts = load((100.0, 100.0), (2.0, 4.0)), active((0.2, 0.4)), process(backend(1), (20.0, 20.0)), ready
    account = account_of(capture(*parts), INCIDENT)
    assert of(account, Term.CPU_WAIT).ms_during == pytest.approx(2.0)
    assert "20 % stolen by the hypervisor" in of(account, Term.CPU_WAIT).arithmetic


def test_sessions_in_transactions_that_are_not_active_wait_for_the_client() -> None:
    account = account_of(capture(load((100.0, 100.0), (3.0, 80.0)), active((0.2, 0.2))), INCIDENT)
    client = of(account, Term.CLIENT)
    assert (client.ms_normal, client.ms_during) == pytest.approx((1.0, 78.0))
    assert client.arithmetic == "(8 sessions in transactions - 0.2 active) / 100 transactions/s"


def test_another_work_beside_the_load_is_not_divided_by_its_transactions() -> None:
    """Two sessions that began in the incident use a CPU each; those of the load use as much as before."""
    others = [process(backend(pid), (0.0, 100.0)) for pid in (8, 9)]
    parts = load((100.0, 100.0), (2.0, 10.0)), *others, *(process(backend(pid), (5.0, 5.0)) for pid in (1, 2))
    account = account_of(capture(*parts, active((0.2, 3.0))), INCIDENT)
    cpu = of(account, Term.CPU)
    assert (cpu.ms_normal, cpu.share) == pytest.approx((1.0, 0.0))
    assert cpu.arithmetic == "10 % CPU of the sessions' processes / 100 transactions/s"


def test_statistics_that_come_when_a_statement_ends_leave_no_client_behind() -> None:
    """Reads were counted, active time not yet: a session that reads is active."""
    late = (*SLOW_READS[:1], active((0.1, 0.3)), *SLOW_READS[2:])
    account = account_of(capture(*late), INCIDENT)
    assert share_of(account, Term.DISK) > 0.98


def test_no_term_is_given_more_than_there_is() -> None:
    """Reads of all programs make 6.3 sessions, and 2.2 are in transactions: nothing is left for the CPU."""
    reads = disk(DATA, reads=(100.0, 300.0), read_ms=(1.0, 21.0), util=(10.0, 60.0))
    parts = load((100.0, 100.0), (2.0, 22.0)), reads, process(backend(1), (5.0, 50.0), read_kib=(9e3, 9e3))
    account = account_of(capture(*parts), INCIDENT)
    assert of(account, Term.DISK).ms_during == pytest.approx(21.0)
    assert of(account, Term.CPU).ms_during < 0.5 + 1e-9


def test_locks_that_are_held_while_the_holder_waits_for_its_client_are_the_clients() -> None:
    """Three sessions wait for the client with their rows locked, one waits for these rows."""
    account = account_of(capture(load((100.0, 100.0), (2.0, 40.0)), active((0.2, 1.0))), INCIDENT)
    assert share_of(account, Term.CLIENT) == pytest.approx(1.0)
    assert of(account, Term.LOCK).high > 0.05


def test_a_gap_between_samples_is_not_measured() -> None:
    ends = START + SECOND * np.arange(1, 11, dtype=np.int64)
    seconds = Seconds(ends - SECOND, ends)
    group = SeriesGroup("db_tps", [SERVER], START + SECOND * np.array([1, 2, 10]), np.array([[1.0, 1.0, 1.0]]), 1.0)
    assert np.isfinite(seconds.mean_of(group, 0)).tolist() == [True] * 2 + [False] * 6 + [True] * 2


def test_long_statements_of_other_sessions_leave_no_client_behind() -> None:
    """Their active time is counted when they end, so active sessions less theirs are none; one session is idle."""
    reports = [process(backend(pid), (0.0, 50.0), wait=(0.0, 150.0)) for pid in (7, 8, 9)]
    load_process = process(backend(1), (10.0, 10.0))
    idle: Series = {("db_idle_in_transaction_time_pct", SERVER): (0.0, 5.0)}
    account = account_of(
        capture(load((100.0, 100.0), (1.0, 5.0)), active((0.1, 1.0)), *reports, load_process, idle), INCIDENT
    )
    assert of(account, Term.CLIENT).ms_during == pytest.approx(0.5, abs=0.3)
    assert share_of(account, Term.LOCK) > 0.5


def test_without_a_normal_part_a_starved_client_waits_for_a_cpu_as_much_as_the_sessions_do() -> None:
    """The sessions' processes could run for 1 s of each second, and wait for nine tenths of it."""
    busy: Series = {("guest_cpu_busy_pct", GUEST): (100.0, 100.0)}
    parts = (
        load((100.0, 100.0), (30.0, 30.0)),
        active((1.0, 1.0)),
        busy,
        process(backend(1), (10.0, 10.0), (90.0, 90.0)),
    )
    account = account_of(capture(*parts), WHOLE)
    assert share_of(account, Term.CPU_WAIT) == pytest.approx((0.9 + 0.9 * 2.0) / 3.0, abs=0.01)
    assert share_of(account, Term.CLIENT) == pytest.approx(0.1 * 2.0 / 3.0, abs=0.01)


def test_a_log_that_bounds_the_throughput_gets_what_waits_for_a_cpu_before_it() -> None:
    writes, flushes, write_ms, flush_ms = BUSY_LOG
    log = disk(LOG, writes=writes, flushes=flushes, write_ms=write_ms, flush_ms=flush_ms, util=(10.0, 99.0))
    backends = process(backend(1), (5.0, 5.0), wait=(0.0, 80.0))
    account = account_of(capture(load((100.0, 100.0), (2.0, 60.0)), active((0.2, 6.0)), log, backends), INCIDENT)
    assert share_of(account, Term.LOG) > 0.98
    assert share_of(account, Term.CPU_WAIT) < 0.01


def test_a_session_of_other_work_that_was_there_before_is_known_by_what_it_uses() -> None:
    parts = [process(backend(pid), (4.0, 4.0)) for pid in (1, 2, 3)]
    account = account_of(capture(load((100.0, 100.0), (2.0, 2.0)), *parts, process(backend(4), (60.0, 60.0))), WHOLE)
    assert of(account, Term.CPU).arithmetic.startswith("12 % CPU")


def test_a_freeze_counts_by_what_was_waited_in_it() -> None:
    """In three of thirty seconds 100 transactions of a second each end; medians are those of the normal part."""
    latency = [2.0] * HALF + [2.0] * 9 + [1000.0] + [2.0] * 9 + [1000.0] + [2.0] * 9 + [1000.0]
    reads = [0.1 if ms < 10 else 99.9 for ms in latency]
    parts: tuple[Series, ...] = (
        load((100.0, 100.0), latency),
        {("db_data_read_time_pct", SERVER): [1e2 * one for one in reads]},
    )
    sessions: Series = {("db_active_time_pct", SERVER): [10.0 * ms for ms in latency]}
    account = account_of(capture(*parts, sessions), INCIDENT)
    assert account is not None
    assert account.total_during_ms == pytest.approx((27 * 2.0 + 3 * 1000.0) / 30)
    assert account.of(Term.DISK) > 0.98


def test_seconds_without_transactions_hold_no_time_of_their_own() -> None:
    tps = [100.0] * HALF + [0.0] * 10 + [100.0] * 20
    latency = [2.0] * HALF + [float("nan")] * 10 + [20.0] * 20
    account = account_of(capture(load(tps, latency)), INCIDENT)
    assert account is not None
    assert account.total_during_ms == pytest.approx(20.0)


def test_queueing_before_the_database_is_shared_out_like_what_made_it() -> None:
    slow: tuple[Series, ...] = load((100.0, 100.0), (2.0, 1022.0), (0.0, 1000.0)), *SLOW_READS[1:]
    account = account_of(capture(*slow), INCIDENT)
    assert account is not None
    assert account.added_ms == pytest.approx(1020.0)
    assert account.of(Term.DISK) == pytest.approx(1.0)
    assert of(account, Term.DISK).ms_during == pytest.approx(1021.0)


def test_queueing_before_a_database_that_is_not_slower_is_the_clients() -> None:
    account = account_of(capture(load((100.0, 300.0), (2.0, 502.0), (0.0, 500.0)), active((0.2, 0.6))), INCIDENT)
    assert share_of(account, Term.CLIENT) > 0.95


def test_swapped_memory_gets_what_reads_of_the_swap_disk_take() -> None:
    swap = disk(SWAP, reads=(0.0, 100.0), read_ms=(0.0, 10.0), util=(0.0, 90.0))
    paging: Series = {("guest_swap_in_kib_per_s", GUEST): (0.0, 400.0)}
    parts = load((100.0, 100.0), (2.0, 12.0)), active((0.2, 1.2)), disk(DATA), disk(LOG), swap, paging
    account = account_of(capture(*parts), INCIDENT)
    assert of(account, Term.SWAP).ms_during == pytest.approx(10.0, abs=0.1)
    assert of(account, Term.SWAP).entity == SWAP


def test_without_a_normal_part_the_account_is_over_the_whole_time() -> None:
    account = account_of(capture(*SLOW_READS, process(backend(1), (10.0, 10.0))), Incident(BAD, (), Basis.TOLD))
    assert account is not None
    assert (account.total_normal_ms, account.total_during_ms) == pytest.approx((0.0, 22.0))
    assert account.of(Term.DISK) == pytest.approx(21 / 22, abs=0.01)
    assert "of the 22 ms that a transaction takes is" in account_sentence(account)


def test_transactions_that_are_no_slower_are_accounted_for_whole() -> None:
    account = account_of(capture(load((100.0, 50.0), (2.0, 2.0)), active((0.2, 0.1))), INCIDENT)
    assert account is not None
    assert account.total_normal_ms == 0.0


@pytest.mark.parametrize("parts", [[disk(DATA, reads=(9.0, 9.0), util=(9.0, 9.0))], [load((100.0, 0.0), (2.0, 0.0))]])
def test_without_transactions_there_is_no_account(parts: list[Series]) -> None:
    assert account_of(capture(*parts), INCIDENT) is None


def test_sampled_wait_events_come_before_any_arithmetic() -> None:
    events = {"CPU": (0.1, 0.1), "Lock:transactionid": (0.0, 4.0), "LWLock:WALWrite": (0.1, 1.8)}
    sampled: Series = {
        ("db_wait_event_sessions_count", Entity(EntityKind.DATABASE, name, SERVER)): levels
        for name, levels in events.items()
    }
    account = account_of(capture(load((100.0, 100.0), (2.0, 59.0)), active((0.2, 0.2)), sampled), INCIDENT)
    assert account is not None
    assert account.basis is AccountBasis.SAMPLES
    assert account.of(Term.LOG, Term.LOCK) == pytest.approx(1.0)
    assert of(account, Term.LOG).arithmetic == "1.8 sessions sampled / 100 transactions/s"


def test_samples_that_cover_only_the_incident_are_not_compared_with_anything() -> None:
    late: Series = {
        ("db_wait_event_sessions_count", Entity(EntityKind.DATABASE, "CPU", SERVER)): (float("nan"), 0.5),
    }
    account = account_of(capture(*SLOW_READS, late), INCIDENT)
    assert account is not None
    assert account.basis is AccountBasis.STATISTICS
    assert account.of(Term.DISK) == pytest.approx(1.0)


def test_samples_of_sessions_that_do_other_work_are_not_divided_by_the_measured_transactions() -> None:
    reports: Series = {
        ("db_wait_event_sessions_count", Entity(EntityKind.DATABASE, "CPU", SERVER)): (0.1, 24.0),
    }
    account = account_of(capture(*SLOW_READS, reports), INCIDENT)
    assert account is not None
    assert account.basis is AccountBasis.STATISTICS
    assert account.of(Term.DISK) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(12))
def test_shares_are_never_negative_add_up_and_lie_in_their_intervals(seed: int) -> None:
    generator = np.random.default_rng(seed)

    def some(most: float) -> list[float]:
        return [float(value) for value in generator.uniform(0.0, most, 2 * HALF)]

    parts: list[Series] = [
        load(some(300.0), some(50.0), some(60.0)),
        process(backend(1), some(100.0), some(100.0), some(9000.0)),
    ]
    for entity in (DATA, LOG):
        latencies = {"read_ms": some(50.0), "write_ms": some(50.0), "flush_ms": some(50.0)}
        parts.append(
            disk(entity, reads=some(500.0), writes=some(500.0), flushes=some(300.0), util=some(100.0), **latencies)
        )
    if seed % 2:
        parts.append({("db_active_time_pct", SERVER): some(900.0), ("db_data_read_time_pct", SERVER): some(900.0)})
    account = account_of(capture(*parts), WHOLE if seed % 3 else INCIDENT)
    assert account is not None
    assert sum(share.share for share in account.shares) == pytest.approx(1.0)
    for share in account.shares:
        assert 0.0 <= share.low <= share.share <= share.high <= 1.0
        assert min(share.ms_normal, share.ms_during) >= 0.0
    assert json.loads(json.dumps(account.to_dict()))["shares"][0]["term"] == account.shares[0].term.key


def test_the_same_capture_gives_the_same_account() -> None:
    assert account_of(capture(*SLOW_READS), INCIDENT) == account_of(capture(*SLOW_READS), INCIDENT)


def test_coarser_and_finer_samples_are_brought_to_the_seconds_of_transactions() -> None:
    ends = START + SECOND * np.arange(1, 11, dtype=np.int64)
    seconds = Seconds(ends - SECOND, ends)
    coarse = SeriesGroup("db_tps", [SERVER], START + 5 * SECOND * np.arange(1, 3), np.array([[2.0, 4.0]]), 5.0)
    assert seconds.mean_of(coarse, 0).tolist() == pytest.approx([2.0] * 5 + [4.0] * 5)
    fine = SeriesGroup("db_tps", [SERVER], START + SECOND // 2 * np.arange(1, 9), np.array([[1.0, 3.0] * 4]), 0.5)
    assert seconds.mean_of(fine, 0)[:4].tolist() == pytest.approx([2.0] * 4)
    assert np.isnan(seconds.mean_of(fine, 0)[4:]).all()


def test_samples_that_were_not_measured_do_not_count_as_zero() -> None:
    ends = START + 2 * SECOND * np.arange(1, 3, dtype=np.int64)
    seconds = Seconds(ends - 2 * SECOND, ends)
    values = np.array([[6.0, np.nan, np.nan, np.nan]])
    group = SeriesGroup("db_tps", [SERVER], START + SECOND * np.arange(1, 5), values, 1.0)
    assert seconds.mean_of(group, 0)[0] == pytest.approx(6.0)
    assert np.isnan(seconds.mean_of(group, 0)[1])
