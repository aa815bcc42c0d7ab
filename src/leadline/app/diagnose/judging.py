"""From findings to a verdict per layer and one sentence: why is it slow, is it the disk?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.app.diagnose.examine import EXAMINE
from leadline.core.contracts.rule import rule_metas
from leadline.core.model.finding import Finding, LayerVerdict, Skipped, Verdict
from leadline.core.model.vocabulary import Layer, LayerState, Severity

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture

# Layers whose conviction means "yes, the disk"; the guest only sees it.
_DISK_LAYERS = (Layer.STORAGE_PATH, Layer.DATASTORE)
# Storage-path findings that say a limit or a queue holds I/O back while the device itself is fine.
_NOT_THE_DEVICE = frozenset(
    {"vm-iops-limit-hit", "vsan-iops-limit-latency-artifact", "disk-kavg-high", "disk-qavg-high", "disk-queue-full"}
)
_GUEST_DISK_RULES = frozenset({"guest-disk-await-high", "guest-disk-stalled", "guest-iowait-high"})


def judge(findings: list[Finding], run: list[str], skipped: list[Skipped], capture: Capture) -> Verdict:
    """The verdict of findings that are already in order, causes first."""
    layers = tuple(_judge_layer(layer, findings, run, skipped) for layer in Layer)
    return Verdict(_headline(findings, capture), _is_it_the_disk(findings, layers), layers)


def _judge_layer(layer: Layer, findings: list[Finding], run: list[str], skipped: list[Skipped]) -> LayerVerdict:
    metas = rule_metas()
    layer_findings = tuple(f for f in findings if f.layer is layer and f.severity >= Severity.LOW)
    ran = tuple(name for name in run if metas[name].layer is layer)
    examining = tuple(name for name in ran if metas[name].clears)
    causes = [f for f in layer_findings if not f.is_symptom]
    symptom = next((f for f in layer_findings if f.is_symptom and f.severity >= Severity.MEDIUM), None)
    if any(f.severity >= Severity.HIGH and f.windows for f in causes):  # a setting alone convicts nobody
        state, reason = LayerState.CONVICTED, causes[0].summary
    elif any(f.severity >= Severity.MEDIUM for f in causes):
        state, reason = LayerState.SUSPECTED, causes[0].summary
    elif not examining and not any(f.windows for f in layer_findings):  # low findings of settings examine nothing
        state, reason = LayerState.NOT_EXAMINED, _missing(layer, skipped)
    elif symptom is not None:
        state, reason = LayerState.CLEARED, f"shows symptoms only, explained by {symptom.caused_by}"
    else:
        count = len(ran)
        state, reason = LayerState.CLEARED, f"{count} rule{'s' if count != 1 else ''} looked, nothing of weight"
    waiting = any(s.layer is layer for s in skipped)
    examine = EXAMINE[layer] if state is LayerState.NOT_EXAMINED and waiting else ()
    return LayerVerdict(layer, state, reason, layer_findings, ran, examine)


def _missing(layer: Layer, skipped: list[Skipped]) -> str:
    waiting = sum(1 for s in skipped if s.layer is layer)
    if not waiting:
        return "no rule looks at it yet"
    return f"nothing recorded shows it; {waiting} rule{'s' if waiting != 1 else ''} waiting"


def _headline(findings: list[Finding], capture: Capture) -> str:
    top = findings[0] if findings else None
    if top is None or top.severity < Severity.MEDIUM or top.is_symptom:
        if not capture.results and all(source.start_ns is None for source in capture.sources):
            return "Nothing was measured: none of these files holds a sample."
        return "Nothing in these recordings explains slowness."
    return top.summary


def _is_it_the_disk(findings: list[Finding], layers: tuple[LayerVerdict, ...]) -> str:
    causes = [f for f in findings if not f.is_symptom and f.severity >= Severity.MEDIUM]
    slow = [f for f in causes if f.windows and f.layer in _DISK_LAYERS and f.rule not in _NOT_THE_DEVICE]
    held_back = [f for f in causes if f.rule in _NOT_THE_DEVICE]
    seen = [f for f in causes if f.rule in _GUEST_DISK_RULES]
    if slow:
        return f"{'Yes' if slow[0] is causes[0] else 'Also, but not first'}: {slow[0].summary}."
    if held_back:
        rule = held_back[0].rule
        if held_back[0].guessed:
            return f"Probably not: I/O seems held back before the device ({rule}), but nothing below was recorded."
        return f"No, the device is not to blame: I/O is held back before it ({rule})."
    if seen and _state(layers, Layer.STORAGE_PATH) is LayerState.NOT_EXAMINED:
        return f"Yes as the guest sees it ({seen[0].summary}); which layer below adds the time was not recorded."
    if seen:
        return "The guest waits for its disk, but no layer below it was found slow."
    if _disk_examined(layers):
        return "No: the disk was looked at and is not slow."
    return "Not known: no recording shows the disk's latency."


def _state(layers: tuple[LayerVerdict, ...], layer: Layer) -> LayerState:
    return next(verdict.state for verdict in layers if verdict.layer is layer)


def _disk_examined(layers: tuple[LayerVerdict, ...]) -> bool:
    ran = {name for verdict in layers for name in verdict.rules_run}
    return any(name.startswith("disk-") or name in _GUEST_DISK_RULES - {"guest-iowait-high"} for name in ran)
