# Target: an ESXi host's shell, as root (ESXi has no other)
# Collects: esxtop -b -a every INTERVAL seconds (5 at least), which names VMs, datastores and devices
# Collects: vmkernel.log and vobd.log of now, lists of storage devices, paths, file systems and adapters (esxcli)
# Tried: never run on a real ESXi host; its parts ran in BusyBox

esxi_begin() {
    every=$INTERVAL
    [ "$every" -ge 5 ] || every=5
    have esxtop || { missing "esxtop is not here: this is no ESXi shell"; return; }
    background esxtop -b -a -d "$every" -n "$((MINUTES * 60 / every + 1))" >"$DIR/esxtop.csv" 2>/dev/null
    for log in vmkernel vobd; do
        tail -n 20000 "/var/log/$log.log" >"$DIR/$log.log" 2>/dev/null || missing "/var/log/$log.log"
    done
    if have esxcli; then
        for list in "storage core device list" "storage core path list" "storage filesystem list" "storage nmp device list" \
            "storage core adapter list" "network nic list" "system version get"; do
            # shellcheck disable=SC2086
            esxcli $list >"$DIR/esxcli-$(echo "$list" | tr ' ' '-').txt" 2>/dev/null
        done
    else
        missing "esxcli is not here"
    fi
}
