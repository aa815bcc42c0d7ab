"""AWR and Statspack reports of Oracle."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import oracle_awr
from tests.importers.recordings import MTIME_NS, codes, group_of, seconds, source_of, values_of

AWR_11G = """\
WORKLOAD REPOSITORY report for

DB Name         DB Id    Instance     Inst Num Startup Time    Release     RAC
------------ ----------- ------------ -------- --------------- ----------- ---
LAGER         1511515151 lager1              1 03-Mar-26 08:19 11.2.0.4.0  NO

Host Name        Platform                         CPUs Cores Sockets Memory(GB)
---------------- -------------------------------- ---- ----- ------- ----------
ora7             Linux x86 64-bit                    8     8       2      31.25

              Snap Id      Snap Time      Sessions Curs/Sess
            --------- ------------------- -------- ---------
Begin Snap:       810 03-Mar-26 10:00:00       150       1.6
  End Snap:       811 03-Mar-26 10:10:00       162       2.1
   Elapsed:               10.00 (mins)
   DB Time:               50.00 (mins)

Load Profile              Per Second    Per Transaction   Per Exec   Per Call
~~~~~~~~~~~~         ---------------    --------------- ---------- ----------
      DB Time(s):                5.0                0.2       0.01       0.01
       Redo size:           64,000.0            2,560.0
   Logical reads:            8,000.0              320.0
  Physical reads:              400.0               16.0
 Physical writes:               50.0                2.0
          Logons:                0.3                0.0
    Transactions:               25.0

Top 5 Timed Foreground Events
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
                                                           Avg
                                                          wait   % DB
Event                                 Waits     Time(s)   (ms)   time Wait Class
------------------------------ ------------ ----------- ------ ------ ----------
db file sequential read             120,000       2,400     20   80.0 User I/O
DB CPU                                              300          10.0
Host CPU (CPUs:    8 Cores:    8 Sockets:    2)
~~~~~~~~         Load Average
               Begin       End     %User   %System      %WIO     %Idle
           --------- --------- --------- --------- --------- ---------
                7.15     17.70       9.4       4.6      60.5      84.7

Foreground Wait Events                       DB/Inst: LAGER/lager1  Snaps: 810-811
-> s  - second, ms - millisecond -    1000th of a second

                                                             Avg
                                        %Time Total Wait    wait    Waits   % DB
Event                             Waits -outs   Time (s)    (ms)     /txn   time
-------------------------- ------------ ----- ---------- ------- -------- ------
db file sequential read         120,000     0      2,400      20      8.0   80.0
enq: TX - row lock content           30     0         60    2000      0.0    2.0
log file sync                    15,000     0          6       0      1.0     .2
SQL*Net message from clien       62,980     0     17,660     280      4.2
          -------------------------------------------------------------

Background Wait Events                       DB/Inst: LAGER/lager1  Snaps: 810-811

                                                             Avg
                                        %Time Total Wait    wait    Waits   % bg
Event                             Waits -outs   Time (s)    (ms)     /txn   time
-------------------------- ------------ ----- ---------- ------- -------- ------
log file parallel write          20,000     0          5       0      1.3   60.8
          -------------------------------------------------------------

SQL ordered by Elapsed Time                  DB/Inst: LAGER/lager1  Snaps: 810-811

        Elapsed                  Elapsed Time
        Time (s)    Executions  per Exec (s)  %Total   %CPU    %IO    SQL Id
---------------- -------------- ------------- ------ ------ ------ -------------
         1,200.0         60,000          0.02   40.0     .1   95.0 aa7t6babr24zf
Module: java@app1 (TNS V1-V3)
update stock set amount = 4711 where item = 'geheim'

          -------------------------------------------------------------
Tablespace IO Stats                          DB/Inst: LAGER/lager1  Snaps: 810-811
-> ordered by IOs (Reads + Writes) desc

Tablespace
------------------------------
                 Av      Av     Av                       Av     Buffer Av Buf
         Reads Reads/s Rd(ms) Blks/Rd       Writes Writes/s      Waits Wt(ms)
