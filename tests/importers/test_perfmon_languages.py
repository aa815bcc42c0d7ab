"""Performance Monitor's logs in the languages, code pages and shapes Windows writes them in."""

from __future__ import annotations

import csv
import io
from importlib import resources
from pathlib import Path

import pytest

from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.formats.windows.localised import key, names, translate
from leadline.formats.windows.perfmon_counters import KNOWN
from leadline.importers import perfmon
from tests.conftest import ROOT

FIELD = ROOT.parent / "shared" / "field" / "perfmon-language"
DISK = "guest:SQL01/block-device:0 C:"
# Per language: the physical disk and its latency of reads and writes, the processor and its busy time, a code page.
LANGUAGES = {
    "German": ("Physikalischer Datenträger", "Mittlere Sek./Lesevorgänge", "Mittlere Sek./Schreibvorgänge", "cp1252"),
    "French": ("Disque physique", "Moyenne disque s/lecture", "Moyenne disque s/écriture", "cp850"),
    "Spanish": ("Disco físico", "Promedio de disco s/lectura", "Promedio de disco s/escritura", "cp1252"),
    "Italian": ("Disco fisico", "Media letture disco/sec", "Media scritture disco/sec", "cp1252"),
    "Portuguese": ("PhysicalDisk", "Média de disco s/leitura", "Média de disco s/gravação", "cp1252"),
    "Dutch": ("Fysieke schijf", "Gem. leestijd schijf", "Gem. schrijftijd schijf", "cp1252"),
    "Polish": ("Dysk fizyczny", "Średni czas dysku w s/odczyt", "Średni czas dysku w s/zapis", "cp1250"),
    "Czech": ("Fyzický disk", "Střední doba disku/čtení", "Střední doba disku/zápis", "cp852"),
    "Swedish": ("Fysisk disk", "Medel s/diskläsning", "Medel s/diskskrivning", "cp1252"),
    "Turkish": ("FizikselDisk", "Ort. Disk sn/Okuma", "Ort. Disk sn/Yazma", "cp1254"),
    "Russian": ("Физический диск", "Среднее время чтения с диска (с)", "Среднее время записи на диск (с)", "cp866"),
    "English": ("PHYSICALDISK", "avg. disk sec/read", "avg. disk sec/write", "utf-8"),
}


def log(cells: list[str], rows: list[list[str]], zone: str = "(UTC)(0)", separator: str = ",") -> str:
    header = [f"(PDH-CSV 4.0) {zone}", *(f"\\\\SQL01\\{cell}" for cell in cells)]
    stamped = [[f"11/20/2025 10:00:{5 * i:02d}.123", *row] for i, row in enumerate(rows)]
    return "\r\n".join(separator.join(f'"{cell}"' for cell in row) for row in [header, *stamped]) + "\r\n"


def read(path: Path) -> Capture:
    return import_paths([path]).capture


def mean(capture: Capture, metric: str, entity: str) -> float:
    found = [g.values[r] for g, r in capture.series() if g.metric == metric and str(g.entities[r]) == entity]
    assert len(found) == 1, capture.metrics()
    return float(found[0].mean())


def codes(capture: Capture) -> dict[str, str]:
    return {warning.code: warning.message for source in capture.sources for warning in source.warnings}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("decimal", [".", ","])
def test_disks_of_a_log_in_every_language(tmp_path: Path, language: str, decimal: str) -> None:
    disk, reads, writes, page = LANGUAGES[language]
    text = log(
        [f"{disk}(0 C:)\\{reads}", f"{disk}(0 C:)\\{writes}"], [[f"0{decimal}185", f"0{decimal}42"] for _ in range(4)]
    )
    for encoding in (page, "utf-16", "utf-8-sig"):
        path = tmp_path / f"{encoding}.csv"
        path.write_bytes(text.encode(encoding))
        capture = read(path)
        assert capture.sources[0].importer == "perfmon"
        assert mean(capture, "guest_disk_await_ms_read", DISK) == pytest.approx(185)
        assert mean(capture, "guest_disk_await_ms_write", DISK) == pytest.approx(420)


@pytest.mark.parametrize("page", ["gbk", "utf-8"])
def test_chinese_processors(tmp_path: Path, page: str) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(log(["处理器(_Total)\\% 处理器时间"], [["12"], ["14"]]).encode(page))
    capture = read(path)
    assert mean(capture, "guest_cpu_busy_pct", "guest:SQL01") == 13
    assert "code-page" not in codes(capture)


