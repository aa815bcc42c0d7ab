"""Documents of ``--json``: plain data with a versioned schema, described in the guide on JSON output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leadline.app.diagnose.grouping import grouped
from leadline.app.explain.explaining import advice_of
from leadline.core.model.finding import iso
from leadline.faces.words.answers import disk_sentence, headline
from leadline.faces.words.findings import Quotes, group_summary, lowered_sentence
from leadline.faces.words.layers import layer_sentence

if TYPE_CHECKING:
    from leadline.app.read.importing import Imported
    from leadline.core.model.capture import SourceInfo
    from leadline.core.model.finding import Diagnosis, Finding
    from leadline.core.model.result import Operation, Result


def diagnosis_document(diagnosis: Diagnosis, imported: Imported) -> dict[str, Any]:
    """``leadline.diagnosis/2``; the keys up to ``account`` are those of ``leadline.diagnosis/1``, for one version."""
    groups = grouped(diagnosis.findings, imported.capture)
    quotes = Quotes(groups)
    return {
        "headline": headline(diagnosis, quotes),
        "is_it_the_disk": disk_sentence(diagnosis.answer, quotes),
        "incidents": [incident.to_dict() for incident in diagnosis.incidents],
        "account": None if diagnosis.account is None else diagnosis.account.to_dict(),
        "answers": [answer.to_dict() | {"text": disk_sentence(answer, quotes)} for answer in diagnosis.answers],
        "layers": [v.to_dict() | {"reason": layer_sentence(v.reason, quotes)} for v in diagnosis.layers],
        "powers": [power.to_dict() for power in diagnosis.powers],
        "findings": [finding_document(finding) for finding in diagnosis.findings],
        "results": [result_document(result) for result in imported.capture.results],
        "groups": [group.to_dict() | {"summary": group_summary(group)} for group in groups if group.is_many],
        "skipped": [skipped.to_dict() for skipped in diagnosis.skipped],
        "rules_run": list(diagnosis.rules_run),
        "sources": [source_document(source) for source in imported.capture.sources],
        **not_read_document(imported),
    }


def finding_document(finding: Finding) -> dict[str, Any]:
    """A finding with the advice that belongs to its rule."""
    lowered = None if finding.lowered is None else lowered_sentence(finding.lowered)
    return {**finding.to_dict(), "lowered": lowered, "advice": advice_of(finding.rule)}


def audit_document(diagnosis: Diagnosis, imported: Imported) -> dict[str, Any]:
    """``leadline.audit/1``."""
    return {
        "findings": [finding_document(finding) for finding in diagnosis.findings],
        "skipped": [skipped.to_dict() for skipped in diagnosis.skipped],
        "rules_run": list(diagnosis.rules_run),
        "entity_count": len(imported.capture.inventory.facts),
        "sources": [source_document(source) for source in imported.capture.sources],
        **not_read_document(imported),
    }


def not_read_document(imported: Imported) -> dict[str, Any]:
    """Files of folders and archives that are not in the capture, and why."""
    return {
        "left_out": [error.to_dict() for error in imported.left_out],
        "unrecognised": list(imported.unrecognised),
    }


def source_document(source: SourceInfo) -> dict[str, Any]:
    """A source with its times and what was repaired."""
    return {
        "name": source.name,
        "importer": source.importer,
        "tool": source.tool,
        "tool_version": source.tool_version,
        "host": source.host,
        "start": None if source.start_ns is None else iso(source.start_ns),
        "end": None if source.end_ns is None else iso(source.end_ns),
        "clock_known": source.clock_known,
        "clock_offset_s": source.offset_s,
        "series_count": source.series_count,
        "warnings": [{"code": w.code, "message": w.message, "count": w.count} for w in source.warnings],
    }


def result_document(result: Result) -> dict[str, Any]:
    """A load tool's result; percentiles are the tool's own, the histogram is left to the saved capture."""
    return {
        "tool": result.tool,
        "tool_version": result.tool_version,
        "job": result.job,
        "host": result.host,
        "start": None if result.start_ns is None else iso(result.start_ns),
        "duration_s": result.duration_s,
        "error_count": result.error_count,
        "workload": result.workload,
        "operations": [_operation_document(operation) for operation in result.operations],
        "source": result.source,
    }


def _operation_document(operation: Operation) -> dict[str, Any]:
    return {
        "name": operation.name,
        "per_s": operation.per_s,
        "bytes_per_s": operation.bytes_per_s,
        "count": operation.count,
        "latency_ms": operation.latency_ms,
        "at_least": list(operation.clipped),
        "histogram_sample_count": None if operation.histogram is None else operation.histogram.total,
    }