-------------- ------- ------ ------- ------------ -------- ---------- ------
STOCK
       110,000     183   21.5     1.0        4,196        7          0    0.0
          -------------------------------------------------------------
"""

AWR_19C_TOP = """\
WORKLOAD REPOSITORY PDB report (root snapshots)

DB Name         DB Id    Unique Name DB Role          Edition Release    RAC CDB
------------ ----------- ----------- ---------------- ------- ---------- --- ---
LAGER         1511515151 lager       PRIMARY          EE      19.0.0.0.0 NO  YES

Instance     Inst Num Startup Time
------------ -------- ---------------
lager1              1 10-Jun-26 08:22

              Snap Id      Snap Time      Sessions Curs/Sess
            --------- ------------------- -------- ---------
Begin Snap:        37 10-Jun-26 10:00:07        10      11.0
  End Snap:        38 10-Jun-26 11:00:08        12        .0
   Elapsed:               60.02 (mins)
   DB Time:                9.00 (mins)

Top 10 Foreground Events by Total Wait Time
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
                                           Total Wait       Avg   % DB Wait

OUTPUT
Event                                Waits Time (sec)      Wait   time Class
------------------------------ ----------- ---------- --------- ------ --------
enq: TX - row lock contention            1       52.9   52.86 s   98.9 Applicat
db file sequential read                 13          0    3.23ms     .1 User I/O
log file sync                            2          0  719.72us     .1 Commit
"""

STATSPACK_9I = """\
STATSPACK report for

DB Name         DB Id    Instance     Inst Num Release     Cluster Host
------------ ----------- ------------ -------- ----------- ------- ------------
ALT           1511515151 alt                 1 9.2.0.8.0   NO      ora1

              Snap Id     Snap Time      Sessions Curs/Sess Comment
            --------- ------------------ -------- --------- -------------------
Begin Snap:         1 02-Jun-05 10:00:00       19      12.7
  End Snap:         2 02-Jun-05 10:15:00       20      12.7
   Elapsed:               15.00 (mins)

Top 5 Timed Events
~~~~~~~~~~~~~~~~~~                                                     % Total
Event                                               Waits    Time (s) Ela Time
-------------------------------------------- ------------ ----------- --------
db file sequential read                           100,000         900    66.15
CPU time                                                          450    29.99
          -------------------------------------------------------------
Wait Events for DB: ALT  Instance: alt  Snaps: 1 -2
-> cs - centisecond -     100th of a second

                                                                   Avg
                                                     Total Wait   wait    Waits
Event                               Waits   Timeouts   Time (s)   (ms)     /txn
---------------------------- ------------ ---------- ---------- ------ --------
db file sequential read           100,000          0        900      9      3.2
log file parallel write             4,000          0          2      1      0.1

SQL*Net message from client        50,000          0      9,000    180      1.6
          -------------------------------------------------------------
