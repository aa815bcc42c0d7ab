"""What to record to have a layer examined: said for every layer the verdict calls "not examined"."""

from __future__ import annotations

from leadline.core.model.vocabulary import Layer

EXAMINE: dict[Layer, tuple[str, ...]] = {
    Layer.DATABASE: ("pgbench -P 1 ... 2>&1 | tee pgbench.txt   (or the database's own latency statistics)",),
    Layer.GUEST: (
        "S_TIME_FORMAT=ISO iostat -x -t 1 300 > iostat.txt",
        "vmstat -w -t 1 300 > vmstat.txt",
    ),
    Layer.VM: ("copy the VM's .vmx file, or write an inventory file: controllers, NICs, snapshots",),
    Layer.HYPERVISOR_CPU: ("on the ESXi host: esxtop -b -a -d 5 -n 120 > esxtop.csv",),
    Layer.HYPERVISOR_MEMORY: ("on the ESXi host: esxtop -b -a -d 5 -n 120 > esxtop.csv",),
    Layer.STORAGE_PATH: ("on the ESXi host: esxtop -b -a -d 5 -n 120 > esxtop.csv",),
    Layer.DATASTORE: ("vSAN performance service or array statistics for the same minutes",),
    Layer.NETWORK: ("on the ESXi host: esxtop -b -a -d 5 -n 120 > esxtop.csv",),
    Layer.HOST: ("on the ESXi host: esxtop -b -a -d 5 -n 120 > esxtop.csv",),
}
