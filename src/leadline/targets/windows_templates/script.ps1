# Written by Leadline: optimisation of a Windows guest.
#
# NOT TESTED ON WINDOWS BY LEADLINE: only its syntax was checked. Read it, try it on a copy of the guest first.
#
#   .\script.ps1              shows what would change, changes nothing
#   .\script.ps1 -Apply       records what is there in a journal, then changes it
#   .\script.ps1 -Revert      puts back what the journal says

[CmdletBinding()]
param(
    [switch]$Apply,
    [switch]$Revert,
    [string]$Journal = (Join-Path $PSScriptRoot @@JOURNAL@@)
)
Set-StrictMode -Version 3.0
$ErrorActionPreference = 'Stop'
$Template = @@NAME@@
$Builds = @@BUILDS@@
$Items = @(
@@ITEMS@@
)
# Under this key the hive of the user that new users are copied from is loaded while the script runs.
$Hive = @@HIVE@@
$HiveFile = Join-Path $env:SystemDrive 'Users\Default\NTUSER.DAT'

function Get-RegistryValue([string]$Path, [string]$Name) {
    if (-not (Test-Path -LiteralPath $Path)) { return @{ Exists = $false; KeyExists = $false } }
    $key = Get-Item -LiteralPath $Path
    $real = if ($Name -eq '(default)') { '' } else { $Name }
    if ($key.GetValueNames() -notcontains $real) { return @{ Exists = $false; KeyExists = $true } }
    $held = $key.GetValue($real, $null, [Microsoft.Win32.RegistryValueOptions]::DoNotExpandEnvironmentNames)
    return @{ Exists = $true; KeyExists = $true; Type = [string]$key.GetValueKind($real); Value = $held }
}

function ConvertTo-Stored([string]$Type, $Value) {
    # The registry keeps these as signed numbers.
    switch ($Type) {
        'DWord' { return [BitConverter]::ToInt32([BitConverter]::GetBytes([uint32]$Value), 0) }
        'QWord' { return [BitConverter]::ToInt64([BitConverter]::GetBytes([uint64]$Value), 0) }
        'Binary' { return , [byte[]]$Value }
        'MultiString' { return , [string[]]$Value }
        default { return [string]$Value }
    }
}

function Join-Stored($Value) {
    # Lists are compared element by element; nothing the registry keeps holds a NUL between texts.
    return (@($Value) -join [string][char]0)
}