"""

HTML = """\
<html lang="en"><head><title>AWR Report for DB: LAGER, Inst: lager1, Snaps: 1-2</title>
<style type="text/css">td {color: black;}</style></head><body class="awr">
<h1 class="awr">WORKLOAD REPOSITORY report for</h1><p />
<table summary="This table displays database instance information"><tr><th>DB Name</th><th>DB Id</th><th>Instance</th>
<th>Inst num</th><th>Startup Time</th><th>Release</th><th>RAC</th></tr><tr><td>LAGER</td><td>15</td><td>lager1</td>
<td>1</td><td>22-Jun-23 09:06</td><td>12.2.0.1.0</td><td>NO</td></tr></table>
<table summary="This table displays host information"><tr><th>Host Name</th><th>Platform</th></tr>
<tr><td>ora7</td><td>Linux x86 64-bit</td></tr></table>
<table summary="This table displays snapshot information"><tr><th></th><th>Snap Id</th><th>Snap Time</th>
<th>Sessions</th></tr><tr><td>Begin Snap:</td><td>1</td><td>12-Dec-25 17:00:31</td><td>217</td></tr>
<tr><td>End Snap:</td><td>2</td><td>12-Dec-25 18:00:31</td><td>218</td></tr>
<tr><td>Elapsed:</td><td>&#160;</td><td>        60.00 (mins)</td></tr>
<tr><td>DB Time:</td><td>&#160;</td><td>     1,200.00 (mins)</td></tr></table>
<p />Load Profile<p />
<table summary="This table displays load profile"><tr><th></th><th>Per Second</th><th>Per Transaction</th></tr>
<tr><td>Redo size (bytes):</td><td>5,215,426.4</td><td>204.4</td></tr></table>
<h3 class="awr">Foreground Wait Events</h3>
<table summary="This table displays Foreground Wait Events and their wait statistics"><tr><th>Event</th><th>Waits</th>
<th>%Time -outs</th><th>Total Wait Time (s)</th><th>Avg wait</th><th>Waits /txn</th><th>% DB time</th></tr>
<tr><td>db file sequential read</td><td>938.9K</td><td></td><td>58,000</td><td>61.77ms</td><td>1</td><td>80.1</td></tr>
<tr><td>log file sync</td><td>4,186</td><td></td><td>3</td><td>716.72us</td><td>0.7</td><td>.1</td></tr></table>
</body></html>
"""


def read_text(folder: Path, text: str, request: Request | None = None) -> Capture:
    return oracle_awr.read(source_of(folder, text), request or Request())


def test_awr_text(tmp_path: Path) -> None:
    capture = read_text(tmp_path, AWR_11G, Request(timezone="UTC"))
    server = "guest:ora7/database:lager1"
    assert values_of(capture, "db_data_read_latency_ms", server)[1:] == pytest.approx([20.0])
    assert values_of(capture, "db_log_write_latency_ms", server)[1:] == pytest.approx([0.25])  # printed as 0
    assert values_of(capture, "db_commit_wait_ms", server)[1:] == pytest.approx([0.4])
    assert values_of(capture, "db_active_sessions_count", server)[1:] == pytest.approx([5.0])
    assert values_of(capture, "db_blocked_sessions_count", server)[1:] == pytest.approx([0.1])
    assert values_of(capture, "db_sessions_count", server)[1:] == pytest.approx([162])
    assert values_of(capture, "db_tps", server)[1:] == pytest.approx([25.0])
    assert values_of(capture, "db_log_bytes_per_s", server)[1:] == pytest.approx([64000.0])
    assert values_of(capture, "db_wait_event_sessions_count", f"{server}/database:CPU")[1:] == pytest.approx([0.5])
    assert values_of(capture, "guest_cpu_iowait_pct", "guest:ora7")[1:] == pytest.approx([60.5])
    assert values_of(capture, "guest_cpu_busy_pct", "guest:ora7")[1:] == pytest.approx([15.3])
    assert values_of(capture, "raw.oracle.tablespace.STOCK.read_ms", server)[1:] == pytest.approx([21.5])
    group = group_of(capture, "db_data_read_latency_ms", server)
    assert group.interval_s == 600
    assert seconds(group) == [1772532000, 1772532600]
    idle = [e.name for g in capture.of("db_wait_event_sessions_count") for e in g.entities if "SQL*Net" in e.name]
    assert idle == []
    assert capture.sources[0].clock_known
    assert codes(capture) == []


def test_statements_have_no_literals(tmp_path: Path) -> None:
    capture = read_text(tmp_path, AWR_11G)
    statement = "guest:ora7/database:lager1/statement:UPDATE stock"
    assert values_of(capture, "db_statement_sessions_count", statement)[1:] == pytest.approx([2.0])
    assert values_of(capture, "db_statement_ms", statement)[1:] == pytest.approx([20.0])
    facts = {str(entity): known for entity, known in capture.inventory.facts.items()}[statement]
    assert facts["query_id"].value == "aa7t6babr24zf"
    assert facts["statement_text"].value == "update stock set amount = ? where item = ?"
    assert codes(capture) == ["no-zone"]


def test_units_behind_numbers(tmp_path: Path) -> None:
    capture = read_text(tmp_path, AWR_19C_TOP)
    server = "guest:guest/database:lager1"
    assert values_of(capture, "db_data_read_latency_ms", server)[1:] == pytest.approx([3.23])
    assert values_of(capture, "db_commit_wait_ms", server)[1:] == pytest.approx([0.71972])
    locks = f"{server}/database:enq: TX - row lock contention"
    assert values_of(capture, "db_wait_event_sessions_count", locks)[1:] == pytest.approx([52.9 / 3601])


def test_statspack_of_9i(tmp_path: Path) -> None:
    capture = read_text(tmp_path, STATSPACK_9I)
    server = "guest:ora1/database:alt"
    assert values_of(capture, "db_data_read_latency_ms", server)[1:] == pytest.approx([9.0])
    assert values_of(capture, "db_log_write_latency_ms", server)[1:] == pytest.approx([0.5])
    assert values_of(capture, "db_wait_event_sessions_count", f"{server}/database:CPU")[1:] == pytest.approx([0.5])


def test_html(tmp_path: Path) -> None:
    capture = read_text(tmp_path, HTML)
    server = "guest:ora7/database:lager1"
    assert values_of(capture, "db_data_read_latency_ms", server)[1:] == pytest.approx([61.77], rel=1e-3)
    assert values_of(capture, "db_commit_wait_ms", server)[1:] == pytest.approx([0.71672])
    assert values_of(capture, "db_active_sessions_count", server)[1:] == pytest.approx([20.0])
    assert values_of(capture, "db_log_bytes_per_s", server)[1:] == pytest.approx([5215426.4])


def test_several_reports_are_samples(tmp_path: Path) -> None:
    later = AWR_11G.replace("10:10:00", "10:20:00").replace("10:00:00", "10:10:00").replace("2,400 ", "1,200 ")
    capture = read_text(tmp_path, AWR_11G + later)
    reads = values_of(capture, "db_data_read_latency_ms", "guest:ora7/database:lager1")
    assert reads[1:] == pytest.approx([20.0, 10.0])


def test_months_of_other_languages_and_decimal_commas(tmp_path: Path) -> None:
    text = AWR_11G.replace("03-Mar-26 10", "03-MRZ-26 10").replace("10.00 (mins)", "10,00 (mins)")
    text = text.replace("20,000       2,400     20   80.0", "20.000       2.400     20   80,0")
    capture = read_text(tmp_path, text.replace("DB Time:               50.00", "DB Time:               50,00"))
    server = "guest:ora7/database:lager1"
    assert seconds(group_of(capture, "db_active_sessions_count", server))[1:] == [1772532600]
    assert values_of(capture, "db_active_sessions_count", server)[1:] == pytest.approx([5.0])


def test_longest_waits_alone(tmp_path: Path) -> None:
    text = AWR_11G[AWR_11G.index("Top 5") : AWR_11G.index("Host CPU")]
    source = source_of(tmp_path, text)
    assert oracle_awr.sniff(source) == 60
    capture = oracle_awr.read(source, Request())
    group = group_of(capture, "db_data_read_latency_ms", "guest:guest/database:oracle")
    assert group.values[0][1] == pytest.approx(20.0)
    assert group.interval_s == 3600
    assert abs(int(group.times_ns[1]) - MTIME_NS) < 10
    assert codes(capture) == ["no-interval", "no-times"]


def test_rows_that_are_damaged_are_counted(tmp_path: Path) -> None:
    text = AWR_11G.replace("log file sync                    15,000     0          6       0", "log file sync   ####")
    assert "damaged-rows" in codes(read_text(tmp_path, text))


@pytest.mark.parametrize(
    "text",
    [
        "WORKLOAD REPOSITORY report for\n\nDB Name\n",
        "WORKLOAD REPOSITORY COMPARE PERIOD REPORT\n\n" + AWR_11G,
        "WORKLOAD REPOSITORY REPORT (RAC)\n\n" + AWR_11G,
    ],
)
def test_refusals_say_what_to_record(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"awrrpt\.sql"):
        read_text(tmp_path, text)


@pytest.mark.parametrize("text", [AWR_11G, AWR_19C_TOP, STATSPACK_9I, HTML])
def test_recognised(tmp_path: Path, text: str) -> None:
    importer = recognise(source_of(tmp_path, text), load_units("importer"))
    assert importer is not None
    assert importer[0] == "oracle-awr"
