"""A host does not keep its clock right.

Finds:
    Hosts without any time server, or with a time service that does not run.

Why:
    Guests take the host's time at start, after a move and after a snapshot. A host that is off makes their clocks
    jump: logs of several machines no longer fit together, Kerberos logins fail, clusters and replicas disagree.

Do:
    Give all hosts the same two to four NTP servers, start the service and let it start with the host. Let guests
    use NTP of their own as well, and VMware Tools' periodic time synchronisation be off.

When it is wrong:
    Hosts that use PTP: count its service as running and name its source among the servers.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): ESXi hosts with NTP.
    vCheck for vSphere: NTP server and service of hosts.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import of_facts

META = RuleMeta(
    code="HST112",
    layer=Layer.HOST,
    severity=Severity.MEDIUM,
    causes=("time-step",),
    needs=("host.ntp_servers|host.ntp_running",),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    for host in context.inventory.of_kind(EntityKind.HOST):
        servers = context.inventory.get(host, "ntp_servers")
        if servers is not None and not any(str(server).strip() for server in servers):
            summary = f"{host.label()} has no time server"
        elif context.inventory.get(host, "ntp_running") is False:
            summary = f"the time service of {host.label()} does not run"
        else:
            continue
        yield of_facts(context, host, summary, [(host, "ntp_servers"), (host, "ntp_running")])
