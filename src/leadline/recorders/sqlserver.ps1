# Target: a SQL Server that sqlcmd reaches with this Windows user (VIEW SERVER STATE)
# Collects: sys.dm_os_wait_stats, sys.dm_io_virtual_file_stats and sys.dm_os_schedulers, every minute
# Queries: statements that run, with what they wait for
# Tried: never run on a real SQL Server; read and checked by eye

$server = if ($env:SQLSERVER) { $env:SQLSERVER } else { '.' }
$queries = @{
    'sqlserver_waits' = "SET NOCOUNT ON; SELECT SYSUTCDATETIME() AS sampled_at, wait_type, waiting_tasks_count, wait_time_ms, max_wait_time_ms, signal_wait_time_ms FROM sys.dm_os_wait_stats WHERE wait_time_ms > 0"
    'sqlserver_files' = "SET NOCOUNT ON; SELECT SYSUTCDATETIME() AS sampled_at, DB_NAME(v.database_id) AS database_name, f.name AS file_name, f.type_desc, v.num_of_reads, v.num_of_bytes_read, v.io_stall_read_ms, v.num_of_writes, v.num_of_bytes_written, v.io_stall_write_ms FROM sys.dm_io_virtual_file_stats(NULL, NULL) v JOIN sys.master_files f ON f.database_id = v.database_id AND f.file_id = v.file_id"
    'sqlserver_schedulers' = "SET NOCOUNT ON; SELECT SYSUTCDATETIME() AS sampled_at, scheduler_id, current_tasks_count, runnable_tasks_count, work_queue_count FROM sys.dm_os_schedulers WHERE status = 'VISIBLE ONLINE'"
}
if ('@WITH_QUERIES@') {
    $queries['sqlserver_requests'] = "SET NOCOUNT ON; SELECT SYSUTCDATETIME() AS sampled_at, r.session_id, r.status, r.command, r.wait_type, r.wait_time, r.blocking_session_id FROM sys.dm_exec_requests r WHERE r.session_id > 50"
}
if (Get-Command sqlcmd -ErrorAction SilentlyContinue) {
    $Samplers += {
        foreach ($name in $queries.Keys) {
            $file = Join-Path $Folder "$name.csv"
            $rows = sqlcmd -S $server -E -W -s ',' -Q $queries[$name]
            if ($LASTEXITCODE -ne 0) { Add-Missing "SQL Server: sqlcmd reaches no server ($server)"; return }
            $rows = $rows | Where-Object { $_ -notmatch '^-+(,-+)*$' }
            if (Test-Path $file) { $rows = $rows | Select-Object -Skip 1 }
            $rows | Add-Content -Path $file -Encoding UTF8
        }
    }
} else {
    Add-Missing 'SQL Server: sqlcmd is not here'
}
