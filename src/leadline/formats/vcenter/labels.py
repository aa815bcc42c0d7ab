"""vCenter's counters by the labels its clients show them under.

Several groups of counters share a label: ``Read rate`` is of a virtual disk, a LUN or an adapter.

Source: vSphere Web Services API, PerfCounterInfo.nameInfo and groupInfo; the English labels of a real vCenter as
govmomi's simulator holds them.
"""

from __future__ import annotations

# Counter, then its label.
_TABLE = """
cpu.usage.average                       Usage
cpu.usagemhz.average                    Usage in MHz
cpu.ready.summation                     Ready
cpu.readiness.average                   Readiness
cpu.costop.summation                    Co-stop
cpu.run.summation                       Run
cpu.system.summation                    System
cpu.wait.summation                      Wait
cpu.idle.summation                      Idle
cpu.overlap.summation                   Overlap
cpu.maxlimited.summation                Max limited
cpu.swapwait.summation                  Swap wait
cpu.latency.average                     Latency
cpu.demand.average                      Demand
cpu.utilization.average                 Utilization
cpu.coreutilization.average             Core Utilization
mem.usage.average                       Host consumed %
mem.granted.average                     Granted
mem.active.average                      Active
mem.consumed.average                    Consumed
mem.shared.average                      Shared
mem.overhead.average                    Overhead consumed
mem.vmmemctl.average                    Ballooned memory
mem.vmmemctltarget.average              Balloon target
mem.swapped.average                     Swapped
mem.swaptarget.average                  Swap target
mem.swapused.average                    Swap consumed
mem.swapinrate.average                  Swap in rate
mem.swapoutrate.average                 Swap out rate
mem.compressed.average                  Compressed
mem.compressionrate.average             Compression rate
mem.decompressionrate.average           Decompression rate
mem.latency.average                     Page-fault latency
mem.sysusage.average                    VMkernel consumed
mem.state.latest                        Free state
disk.usage.average                      Usage
disk.read.average                       Read rate
disk.write.average                      Write rate
disk.numberreadaveraged.average         Average read requests per second
disk.numberwriteaveraged.average        Average write requests per second
disk.commandsaveraged.average           Average commands issued per second
disk.commandsaborted.summation          Commands aborted
disk.busresets.summation                Bus resets
disk.maxqueuedepth.average              Maximum queue depth
disk.maxtotallatency.latest             Highest latency
disk.totallatency.average               Command latency
disk.totalreadlatency.average           Read latency
disk.totalwritelatency.average          Write latency
disk.devicelatency.average              Physical device command latency
disk.devicereadlatency.average          Physical device read latency
disk.devicewritelatency.average         Physical device write latency
disk.kernellatency.average              Kernel command latency
disk.kernelreadlatency.average          Kernel read latency
disk.kernelwritelatency.average         Kernel write latency
disk.queuelatency.average               Queue command latency
disk.queuereadlatency.average           Queue read latency
disk.queuewritelatency.average          Queue write latency
virtualdisk.read.average                Read rate
virtualdisk.write.average               Write rate
virtualdisk.numberreadaveraged.average  Average read requests per second
virtualdisk.numberwriteaveraged.average Average write requests per second
virtualdisk.totalreadlatency.average    Read latency
virtualdisk.totalwritelatency.average   Write latency
virtualdisk.readlatencyus.latest        Read Latency (us)
virtualdisk.writelatencyus.latest       Write Latency (us)
virtualdisk.readoio.latest              Average number of outstanding read requests
virtualdisk.writeoio.latest             Average number of outstanding write requests
storageadapter.totalreadlatency.average Read latency
storageadapter.totalwritelatency.average Write latency
storageadapter.read.average             Read rate
storageadapter.write.average            Write rate
net.usage.average                       Usage
net.received.average                    Data receive rate
net.transmitted.average                 Data transmit rate
net.packetsrx.summation                 Packets received
net.packetstx.summation                 Packets transmitted
net.droppedrx.summation                 Receive packets dropped
net.droppedtx.summation                 Transmit packets dropped
net.errorsrx.summation                  Packet receive errors
net.errorstx.summation                  Packet transmit errors
power.power.average                     Usage
"""


def _parsed() -> dict[str, dict[str, str]]:
    by_label: dict[str, dict[str, str]] = {}
    for line in _TABLE.strip().splitlines():
        counter, _, label = line.partition(" ")
        by_label.setdefault(label.strip().casefold(), {})[counter.partition(".")[0]] = counter
    return by_label


COUNTERS_BY_LABEL = _parsed()  # label in lower case -> group of counters -> counter, all lower case
