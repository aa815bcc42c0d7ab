# Leadline's recorder of @TARGETS@, version @VERSION@
#
# It records for some minutes what shows why a database is slow, puts it into one archive and ends. It only reads: it
# changes no setting, installs nothing and writes to no folder but its own. It asks for no password.
#
# What it collects:
@COLLECTS@
# What it does not collect: data, passwords, environment variables, command lines@UNLESS_QUERIES@.
#
# Run it while the database is slow:  powershell -ExecutionPolicy Bypass -File record.ps1
# Ctrl-C ends it early and keeps what is there. Then:  leadline diagnose ARCHIVE
#
# Tried on: @TRIED@

param(
    [int]$Minutes = @MINUTES@,     # it ends by itself after this
    [int]$Interval = @INTERVAL@,     # seconds between two samples
    [int]$MaxMiB = @MAX_MIB@,   # it ends when its folder is larger than this
    [string]$Where = '.'      # the archive is written here
)

$ErrorActionPreference = 'Stop'
$Stamp = [DateTime]::UtcNow.ToString('yyyyMMddTHHmmssZ')
$Name = "leadline-$env:COMPUTERNAME-$Stamp"
$Folder = Join-Path (Resolve-Path $Where) $Name
$Started = @()
$Samplers = @()
New-Item -ItemType Directory -Path $Folder | Out-Null
function Add-Missing([string]$Text) {
    # The heading is what the archive's reader knows the file by.
    $Notes = Join-Path $Folder 'not-recorded.txt'
    if (-not (Test-Path $Notes)) { Set-Content -Encoding utf8 -Path $Notes -Value '# leadline recorder: not recorded' }
    Add-Content -Encoding utf8 -Path $Notes -Value $Text
}
Write-Host "Recording @TARGETS@ for $Minutes min, a sample every $Interval s, at most $MaxMiB MiB, into $Folder"
Write-Host 'Ctrl-C ends it early and keeps what is there.'

try {
@PARTS@

    $End = (Get-Date).AddMinutes($Minutes)
    $Next = Get-Date
    while ((Get-Date) -lt $End) {
        if ($Samplers.Count -and (Get-Date) -ge $Next) {
            foreach ($sampler in $Samplers) { & $sampler }
            $Next = (Get-Date).AddSeconds([Math]::Max(60, $Interval))
        }
        $Used = (Get-ChildItem $Folder | Measure-Object Length -Sum).Sum / 1MB
        if ($Used -gt $MaxMiB) { Add-Missing "ended early: more than $MaxMiB MiB"; break }
        Start-Sleep -Seconds 1
    }
} finally {
    foreach ($process in $Started) { if (-not $process.HasExited) { $process.Kill() } }
    Start-Sleep -Seconds 1
    Compress-Archive -Path $Folder -DestinationPath "$Folder.zip"
    Remove-Item -Recurse -Path $Folder
    Write-Host "Recorded: $Folder.zip"
}