@pytest.mark.parametrize("name", ["german.csv", "french.csv"])
def test_field_recordings_come_out_as_in_english(name: str) -> None:
    if not (FIELD / name).is_file():
        pytest.skip("the shared recordings are not here")
    capture = read(FIELD / name)
    assert mean(capture, "guest_disk_await_ms_read", DISK) == pytest.approx(185, rel=0.05)
    assert mean(capture, "guest_disk_await_ms_write", DISK) == pytest.approx(420, rel=0.05)
    assert mean(capture, "guest_disk_queue_count", DISK) == pytest.approx(32, abs=1)
    assert "guest_cpu_busy_pct" in capture.metrics()


def test_the_queue_of_the_moment_counts_only_where_no_average_was_recorded(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    cells = ["PhysicalDisk(0 C:)\\Avg. Disk Queue Length", "PhysicalDisk(0 C:)\\Current Disk Queue Length"]
    path.write_text(log(cells, [["2", "31"], ["2", "31"]]))
    assert mean(read(path), "guest_disk_queue_count", DISK) == 2


def test_semicolons_and_decimal_commas(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    cells = ["Prozessor(_Total)\\Prozessorzeit (%)", "Arbeitsspeicher\\Verfügbare MB"]
    path.write_bytes(log(cells, [["12,5", "4096"], ["37,5", "4096"]], separator=";").encode("cp1252"))
    capture = read(path)
    assert mean(capture, "guest_cpu_busy_pct", "guest:SQL01") == 25
    assert mean(capture, "guest_memory_available_mib", "guest:SQL01") == 4096


def test_names_of_adapters_are_read_in_the_chosen_code_page(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    cells = ["Interfejs sieciowy(Karta łącza)\\Bajty odebrane/s", "Interfejs sieciowy(Karta łącza)\\Bajty wysłane/s"]
    path.write_bytes(log(cells, [["125000", "250000"]] * 2).encode("cp1250"))
    capture = read(path)
    assert mean(capture, "net_rx_mbit_per_s", "guest:SQL01/nic:Karta łącza") == pytest.approx(1)
    assert "code-page" not in codes(capture)


def test_the_guess_of_a_code_page_is_warned_of_where_no_name_is_known(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(log(["Onbekend voorwerp(café)\\Teller"], [["1"], ["2"]]).encode("cp1252"))
    assert "windows-1252" in codes(read(path))["code-page"]


@pytest.mark.parametrize("encoding", ["utf-8", "cp850", "utf-16"])
@pytest.mark.parametrize("width", [None, 80])
def test_output_of_typeperf_copied_from_a_console(tmp_path: Path, encoding: str, width: int | None) -> None:
    cells = [f"Physikalischer Datenträger({n} {drive}:)\\Mittlere Sek./Lesevorgänge" for n, drive in enumerate("CDE")]
    text = log(cells, [["0,1", "0,2", "0,3"], ["0,3", "0,2", "0,1"]], zone="").replace("4.0) ", "4.0)")
    if width:
        text = "\r\n".join(line[i : i + width] for line in text.splitlines() for i in range(0, len(line), width))
    path = tmp_path / "paste.txt"
    path.write_bytes(
        (
            'C:\\Users\\admin>typeperf "\\Physikalischer Datenträger(*)\\Mittlere Sek./Lesevorgänge" -sc 2\r\n\r\n'
            f"{text}\r\nVorgang wird beendet, bitte warten...        \r\n"
            "Der Befehl wurde erfolgreich ausgeführt.\r\n\r\nC:\\Users\\admin>\r\n"
        ).encode(encoding)
    )
    capture = read(path)
    assert capture.sources[0].importer == "perfmon"
    assert mean(capture, "guest_disk_await_ms_read", DISK) == pytest.approx(200)
    assert mean(capture, "guest_disk_await_ms_read", "guest:SQL01/block-device:2 E:") == pytest.approx(200)
    assert "3 lines behind the last row" in codes(capture)["console-text"]
    assert ("had broken" in codes(capture)["console-text"]) == (width is not None)


def test_a_row_that_is_damaged_is_no_word_of_the_console(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        log(["Memory\\Pages/sec"], [["1"], ["2"]]) + '"damage","3"\r\n' + '"11/20/2025 10:01:00.123","3"\r\n'
    )
    with pytest.raises(InputError, match="damage"):
        perfmon.read(Source(str(path), path), Request())


def test_disks_of_an_unknown_language_are_warned_of_once(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    cells = ["Fyysinen levy(0 C:)\\Lukuja/s", "Fyysinen levy(1 D:)\\Lukuja/s", "Toinen levy(C:)\\Lukuja/s"]
    path.write_text(log(cells, [["1", "2", "3"]] * 2, zone="(FLE Standard Time)(-120)"))
    capture = read(path)
    assert "raw.perfmon.Fyysinen levy.Lukuja/s" in capture.metrics()
    message = codes(capture)["object-name-unknown"]
    assert "Fyysinen levy" in message
    assert "Finnish" in message
    assert "Toinen" not in message


def test_unknown_counters_of_a_known_language_are_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    cells = ["Fizikai lemez(0 C:)\\Írási sebesség (bájt/s)", "Fizikai lemez(0 C:)\\Valami más"]
    path.write_text(log(cells, [["1", "2"]] * 2))
    message = codes(read(path))["counter-name-unknown"]
    assert "Hungarian" in message
    assert "Valami más" in message


def test_counters_that_cannot_be_of_use_are_not_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    kinds = ("Prozessorzeit", "Benutzerzeit", "Privilegierte Zeit", "Interruptzeit", "C1-Zeit")
    path.write_text(log([f"Prozessor(_Total)\\{kind} (%)" for kind in kinds], [["1"] * 5] * 2))
    assert "counter-name-unknown" not in codes(read(path))


def test_no_word_of_names_in_an_english_log(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    cells = ["PhysicalDisk(0 C:)\\Split IO/Sec", "BitLocker(C:)\\Read Requests/sec", "Cache\\Copy Reads/sec"]
    path.write_text(log(cells, [["1", "2", "3"]] * 2))
    assert not {"object-name-unknown", "counter-name-unknown"} & set(codes(read(path)))


def test_a_name_has_one_meaning_whatever_the_language() -> None:
    for listed in (*names().objects.values(), *names().counters.values()):
        assert len(listed) == 1, listed


def test_every_row_of_the_list_has_a_source_of_its_header() -> None:
    text = resources.files("leadline.formats.windows").joinpath("localised_names.csv").read_text(encoding="utf-8")
    stated = {line.split()[1] for line in text.splitlines() if line.startswith("#   ") and line[4] != " "}
    rows = list(csv.DictReader(io.StringIO("\n".join(line for line in text.splitlines() if not line.startswith("#")))))
    assert {row["source"] for row in rows} <= stated
    assert all(row["name"] == " ".join(row["name"].split()) for row in rows)


def test_rows_of_the_list_are_of_objects_that_exist_in_english() -> None:
    for object_name, counter in names().english:
        assert translate([(object_name, counter)], KNOWN).counters == [(object_name, counter)]


def test_keys_of_names_forget_apostrophes_case_and_blanks() -> None:
    assert key("% D\N{RIGHT SINGLE QUOTATION MARK}Inactivité") == key("%\N{NO-BREAK SPACE}d'inactivité ")


def test_counters_of_hyper_v(tmp_path: Path) -> None:
    processor = "Hyper-V Hypervisor Virtual Processor"
    device = "Hyper-V Virtual Storage Device(--?-C:-ClusterStorage-Volume1-db01.vhdx)"
    cells = {
        f"{processor}(db01:Hv VP 3)\\CPU Wait Time Per Dispatch": "250000",
        f"{processor}(db01:Hv VP 3)\\% Guest Run Time": "38",
        f"{processor}(db01:Hv VP 3)\\% Total Run Time": "40",
        f"{processor}(_Total)\\CPU Wait Time Per Dispatch": "9",
        "Hyper-V Hypervisor Logical Processor(Hv LP 5)\\% Total Run Time": "70",
        "Hyper-V Hypervisor Logical Processor(_Total)\\% Total Run Time": "60",
        "Hyper-V Dynamic Memory VM(db01)\\Average Pressure": "110",
        f"{device}\\Latency": "0.004",
        f"{device}\\Queue Length": "12",
        f"{device}\\Error Count": "3",
        f"{device}\\Read Operations/Sec": "500",
        f"{device}\\Write Bytes/sec": "1048576",
    }
    path = tmp_path / "log.csv"
    path.write_text(log(list(cells), [list(cells.values())] * 2))
    capture = read(path)
    disk = "host:SQL01/virtual-disk:--?-C:-ClusterStorage-Volume1-db01.vhdx"
    assert mean(capture, "cpu_dispatch_wait_us", "host:SQL01/vm:db01/vcpu:3") == pytest.approx(250)
    assert mean(capture, "cpu_run_pct", "host:SQL01/vm:db01/vcpu:3") == 40
    assert mean(capture, "host_cpu_util_pct", "host:SQL01/pcpu:5") == 70
    assert mean(capture, "host_cpu_util_pct", "host:SQL01") == 60
    assert mean(capture, "memory_pressure_pct", "host:SQL01/vm:db01") == 110
    assert mean(capture, "virtual_disk_latency_ms", disk) == pytest.approx(4)
    assert mean(capture, "virtual_disk_outstanding_count", disk) == 12
    assert mean(capture, "virtual_disk_errors_count", disk) == 3
    assert mean(capture, "disk_reads_per_s", disk) == 500
    assert mean(capture, "disk_write_mib_per_s", disk) == 1
