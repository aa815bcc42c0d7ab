# Target: a Windows server, as a member of Performance Monitor Users
# Collects: Performance Monitor's counters of disks, processors, memory, system, network and processes (typeperf)
# Collects: disks with their size and model, volumes and how full they are
# Tried: never run on a real Windows; read and checked by eye

$counters = @(
    '\PhysicalDisk(*)\*', '\LogicalDisk(*)\% Free Space', '\Processor Information(*)\% Processor Time',
    '\Processor Information(*)\% Privileged Time', '\System\Processor Queue Length', '\System\Context Switches/sec',
    '\Memory\*', '\Paging File(*)\% Usage', '\Network Interface(*)\*',
    '\Process(*)\% Processor Time', '\Process(*)\IO Data Bytes/sec'
)
$list = Join-Path $Folder 'counters.txt'
$counters | Set-Content -Path $list -Encoding Ascii
$typeperf = Start-Process -FilePath 'typeperf.exe' -PassThru -NoNewWindow -ArgumentList @(
    '-cf', "`"$list`"", '-si', $Interval, '-sc', [int]($Minutes * 60 / $Interval), '-f', 'CSV',
    '-o', "`"$(Join-Path $Folder 'perfmon.csv')`"", '-y'
)
$Started += $typeperf
try {
    Get-CimInstance Win32_DiskDrive | Select-Object Index, Model, InterfaceType, Size |
        Export-Csv -NoTypeInformation (Join-Path $Folder 'disks.csv')
    Get-CimInstance Win32_LogicalDisk -Filter 'DriveType=3' | Select-Object DeviceID, FileSystem, Size, FreeSpace |
        Export-Csv -NoTypeInformation (Join-Path $Folder 'volumes.csv')
} catch {
    Add-Missing "disks and volumes: $($_.Exception.Message)"
}
