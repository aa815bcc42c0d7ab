"""iperf3's JSON recorded with 3.12; a run of 3.0.11 in the samples, other shapes made of ours."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leadline.core.model.errors import InputError
from leadline.importers import iperf3
from tests.conftest import FIXTURES
from tests.importers.load_tools import (
    chosen,
    entities,
    operation,
    read,
    read_text,
    sample_files,
    times_s,
    values,
    warned,
)

OURS = FIXTURES / "iperf3"
RECORDED = sorted(OURS.glob("*.json"))
TO = "guest:db01/job:iperf3 tcp to 127.0.0.1"


def document(name: str = "tcp.json") -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((OURS / name).read_text())
    return loaded


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_our_recordings_are_recognised(path: Path) -> None:
    assert chosen(path) == "iperf3"


@pytest.mark.parametrize("name", ["tcp.txt", "udp.txt"])
def test_text_output_is_not_its(name: str) -> None:
    assert chosen(OURS / name) != "iperf3"


def test_tcp() -> None:
    capture = read(iperf3, OURS / "tcp.json")
    assert entities(capture) == {TO}
    assert values(capture, "job_mbit_per_s")[0] == pytest.approx(200.255385057532)
    assert values(capture, "net_tcp_rtt_us") == [29, 30, 39, 28]
    assert values(capture, "net_tcp_window_bytes")[0] == 1178694
    assert values(capture, "net_tcp_retransmits_count") == [0] * 4
    assert times_s(capture, "job_mbit_per_s")[0] == pytest.approx(1795215527 + 1.000113, abs=1e-6)
    source = capture.sources[0]
    assert (source.host, source.tool_version, source.clock_known) == ("db01", "3.12", True)
    (result,) = capture.results
    assert operation(result, "sent").bytes_per_s == pytest.approx(200010021.706865 / 8)
    assert operation(result, "sent").latency_ms == {"mean": 0.031, "min": 0.028, "max": 0.039}
    assert operation(result, "received").bytes_per_s == pytest.approx(200008071.6852043 / 8)
    assert result.workload["target_mbit_per_s"] == 200


def test_several_streams_and_their_sum() -> None:
    capture = read(iperf3, OURS / "tcp-2streams.json")
    assert entities(capture) == {TO, f"{TO} stream 5", f"{TO} stream 7"}
    assert values(capture, "job_mbit_per_s", TO)[0] == pytest.approx(400.527193076472)
    assert values(capture, "job_mbit_per_s", f"{TO} stream 7")[0] == pytest.approx(200.2627849084087)
    assert values(capture, "net_tcp_rtt_us", TO) == [], "round-trip times of streams are not averaged"
    assert operation(capture.results[0], "sent").latency_ms == {}


def test_reverse_does_not_measure_what_the_sender_does() -> None:
    capture = read(iperf3, OURS / "tcp-reverse.json")
    assert entities(capture) == {"guest:db01/job:iperf3 tcp from 127.0.0.1"}
    assert values(capture, "net_tcp_rtt_us") == []
    assert operation(capture.results[0], "sent").latency_ms == {}


def test_udp() -> None:
    capture = read(iperf3, OURS / "udp.json")
    assert values(capture, "raw.iperf3.packets") == [77, 76, 76, 77]
    (result,) = capture.results
    assert operation(result, "lost packet").count == 0
    assert sum(known.name == "lost packet" for known in result.operations) == 1


def test_udp_loss_and_jitter(tmp_path: Path) -> None:
    received = document("udp.json")
    for index, interval in enumerate(received["intervals"]):
        interval["sum"] |= {"jitter_ms": 0.01 * index, "lost_packets": index, "lost_percent": index / 2}
    capture = read_text(iperf3, tmp_path, json.dumps(received))
    assert values(capture, "net_udp_lost_pct") == [0, 0.5, 1, 1.5]
    assert values(capture, "net_udp_jitter_ms") == pytest.approx([0, 0.01, 0.02, 0.03])


def test_bidirectional(tmp_path: Path) -> None:
    both = document()
    for interval in both["intervals"]:
        back = {**interval["streams"][0], "socket": 7, "sender": False, "bits_per_second": 5e7}
        interval["streams"].append(back)
        interval["sum_bidir_reverse"] = {**interval["sum"], "sender": False, "bits_per_second": 5e7}
    both["end"]["sum_sent_bidir_reverse"] = {**both["end"]["sum_sent"], "bits_per_second": 8e7}
    capture = read_text(iperf3, tmp_path, json.dumps(both))
    assert values(capture, "job_mbit_per_s", f"{TO} reverse") == [50] * 4
    assert values(capture, "job_mbit_per_s", TO)[0] == pytest.approx(200.255385057532)
    assert operation(capture.results[0], "sent reverse").bytes_per_s == 1e7


def test_refused_run_is_a_failure_not_an_empty_success() -> None:
    capture = read(iperf3, OURS / "refused.json")
    assert capture.groups == []
    assert capture.results[0].error_count == 1
    assert warned(capture) == ["failed"]


def test_omitted_intervals_are_left_out(tmp_path: Path) -> None:
    slow_start = document()
    slow_start["start"]["test_start"]["omit"] = 2
    omitted = copy.deepcopy(slow_start["intervals"][:2])
    for interval in omitted:
        interval["sum"]["omitted"] = interval["streams"][0]["omitted"] = True
    slow_start["intervals"] = omitted + slow_start["intervals"]
    capture = read_text(iperf3, tmp_path, json.dumps(slow_start))
    assert len(values(capture, "job_mbit_per_s")) == 4
    assert times_s(capture, "job_mbit_per_s")[0] == pytest.approx(1795215527 + 3.000113, abs=1e-6)


def test_stream_of_events(tmp_path: Path) -> None:
    whole = document()
    events = [{"event": "start", "data": whole["start"]}]
    events += [{"event": "interval", "data": interval} for interval in whole["intervals"]]
    events += [{"event": "end", "data": whole["end"]}]
    text = "".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events)
    path = tmp_path / "stream.json"
    path.write_text(text)
    assert chosen(path) == "iperf3"
    ours, theirs = read(iperf3, OURS / "tcp.json"), read(iperf3, path)
    assert values(theirs, "job_mbit_per_s") == values(ours, "job_mbit_per_s")
    assert operation(theirs.results[0], "sent").latency_ms == operation(ours.results[0], "sent").latency_ms


def test_documents_one_after_the_other(tmp_path: Path) -> None:
    text = (OURS / "tcp.json").read_text() + (OURS / "udp.json").read_text()
    assert len(read_text(iperf3, tmp_path, text).results) == 2
    cut = read_text(iperf3, tmp_path, text[:-300])
    assert (len(cut.results), warned(cut)) == (1, ["cut"])


def test_run_without_a_date_ends_at_the_last_change(tmp_path: Path) -> None:
    undated = document()
    del undated["start"]["timestamp"]
    capture = read_text(iperf3, tmp_path, json.dumps(undated))
    assert capture.groups[0].times_ns[-1] == pytest.approx((tmp_path / "x.txt").stat().st_mtime_ns, abs=2000)
    assert warned(capture) == ["no-times"]
    assert not capture.sources[0].clock_known


def test_null_is_not_measured(tmp_path: Path) -> None:
    odd = document()
    odd["intervals"][1]["sum"]["bits_per_second"] = None
    rates = values(read_text(iperf3, tmp_path, json.dumps(odd)), "job_mbit_per_s")
    assert np.isnan(rates).tolist() == [False, True, False, False]


@pytest.mark.parametrize("text", ["", "[1, 2]", '{"jobs": []}', '{"start": {', "hello"])
def test_something_else_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        read_text(iperf3, tmp_path, text)


def test_stream_of_events_without_an_end(tmp_path: Path) -> None:
    whole = document()
    events = [{"event": "start", "data": whole["start"]}, {"event": "interval", "data": whole["intervals"][0]}]
    capture = read_text(iperf3, tmp_path, "".join(json.dumps(event) + "\n" for event in events))
    assert len(values(capture, "job_mbit_per_s")) == 1
    assert (capture.results, warned(capture)) == ([], ["no-summary"])


@pytest.mark.parametrize(("member", "found"), [("intervals", 3), ("intervals", [1]), ("intervals", [{}]), ("end", {})])
def test_document_with_a_member_damaged_is_an_error(tmp_path: Path, member: str, found: object) -> None:
    with pytest.raises(InputError, match=member):
        read_text(iperf3, tmp_path, json.dumps(document() | {member: found}))


def test_cut_document_is_an_error(tmp_path: Path) -> None:
    text = (OURS / "tcp.json").read_text()
    with pytest.raises(InputError) as caught:
        read_text(iperf3, tmp_path, text[:2000])
    assert caught.value.where.endswith(f":{text[:2000].count(chr(10)) + 1}")


def test_intervals_out_of_order_are_an_error(tmp_path: Path) -> None:
    odd = document()
    odd["intervals"].reverse()
    with pytest.raises(InputError, match="times go back"):
        read_text(iperf3, tmp_path, json.dumps(odd))


def test_an_impossible_time_left_out_at_the_start_counts_as_none(tmp_path: Path) -> None:
    odd, sound = document(), document()
    odd["start"]["test_start"]["omit"] = 1e300
    sound["start"]["test_start"]["omit"] = 0
    read, expected = (read_text(iperf3, tmp_path, json.dumps(one)).groups[0].times_ns for one in (odd, sound))
    np.testing.assert_array_equal(read, expected)


@pytest.mark.parametrize("path", sample_files("iperf3/*"))
def test_samples(path: Path) -> None:
    assert chosen(path) == "iperf3"
    capture = read(iperf3, path)
    assert values(capture, "job_mbit_per_s")[:2] == pytest.approx([950.062, 940.404])
    assert values(capture, "net_tcp_window_bytes")[0] == 573408
    assert times_s(capture, "job_mbit_per_s")[0] == pytest.approx(1498663888 + 1.00007, abs=1e-6)
    assert operation(capture.results[0], "received").bytes_per_s == pytest.approx(9.34268e8 / 8)
    assert capture.sources[0].host == "rhowelllx"
