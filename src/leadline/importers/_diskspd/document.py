"""diskspd's XML output (``-Rxml``)."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

from leadline.core.model.errors import InputError
from leadline.formats.printed import number_of
from leadline.importers._diskspd.spans import NAN, SpdRun, SpdSpan, moment_printed, percentile_name

_SHARES = {"busy": "UsagePercent", "user": "UserPercent", "system": "KernelPercent", "idle": "IdlePercent"}


def document_run(text: str, name: str) -> SpdRun:
    """The run of a document, whatever stands before and behind it.

    Raises:
        InputError: it is not whole, or has a document type.
    """
    begin, end = text.find("<Results>"), text.rfind("</Results>")
    body = text[begin : end + len("</Results>")] if 0 <= begin < end else ""
    root = _root(body)
    if root is None:
        raise InputError(
            name,
            found="a document that is not whole",
            expected="<Results> to </Results> as diskspd -Rxml prints it",
            advice="Let diskspd run to its end, and copy the whole file.",
        )
    run = SpdRun(
        host=root.findtext("System/ComputerName", "").strip(),
        version=root.findtext("System/Tool/Version", "").strip(),
        start=moment_printed(root.findtext("System/RunTime", "")),
    )
    warmup_s = number_of(root.findtext("Profile/TimeSpans/TimeSpan/Warmup", "0"))
    run.warmup_s = warmup_s if math.isfinite(warmup_s) else 0.0
    for target in root.iterfind("Profile/TimeSpans/TimeSpan/Targets/Target"):
        run.workload[target.findtext("Path", "").strip()] = _workload(target)
    run.spans.extend(_span(element) for element in root.iterfind("TimeSpan"))
    return run


def _root(body: str) -> ET.Element | None:
    """The parsed document; None where it breaks, is empty or has entities, which may grow without bound."""
    if not body or "<!DOCTYPE" in body or "<!ENTITY" in body:
        return None
    try:
        return ET.fromstring(body)
    except ET.ParseError:
        return None


def _workload(target: ET.Element) -> dict[str, str]:
    kept = {"bs": "BlockSize", "iodepth": "RequestCount", "numjobs": "ThreadsPerFile", "thinktime": "ThinkTime"}
    workload = {name: text for name, tag in kept.items() if (text := target.findtext(tag, "").strip())}
    is_off = "true" in (target.findtext("DisableOSCache", ""), target.findtext("DisableAllCache", ""))
    workload["cache"] = "off" if is_off else "software"
    return workload


def _span(element: ET.Element) -> SpdSpan:
    span = SpdSpan(_number(element, "TestTimeSeconds"))
    average = element.find("CpuUtilization/Average")
    if average is not None:
        span.cpu_pct = {share: _number(average, tag) for share, tag in _SHARES.items()}
    for target in element.iterfind("Thread/Target"):
        _add_target(span, target)
    for bucket in element.iterfind("Latency/Bucket"):
        statistic = percentile_name(bucket.findtext("Percentile", "").strip())
        for way in ("Read", "Write"):
            value = _number(bucket, f"{way}Milliseconds")
            if statistic and math.isfinite(value):
                span.percentiles.setdefault(("", way.lower()), {})[statistic] = value
    for bucket in element.iterfind("Iops/Bucket"):
        for way in ("Read", "Write"):
            tick = tuple(
                number_of(bucket.get(key, "nan")) for key in ("SampleMillisecond", way, f"{way}AvgLatencyMilliseconds")
            )
            elapsed_ms, per_s, mean_ms = tick
            span.ticks.setdefault(way.lower(), []).append((elapsed_ms / 1e3, per_s, mean_ms if per_s > 0 else NAN))
    return span


def _add_target(span: SpdSpan, target: ET.Element) -> None:
    for way in ("Read", "Write"):
        count, mean_ms = _number(target, f"{way}Count"), _number(target, f"Average{way}LatencyMilliseconds")
        span.has_latency = span.has_latency or math.isfinite(mean_ms)
        per_s = count / span.duration_s if span.duration_s > 0 else NAN
        span.totals(target.findtext("Path", "").strip(), way.lower()).add(
            _number(target, f"{way}Bytes"), count, per_s, (mean_ms, _number(target, f"{way}LatencyStdev"))
        )


def _number(element: ET.Element, tag: str) -> float:
    """A number; NaN where there is none."""
    return number_of(element.findtext(tag, "nan").strip())
