"""The truth of the account: what the load's own sessions wait for, from samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benches.bench_account import page
from benches.incidents.accounting import GROUPS, Accounted, incident_of, sampled_sessions, true_shares
from benches.incidents.recordings import Truth, ns_of
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind
from tests.benches import recorded

HEADER = (
    "now,pid,datname,backend_type,state,wait_event_type,wait_event,query_id,xact_age_s,query_age_s,blocked_by,query"
)


def truth(clients: int) -> Truth:
    document = recorded.truth_of("throttled-wal-disk")
    document["recordings"] = {"pgbench.txt": {"recorder": "pgbench", "command": f"--client={clients} --rate=9"}}
    return Truth.model_validate(document)


def history(folder: Path, *sessions: str) -> Path:
    path = folder / "pg_active_sessions.csv"
    rows = [f"2026-11-20 23:50:00+00,{session}" for session in sessions]
    path.write_text("\n".join((HEADER, *rows)) + "\n", encoding="utf-8")
    return path


def session(pid: int, state: str = "active", event: str = ",", blocked_by: str = "") -> str:
    return f"{pid},bench,client backend,{state},{event},,0,0,{blocked_by},END"


def groups(folder: Path, clients: int, *sessions: str) -> list[str]:
    return sampled_sessions(history(folder, *sessions), truth(clients))[0][1]


def test_events_belong_to_groups(tmp_path: Path) -> None:
    events = (",", "IO,WALSync", "LWLock,WALWrite", "IO,DataFileRead", "LWLock,BufferContent", "Client,ClientRead")
    sessions = [session(pid, event=event) for pid, event in enumerate(events, 1)]
    assert groups(tmp_path, 6, *sessions) == ["cpu", "log", "log", "reads", "inside", "client"]


def test_events_of_mysql_belong_to_groups(tmp_path: Path) -> None:
    events = ("io,file/innodb/innodb_data_file", "io,file/innodb/innodb_log_file", "lock,row")
    sessions = [session(pid, event=event) for pid, event in enumerate(events, 1)]
    assert groups(tmp_path, 3, *sessions) == ["reads", "log", "inside"]


def test_a_session_that_waits_for_a_lock_waits_for_what_its_holder_does(tmp_path: Path) -> None:
    lock = "Lock,transactionid"
    sessions = (
        session(1, event="IO,WALSync"),
        session(2, event=lock, blocked_by="1"),
        session(3, event=lock, blocked_by="2"),
        session(4, "idle in transaction"),
        session(5, event=lock, blocked_by="4"),
    )
    assert groups(tmp_path, 5, *sessions) == ["log", "log", "log", "idle", "client"]


def test_sessions_of_other_work_are_not_the_loads_but_hold_its_locks(tmp_path: Path) -> None:
    sessions = (session(1, event="Lock,tuple", blocked_by="9"), session(9, event="Timeout,PgSleep"))
    assert groups(tmp_path, 1, *sessions) == ["inside"]


def steady(one: Truth, latency_ms: float) -> Capture:
    start, end = (ns_of(moment) // 10**9 for moment in (one.phases[0].start, one.phases[-1].end))
    times = 10**9 * np.arange(start + 1, end + 1, dtype=np.int64)
    server = Entity(EntityKind.DATABASE, "postgresql")
    builder = CaptureBuilder("pgbench.txt", "pgbench", "pgbench")
    builder.add_series("db_tps", server, times, np.full(len(times), 100.0))
    builder.add_series("db_latency_ms", server, times, np.full(len(times), latency_ms))
    return builder.build()


@pytest.mark.parametrize(("cause", "cpu"), [("disk-slow", 0.5), ("cpu-taken", 1.0)])
def test_a_flush_waits_for_a_cpu_where_the_processors_are_to_blame(cause: str, cpu: float) -> None:
    """Nobody is active before the fault; in it two sessions are, one that flushes and one that runs."""
    document = recorded.truth_of("throttled-wal-disk")
    document["fault"] |= {"cause": cause, "others": []}
    one = Truth.model_validate(document)
    assert one.fault is not None
    sampled = [(at, ["log", "cpu"]) for at in range(ns_of(one.fault.start), ns_of(one.fault.end), 10**8)]
    shares = true_shares(sampled, steady(one, 20.0), incident_of(one), one, is_declared=True)
    assert shares is not None
    assert (shares["cpu"], shares["log"]) == pytest.approx((cpu, 1.0 - cpu))


def test_the_page_hides_what_is_set_aside() -> None:
    none = dict.fromkeys(GROUPS, 0.0)
    bounds = dict.fromkeys(GROUPS, (0.0, 1.0))
    shares, true = {**none, "log": 1.0}, {**none, "log": 0.8, "cpu": 0.2}
    open_one = Accounted("slow-flush", 1, False, shares, bounds, true, true)
    hidden = Accounted("slow-disk", 2, True, shares, bounds, true, true)
    text = "\n".join(page([open_one, hidden], show_details=True, show_set_aside=False))
    assert "slow-flush                  1   20.0       20.0    20.0      2/2            1/1" in text
    assert "slow-disk" not in text
    assert "Set aside, all" in text