function Open-Hive {
    if (Test-Path -LiteralPath ('Registry::HKEY_USERS\' + $Hive)) { throw "There is a key HKEY_USERS\$Hive already; unload it first." }
    reg.exe load ('HKU\' + $Hive) $HiveFile | Out-Null
    if ($LASTEXITCODE -ne 0) { throw "The hive of the default user cannot be loaded: $HiveFile" }
}

function Close-Hive {
    # The registry provider keeps keys open until they are collected; an open key keeps the hive loaded.
    [gc]::Collect()
    [gc]::WaitForPendingFinalizers()
    reg.exe unload ('HKU\' + $Hive) | Out-Null
    if ($LASTEXITCODE -ne 0) { Write-Warning "Unload the hive by hand: reg unload HKU\$Hive" }
}

function Get-App([string]$Name) {
    $installed = @(Get-AppxPackage -Name $Name)
    $prepared = @(Get-AppxProvisionedPackage -Online | Where-Object { $_.DisplayName -eq $Name })
    return @{ Installed = $installed; Prepared = $prepared }
}

function Get-ActivePlan {
    $text = (powercfg /getactivescheme) -join ' '
    if ($text -match '([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})') { return $Matches[1] }
    throw 'powercfg does not name the active plan'
}

function Get-Task([string]$Name) {
    $folder = $Name.Substring(0, $Name.LastIndexOf('\') + 1)
    $leaf = $Name.Substring($Name.LastIndexOf('\') + 1)
    return Get-ScheduledTask -TaskPath $folder -TaskName $leaf -ErrorAction SilentlyContinue
}

function Get-Held($Item) {
    switch ($Item.Kind) {
        { $_ -in 'registry', 'remove-value' } { return Get-RegistryValue $Item.Path $Item.Name }
        'service' {
            $service = Get-CimInstance Win32_Service | Where-Object { $_.Name -eq $Item.Name }
            if ($null -eq $service) { return @{ Exists = $false } }
            $mode = if ($service.StartMode -eq 'Auto') { 'Automatic' } else { [string]$service.StartMode }
            return @{ Exists = $true; Value = $mode; Running = ($service.State -eq 'Running') }
        }
        'task' {
            $task = Get-Task $Item.Name
            if ($null -eq $task) { return @{ Exists = $false } }
            $state = if ([string]$task.State -eq 'Disabled') { 'Disabled' } else { 'Enabled' }
            return @{ Exists = $true; Value = $state }
        }
        'power-plan' { return @{ Exists = $true; Value = (Get-ActivePlan) } }
        'rss' {
            $found = @(Get-NetAdapter | Where-Object { $_.InterfaceDescription -like '*vmxnet3*' })
            if ($found.Count -eq 0) { return @{ Exists = $false } }
            $states = @($found | ForEach-Object { @{ Name = $_.Name; Enabled = [bool](Get-NetAdapterRss -Name $_.Name).Enabled } })
            return @{ Exists = $true; Value = $states }
        }
        'app' {
            $app = Get-App $Item.Name
            return @{ Exists = ($app.Installed.Count + $app.Prepared.Count -gt 0); Value = 'Installed' }
        }
    }
}

function Test-Wanted($Item, $Held) {
    switch ($Item.Kind) {
        'registry' {
            if (-not $Held.Exists) { return $false }
            return ($Held.Type -eq $Item.Type) -and ((Join-Stored $Held.Value) -eq (Join-Stored (ConvertTo-Stored $Item.Type $Item.Value)))
        }
        'remove-value' { return (-not $Held.Exists) }
        'rss' { return (-not $Held.Exists) -or (@($Held.Value | Where-Object { -not $_.Enabled }).Count -eq 0) }
        default { return (-not $Held.Exists) -or ([string]$Held.Value -eq [string]$Item.Value) }
    }
}

function Set-Start([string]$Name, [string]$Start) {
    Set-Service -Name $Name -StartupType $Start
    if ($Start -eq 'Disabled') { Stop-Service -Name $Name -ErrorAction SilentlyContinue }
}

function Set-TaskState([string]$Name, [string]$State) {
    $task = Get-Task $Name
    if ($State -eq 'Disabled') { $task | Disable-ScheduledTask | Out-Null } else { $task | Enable-ScheduledTask | Out-Null }
}

function Set-Wanted($Item) {
    switch ($Item.Kind) {
        'registry' {
            if (-not (Test-Path -LiteralPath $Item.Path)) { New-Item -Path $Item.Path -Force | Out-Null }
            $value = ConvertTo-Stored $Item.Type $Item.Value
            New-ItemProperty -LiteralPath $Item.Path -Name $Item.Name -PropertyType $Item.Type -Value $value -Force | Out-Null
        }
        'remove-value' { Remove-ItemProperty -LiteralPath $Item.Path -Name $Item.Name -Force }
        'service' { Set-Start $Item.Name $Item.Value }
        'task' { Set-TaskState $Item.Name $Item.Value }
        'power-plan' { powercfg /setactive $Item.Value }
        'rss' {
            Get-NetAdapter | Where-Object { $_.InterfaceDescription -like '*vmxnet3*' } |
                ForEach-Object { Enable-NetAdapterRss -Name $_.Name }
        }
        'app' {
            $app = Get-App $Item.Name
            $app.Installed | Remove-AppxPackage
            $app.Prepared | Remove-AppxProvisionedPackage -Online | Out-Null
        }
    }
}

function Restore-Held($Entry) {
    $Held = $Entry.Held
    switch ($Entry.Kind) {
        { $_ -in 'registry', 'remove-value' } {
            if ($Held.Exists) {
                if (-not (Test-Path -LiteralPath $Entry.Path)) { New-Item -Path $Entry.Path -Force | Out-Null }
                $value = switch ($Held.Type) {
                    'DWord' { [int32]$Held.Value }
                    'QWord' { [int64]$Held.Value }
                    'Binary' { , [byte[]]@($Held.Value) }
                    'MultiString' { , [string[]]@($Held.Value) }
                    default { [string]$Held.Value }
                }
                New-ItemProperty -LiteralPath $Entry.Path -Name $Entry.Name -PropertyType $Held.Type -Value $value -Force | Out-Null
            } elseif (Test-Path -LiteralPath $Entry.Path) {
                Remove-ItemProperty -LiteralPath $Entry.Path -Name $Entry.Name -Force -ErrorAction SilentlyContinue
                $key = Get-Item -LiteralPath $Entry.Path
                if ((-not $Held.KeyExists) -and $key.ValueCount -eq 0 -and $key.SubKeyCount -eq 0) {
                    Remove-Item -LiteralPath $Entry.Path
                }
            }
        }
        'service' {
            Set-Service -Name $Entry.Name -StartupType $Held.Value
            if ($Held.Running) { Start-Service -Name $Entry.Name }
        }
        'task' { Set-TaskState $Entry.Name $Held.Value }
        'power-plan' { powercfg /setactive $Held.Value }
        'rss' {
            foreach ($adapter in $Held.Value) {
                if (-not $adapter.Enabled) { Disable-NetAdapterRss -Name $adapter.Name }
            }
        }
        'app' { Write-Warning ('Cannot be put back, install it from the Store: ' + $Entry.Name) }
    }
}

function Invoke-Template {
    if ($Revert) {
        if (-not (Test-Path -LiteralPath $Journal)) { throw "No journal: $Journal" }
        $entries = @((Get-Content -LiteralPath $Journal -Raw -Encoding UTF8 | ConvertFrom-Json).Entries)
        [array]::Reverse($entries)
        foreach ($entry in $entries) {
            Restore-Held $entry
            Write-Output ('restored: ' + $entry.Title)
        }
        Move-Item -LiteralPath $Journal -Destination ($Journal + '.reverted') -Force
        return
    }

    $changes = @()
    foreach ($item in $Items) {
        $held = Get-Held $item
        if (Test-Wanted $item $held) { continue }
        $now = if ($held.Exists) { $held.Value } else { 'nothing' }
        Write-Output ($item.Title + ': now ' + ($now | ConvertTo-Json -Compress -Depth 4) + ', wanted ' + [string]$item.Value)
        Write-Output ('    why: ' + $item.Why + '  risk: ' + $item.Risk)
        $changes += @{ Id = $item.Id; Title = $item.Title; Kind = $item.Kind; Path = $item.Path; Name = $item.Name; Held = $held }
    }
    if ($changes.Count -eq 0) { Write-Output 'Nothing to change.'; return }
    if (-not $Apply) { Write-Output 'Nothing was changed; run with -Apply to do so.'; return }
    if (Test-Path -LiteralPath $Journal) { throw "There is a journal already; run with -Revert first: $Journal" }

    ConvertTo-Json -InputObject @{ Entries = @($changes) } -Depth 8 | Set-Content -LiteralPath $Journal -Encoding UTF8
    foreach ($change in $changes) {
        $item = $Items | Where-Object { $_.Id -eq $change.Id }
        Set-Wanted $item
        Write-Output ('changed: ' + $item.Title)
    }
    Write-Output ('Take it back with -Revert. Journal: ' + $Journal)
}

if ($Apply -and $Revert) { throw 'Choose -Apply or -Revert, not both.' }
$build = [Environment]::OSVersion.Version.Build
if ($Builds.Count -eq 2 -and ($build -lt $Builds[0] -or $build -gt $Builds[1])) {
    throw ("This template is for builds $($Builds[0]) to $($Builds[1]), and this is build $build. " + @@OTHERS@@)
}
$userItems = @($Items | Where-Object { $_.Path -like 'Registry::HKEY_USERS\*' })
if ($userItems.Count -eq 0) {
    Invoke-Template
} else {
    Open-Hive
    try { Invoke-Template } finally { Close-Hive }
}
