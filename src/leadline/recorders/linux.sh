# Target: a Linux server or guest, as any user
# Collects: copies of /proc/loadavg, pressure, meminfo, diskstats, stat, vmstat and net/dev, every INTERVAL seconds
# Collects: CPU and disk use by program (pidstat, else top) by the programs' names
# Collects: state of TCP connections (ss), the kernel's messages of today where this user may read them (dmesg)
# Collects: settings of the kernel's memory and disks, which file system lies on which disk and how full it is
# Tried: Debian 12 with and without sysstat, BusyBox

linux_samples() {
    files="/proc/loadavg /proc/pressure/cpu /proc/pressure/io /proc/pressure/memory /proc/meminfo /proc/diskstats"
    while going; do
        echo "# $(now)"
        for file in /proc/sys/kernel/hostname /proc/sys/kernel/osrelease $files /proc/net/dev; do
            [ -r "$file" ] && cat "$file" >/dev/null 2>&1 && echo "## $file" && cat "$file"
        done
        echo "## /proc/stat"
        grep -E '^(cpu|ctxt|procs_)' /proc/stat
        echo "## /proc/vmstat"
        grep -E '^(pgpg|pswp|pgmajfault)' /proc/vmstat
        pause "$INTERVAL"
    done >>"$DIR/linux.txt" 2>/dev/null
}

linux_connections() {
    while going; do
        echo "# $(now)"
        ss -tin
        pause "$((INTERVAL * 5))"
    done >>"$DIR/ss.txt" 2>/dev/null
}

linux_value() { # one line of a file of the kernel, as JSON
    value=$(cat "$1" 2>/dev/null | head -n 1 | tr '\t' ' ' | tr -d '"\\')
    case $value in
        '') return 1 ;;
        *[!0-9]*) printf '"%s"' "$value" ;;
        *) printf '%s' "$value" ;;
    esac
}

linux_facts() {
    printf '{"schema": "leadline.facts/1", "leadline_facts": 1, "recorded": "%s", "guests": [{"name": "%s"' "$(now)" "$HOST"
    printf ', "cpu_count": %s' "$(grep -c '^processor' /proc/cpuinfo)"
    printf ', "kernel_version": "%s"' "$(uname -r)"
    awk '/^MemTotal:/ {printf ", \"memory_mib\": %.1f", $2 / 1024}' /proc/meminfo
    if [ -r /sys/kernel/mm/transparent_hugepage/enabled ]; then
        thp=$(sed 's/.*\[\(.*\)\].*/\1/' /sys/kernel/mm/transparent_hugepage/enabled)
        printf ', "transparent_huge_pages": "%s"' "$thp"
    fi
    clock=$(cat /sys/devices/system/clocksource/clocksource0/current_clocksource 2>/dev/null)
    [ -n "$clock" ] && printf ', "clock_source": "%s"' "$clock"
    printf ', "sysctl": {'
    separator=""
    for name in kernel.numa_balancing vm.dirty_background_bytes vm.dirty_background_ratio vm.dirty_bytes \
        vm.dirty_expire_centisecs vm.dirty_ratio vm.dirty_writeback_centisecs vm.nr_hugepages vm.overcommit_memory \
        vm.overcommit_ratio vm.swappiness vm.zone_reclaim_mode; do
        value=$(linux_value "/proc/sys/$(echo "$name" | tr . /)") || continue
        printf '%s"%s": %s' "$separator" "$name" "$value"
        separator=", "
    done
    printf '}, "devices": ['
    separator=""
    for path in /sys/block/*; do
        device=${path##*/}
        case $device in loop* | ram* | zram* | sr* | fd*) [ "$(cat "$path/size" 2>/dev/null || echo 0)" != 0 ] || continue ;; esac
        case $device in ram* | zram* | sr* | fd*) continue ;; esac
        printf '%s{"name": "%s"' "$separator" "$device"
        separator=", "
        awk '{printf ", \"size_gib\": %.2f", $1 * 512 / 1073741824}' "$path/size" 2>/dev/null
        scheduler=$(sed -n 's/.*\[\(.*\)\].*/\1/p' "$path/queue/scheduler" 2>/dev/null)
        [ -n "$scheduler" ] && printf ', "scheduler": "%s"' "$scheduler"
        value=$(linux_value "$path/queue/read_ahead_kb") && printf ', "read_ahead_kib": %s' "$value"
        value=$(linux_value "$path/queue/nr_requests") && printf ', "nr_requests_count": %s' "$value"
        case $(cat "$path/queue/rotational" 2>/dev/null) in
            0) printf ', "rotational": false' ;;
            1) printf ', "rotational": true' ;;
        esac
        line=$(grep -E "^/dev/$device(p?[0-9]+)? " /proc/mounts | head -n 1)
        if [ -n "$line" ]; then
            echo "$line" | awk '{gsub(/["\\]/, "", $2); printf ", \"mount\": \"%s\", \"filesystem\": \"%s\"", $2, $3}'
        fi
        printf '}'
    done
    printf ']}]}\n'
}

linux_begin() {
    linux_facts >"$DIR/facts.json" 2>/dev/null
    df -P >"$DIR/df.txt" 2>/dev/null
    background linux_samples
    if have pidstat; then
        background pidstat -h -d -u "$INTERVAL" "$(count)" >"$DIR/pidstat.txt" 2>/dev/null
    elif top -b -n 1 2>/dev/null | grep -q '^%Cpu'; then
        background top -b -d "$((INTERVAL * 5))" -n "$(($(count) / 5 + 1))" >"$DIR/top.txt" 2>/dev/null
    else
        missing "programs: neither pidstat (sysstat) nor procps' top is here"
    fi
    if have ss; then background linux_connections; else missing "connections: ss (iproute2) is not here"; fi
    dmesg -T >"$DIR/dmesg.txt" 2>/dev/null && [ -s "$DIR/dmesg.txt" ] || {
        rm -f "$DIR/dmesg.txt"
        missing "the kernel's messages: this user may not read them (root may)"
    }
}
