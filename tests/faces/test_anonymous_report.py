"""The finished report of recordings full of names: statements, users, databases, hosts, addresses, devices.

What is planted is what the vocabulary, a list of names or a pattern misses each on its own: everyday words, names made
of them, IPv6 addresses in every form, world wide names with and without their prefix.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import Imported, import_paths
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind
from leadline.faces.report.anonymize import Replacer, anonymized
from tests.command_line import leadline
from tests.faces.test_anonymous_importers import outputs, words_in
from tests.faces.test_report import everything_in
from tests.importers.load_tools import SEEDS

SECRETS = (
    *(
        "accounts",
        "invoices",
        "iban",
        "DE89",
        "Mueller",
        "geheim",
        "berlin",
        "db-prod-berlin",
        "esx-kellerhaus",
        "user_4711",
    ),
    *("fd12:3456:789a::17", "fe80::b00b", "2001:db8:5::", "::ffff:192.0.2.99", "192.0.2.99", "fd00:1:2:3:4:5:6:7"),
    *("5000c500a1b2c3d4", "50014ee2b5c6d7e8", "SAMSUNG_SSD", "S3Z8NB0K", "0025385b71b00001", "60014050001deadbeef"),
)
STATEMENT = "SELECT iban FROM accounts a JOIN \"invoices\" USING (user_4711) WHERE name = E'Mueller' -- geheim"
SESSIONS = f"""\
now,pid,datname,backend_type,state,wait_event_type,wait_event,query_id,xact_age_s,query_age_s,blocked_by,query
2026-11-21 00:55:56.1+00,812,accounts,client backend,active,Lock,transactionid,,0.4,0.4,640,UPDATE invoices
2026-11-21 00:55:56.1+00,640,accounts,client backend,idle in transaction,,,,9.3,8.1,,"{STATEMENT.replace('"', '""')}"
2026-11-21 00:55:56.2+00,812,accounts,client backend,active,Lock,transactionid,,0.5,0.5,640,
"""
LOG = f"""\
2026-11-21 00:55:50.200 UTC [4500] LOG:  checkpoint starting: wal
2026-11-21 00:55:51.810 UTC [10139] user_4711@accounts ERROR:  could not extend file "x": No space left on device
2026-11-21 00:55:51.810 UTC [10139] user_4711@accounts STATEMENT:  {STATEMENT}
2026-11-21 00:55:52.100 UTC [4492] LOG:  connection received: host=fd12:3456:789a::17 port=40312
2026-11-21 00:55:54.900 UTC [4493] LOG:  process 4493 acquired ShareLock on transaction 751 after 2300.456 ms
2026-11-21 00:56:11.224 UTC [4500] LOG:  checkpoint complete: wrote 4554 buffers (55.6%); 0 WAL file(s) added
"""
EXPORTER = f"""\
vmware_vm_cpu_usage_average{{host_name="esx-kellerhaus",vm_name="db-prod-berlin"}} 2550.0
vmware_vm_num_cpu{{host_name="esx-kellerhaus",vm_name="db-prod-berlin"}} 4.0
pg_stat_statements_calls{{datname="accounts",user="user_4711",query="{STATEMENT.partition('"')[0]}"}} 7
node_disk_io_now{{device="wwn-0x50014ee2b5c6d7e8"}} 1
"""
WORDS = (
    *("fe80::b00b%eth0", "[2001:db8:5::]:5432", "::ffff:192.0.2.99", "fd00:1:2:3:4:5:6:7", "0x5000c500a1b2c3d4"),
    *("t10.ATA_____SAMSUNG_SSD_____S3Z8NB0K", "eui.0025385b71b00001", "wwn-0x50014ee2b5c6d7e8", "50014ee2b5c6d7e8"),
    *("scsi-360014050001deadbeef0000000000000", "db-prod-berlin_1.vmdk", "user_4711@accounts"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings of one machine."""
    place = tmp_path_factory.mktemp("recordings")
    esxtop = (SEEDS / "esxtop-tiny.csv").read_text()
    devices = {"naa.60014050001": "naa.60014050001deadbeef", "esx01.example": "esx-kellerhaus.accounts"}
    for old, new in {**devices, "vm001": "db-prod-berlin"}.items():
        assert old in esxtop
        esxtop = esxtop.replace(old, new)
    (place / "esxtop-db-prod-berlin.csv").write_text(esxtop)
    (place / "pg_active_sessions.csv").write_text(SESSIONS)
    (place / "postgresql.log").write_text(LOG)
    (place / "exporter.txt").write_text(EXPORTER)
    return place


def leaks(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret.casefold() in text.casefold()]


def test_nothing_that_was_planted_is_in_the_report(folder: Path, tmp_path: Path) -> None:
    imported = import_paths([folder])
    assert len(imported.capture.sources) == 4
    assert {"db-prod-berlin", "esx-kellerhaus", "60014050001deadbeef"} <= set(leaks(words_in(imported.capture)))
    assert {where: leaks(text) for where, text in outputs(imported, tmp_path).items() if leaks(text)} == {}


@pytest.mark.parametrize("how", [["--all"], ["--json"]])
def test_nothing_that_was_planted_is_printed(how: list[str], folder: Path, tmp_path: Path) -> None:
    assert "--json" not in how or leaks(leadline("diagnose", folder, *how).stdout) != []
    done = leadline("diagnose", folder, "--anonymize", *how)
    assert leaks(done.stdout + done.stderr) == []
    leadline("diagnose", folder, "--anonymize", "--html", tmp_path / "r.html")
    assert leaks(everything_in(tmp_path / "r.html")) == []


def messages() -> Imported:
    """A capture whose warnings, facts, entities and errors quote what was recorded."""
    builder = CaptureBuilder("x.csv", "pg-active-sessions", "pg_stat_activity")
    for at, text in enumerate((STATEMENT, f"row 3: {STATEMENT}", "UPDATE invoices", *WORDS)):
        builder.warn(f"w{at}", f"{text} was left out" if text in WORDS else text)
    guest = Entity(EntityKind.GUEST, "db-prod-berlin")
    for name in ("accounts", "invoices"):
        builder.inventory.add(Entity(EntityKind.DATABASE, name, guest), "x.csv", owner="user_4711", note=STATEMENT)
    builder.inventory.add(
        guest, "x.csv", devices=list(WORDS), last_statement="DELETE FROM accounts WHERE iban = 'DE89'"
    )
    error = InputError("accounts.csv:3", found=STATEMENT, expected="a row of invoices", advice=f"Ask {WORDS[-1]}.")
    return Imported(Capture([], builder.build().sources, builder.inventory), ["accounts/invoices.txt"], [error])


def test_nothing_that_a_message_quotes_is_in_the_report(tmp_path: Path) -> None:
    imported = messages()
    assert set(leaks(words_in(imported.capture))) >= set(SECRETS) - {"esx-kellerhaus", "fd12:3456:789a::17"}
    found = outputs(imported, tmp_path)
    assert {where: leaks(text) for where, text in found.items() if leaks(text)} == {}
    assert "was left out" in found["html"]
    assert json.loads(found["json"])


def test_one_name_is_one_alias_in_sentences_and_statements() -> None:
    replacer = Replacer()
    replacer.add("invoices", "database")
    text = "database invoices, table payroll: SELECT latency FROM invoices, payroll"
    assert replacer.text(text) == "database database-1, table name-1: SELECT name-2 FROM database-1, name-1"
    assert replacer.text("payroll of fd00::1, fd00::1%eth0 and 0x5000c500a1b2c3d4") == "name-1 of ip-1, ip-2 and wwn-1"
    replacer.add("naa.60014050001deadbeef0000000000000", "device")
    for written in ("scsi-360014050001deadbeef0000000000000", "wwn-0x60014050001deadbeef0000000000000"):
        assert replacer.text(f"{written} and wwn-0x5000c500a1b2c3d4") == "device-1 and wwn-1"


def test_numbers_times_versions_and_words_of_the_field_stay() -> None:
    texts = (
        *("At 00:55:51 the write latency is 7.5 ms, 4x that of 2026-11-21T00:55:51Z (8kB blocks, 2.08e+04 IOPS)",),
        *(
            "VMware ESXi 8.0.2, PostgreSQL 15.18-0+deb12u1, kernel 6.1.0-18-amd64",
            "disk_device_latency_ms",
            "604,800 s",
        ),
        *("shared_buffers is 16 GiB; checkpoint_completion_target is 0.5", "database.parameters", "a::b of no address"),
    )
    assert [Replacer().text(text) for text in texts[:-1]] == list(texts[:-1])


def test_what_is_said_of_many_machines_is_replaced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work grows with the number of different texts, not with how often they are told."""
    parsed: list[str] = []
    prose = Replacer._prose

    def counted(self: Replacer, text: str) -> str:
        parsed.append(text)
        return prose(self, text)

    monkeypatch.setattr(Replacer, "_prose", counted)

    def work(machine_count: int) -> int:
        builder = CaptureBuilder("x.csv", "rvtools", "RVTools")
        for index in range(machine_count):
            vm = Entity(EntityKind.VM, f"db-prod-{index}", Entity(EntityKind.HOST, f"esx-kellerhaus-{index % 10}"))
            builder.inventory.add(vm, "x.csv", guest_os="Debian", owner="Mueller", disks=["thin", "thick"])
        parsed.clear()
        imported = Imported(Capture([], [], builder.inventory))
        masked = anonymized(diagnose(Capture()), imported)[1].capture
        assert leaks(words_in(masked)) == []
        return len(parsed)

    few = work(100)
    assert 0 < few == work(200)
