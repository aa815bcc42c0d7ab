"""Settings of databases as rules look at them: which engine, what a parameter says, how much memory there is.

An engine's parameters are one map, ``parameters``, by the engine's own names. Values come from what the engine prints
or from what a person wrote, so one setting may be the text ``8GB``, the number 1048576 (of 8 KiB pages), or a YAML
``on``, which arrives as 1. What nobody has set may be known too, as a default of the engine's version
(``parameter_defaults``); what any source says is set wins over it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from leadline.core.model.entities import Entity, Fact, Inventory
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Role, Severity
from leadline.estate.derived.disks import Use, behind, whole_disk

if TYPE_CHECKING:
    from leadline.core.contracts.rule import RuleContext

NAN = float("nan")
KIB, MIB, GIB = 1024.0, 1024.0**2, 1024.0**3

Judge = Callable[[Entity, str | float], tuple[str, Severity] | None]

_TITLES = {"postgresql": "PostgreSQL"}
_ON = frozenset({"on", "true", "yes", "y", "t", "1"})
_OFF = frozenset({"off", "false", "no", "n", "f", "0"})
_NUMBER = re.compile(r"[+-]?\d{1,18}(?:\.\d{1,18})?")
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*([kMGT]?B)")
_SIZE_UNITS = {"B": 1.0, "kB": KIB, "MB": MIB, "GB": GIB, "TB": 1024.0**4}
# Source: PostgreSQL documentation, pg_settings.unit of each. The page is 8 KiB unless the server was built otherwise.
_POSTGRESQL_BASE_BYTES = {"shared_buffers": 8 * KIB, "max_wal_size": MIB}
# What may leave a PostgreSQL server. It is a list of what may be kept, not of what must go: a setting that a later
# version or an extension brings is left out until somebody has looked at it. Values are numbers, switches or words of a
# fixed list. Commands, connection strings, addresses, users, and paths of files, keys and certificates are not here.
# Source: PostgreSQL 13 to 18 documentation, "Server Configuration" and "Preset Options".
POSTGRESQL_HARMLESS = frozenset(
    """
    archive_mode archive_timeout autovacuum autovacuum_analyze_scale_factor autovacuum_analyze_threshold
    autovacuum_freeze_max_age autovacuum_max_workers autovacuum_multixact_freeze_max_age autovacuum_naptime
    autovacuum_vacuum_cost_delay autovacuum_vacuum_cost_limit autovacuum_vacuum_insert_scale_factor
    autovacuum_vacuum_insert_threshold autovacuum_vacuum_max_threshold autovacuum_vacuum_scale_factor
    autovacuum_vacuum_threshold autovacuum_work_mem autovacuum_worker_slots
    backend_flush_after bgwriter_delay bgwriter_flush_after bgwriter_lru_maxpages bgwriter_lru_multiplier block_size
    checkpoint_completion_target checkpoint_flush_after checkpoint_timeout checkpoint_warning
    client_connection_check_interval commit_delay commit_siblings commit_timestamp_buffers compute_query_id
    constraint_exclusion cpu_index_tuple_cost cpu_operator_cost cpu_tuple_cost cursor_tuple_fraction
    data_checksums deadlock_timeout debug_io_direct default_statistics_target dynamic_shared_memory_type
    effective_cache_size effective_io_concurrency enable_async_append enable_bitmapscan enable_gathermerge
    enable_hashagg enable_hashjoin enable_incremental_sort enable_indexonlyscan enable_indexscan enable_material
    enable_memoize enable_mergejoin enable_nestloop enable_parallel_append enable_parallel_hash
    enable_partition_pruning enable_partitionwise_aggregate enable_partitionwise_join enable_seqscan enable_sort
    enable_tidscan
    file_copy_method from_collapse_limit fsync full_page_writes geqo geqo_threshold
    hash_mem_multiplier hot_standby hot_standby_feedback huge_page_size huge_pages huge_pages_status
    idle_in_transaction_session_timeout idle_replication_slot_timeout idle_session_timeout in_hot_standby
    io_combine_limit io_max_combine_limit io_max_concurrency io_method io_workers
    jit jit_above_cost jit_inline_above_cost jit_optimize_above_cost join_collapse_limit lock_timeout
    log_autovacuum_min_duration log_checkpoints log_connections log_disconnections log_duration log_lock_waits
    log_min_duration_sample log_min_duration_statement log_parameter_max_length log_recovery_conflict_waits
    log_rotation_age log_rotation_size log_startup_progress_interval log_statement log_statement_sample_rate
    log_temp_files log_transaction_sample_rate logging_collector logical_decoding_work_mem
    maintenance_io_concurrency maintenance_work_mem max_active_replication_origins max_connections
    max_files_per_process max_locks_per_transaction max_logical_replication_workers
    max_parallel_apply_workers_per_subscription max_parallel_maintenance_workers max_parallel_workers
    max_parallel_workers_per_gather max_pred_locks_per_transaction max_prepared_transactions max_replication_slots
    max_slot_wal_keep_size max_stack_depth max_standby_archive_delay max_standby_streaming_delay
    max_sync_workers_per_subscription max_wal_senders max_wal_size max_worker_processes min_dynamic_shared_memory
    min_parallel_index_scan_size min_parallel_table_scan_size min_wal_size multixact_member_buffers
    multixact_offset_buffers notify_buffers num_os_semaphores old_snapshot_threshold
    parallel_leader_participation parallel_setup_cost parallel_tuple_cost plan_cache_mode
    random_page_cost recovery_min_apply_delay recovery_prefetch recursive_worktable_factor reserved_connections
    segment_size seq_page_cost serializable_buffers server_version_num shared_buffers shared_memory_size
    shared_memory_size_in_huge_pages shared_memory_type statement_timeout stats_fetch_consistency
    subtransaction_buffers summarize_wal superuser_reserved_connections synchronize_seqscans synchronous_commit
    tcp_keepalives_count tcp_keepalives_idle tcp_keepalives_interval tcp_user_timeout temp_buffers temp_file_limit
    track_activities track_activity_query_size track_commit_timestamp track_cost_delay_timing track_counts
    track_functions track_io_timing track_wal_io_timing transaction_buffers transaction_timeout
    vacuum_buffer_usage_limit vacuum_cost_delay vacuum_cost_limit vacuum_cost_page_dirty vacuum_cost_page_hit
    vacuum_cost_page_miss vacuum_max_eager_freeze_failure_rate vacuum_truncate
    wal_block_size wal_buffers wal_compression wal_decode_buffer_size wal_init_zero wal_keep_size wal_level
    wal_log_hints wal_receiver_status_interval wal_receiver_timeout wal_recycle wal_retrieve_retry_interval
    wal_segment_size wal_sender_timeout wal_skip_threshold wal_sync_method wal_writer_delay wal_writer_flush_after
    work_mem
    """.split()
)
# What the importer pg_settings calls a server by; texts, but no secrets.
POSTGRESQL_NAMING = frozenset({"cluster_name", "data_directory", "server_version"})


def of_engine(inventory: Inventory, *engines: str) -> Iterator[Entity]:
    """Databases of some engines: as the inventory says, else those a recording named after their engine."""
    for database in inventory.of_kind(EntityKind.DATABASE):
        engine = inventory.get(database, "engine")
        if str(database.name if engine is None else engine).casefold() in engines:
            yield database


def parameter(inventory: Inventory, database: Entity, name: str) -> str | float | None:
    """The value of an engine's parameter, whatever the case of its name; None when it is not known."""
    fact = parameter_fact(inventory, database, name)
    return None if fact is None else fact.value


def parameter_fact(inventory: Inventory, database: Entity, name: str) -> Fact | None:
    """A parameter with where it was read; that of one nobody has set says that it is a default, and of what version."""
    for setting in ("parameters", "parameter_defaults"):
        fact = inventory.fact(database, setting)
        value = None if fact is None else _entry(fact.value, name)
        if fact is not None and value is not None:
            known = value if isinstance(value, (str, int, float)) else str(value)
            source = fact.source if setting == "parameters" else f"{fact.source}: {_default_of(inventory, database)}"
            return replace(fact, value=known, source=source)
    return None


def _entry(settings: dict[str, Any], name: str) -> Any:  # noqa: ANN401 - whatever a source holds
    value = settings.get(name)
    return (
        value
        if value is not None
        else next((v for k, v in settings.items() if str(k).casefold() == name.casefold()), None)
    )


def _default_of(inventory: Inventory, database: Entity) -> str:
    engine = str(inventory.get(database, "engine") or database.name)
    return f"default of {_TITLES.get(engine.casefold(), engine)} {inventory.get(database, 'version') or ''}".rstrip()


def by_parameter(context: RuleContext, engine: str, name: str, judge: Judge) -> Iterator[Finding]:
    """Findings of databases of an engine one of whose parameters is judged bad.

    ``judge`` gets database and value and returns summary and severity, or None. Databases whose parameter is not
    known are left out.
    """
    for database in of_engine(context.inventory, engine):
        value = parameter(context.inventory, database, name)
        verdict = None if value is None else judge(database, value)
        if value is not None and verdict is not None:
            yield finding_of_parameters(context, database, verdict, {name: value})


def finding_of_parameters(
    context: RuleContext, database: Entity, verdict: tuple[str, Severity], values: dict[str, str | float]
) -> Finding:
    """A finding of a database whose evidence is some of its parameters, by name."""
    facts = {name: parameter_fact(context.inventory, database, name) for name in values}
    evidence = [
        Evidence(
            f"{name} of {database.label()} is {shown(value)}",
            entity=database,
            source=None if (fact := facts[name]) is None else fact.source,
        )
        for name, value in values.items()
    ]
    uncertain = any(fact is not None and fact.guessed for fact in facts.values())
    guessed = (f"parameters of {database.label()}",) if uncertain else ()
    return context.finding(database, verdict[0], evidence, severity=verdict[1], guessed=guessed)


def shown(value: str | float) -> str:
    """A value for people: numbers without needless digits, nothing as two quotes.

    >>> shown(16384.0), shown(0.5), shown("")
    ('16384', '0.5', "''")
    """
    if isinstance(value, str):
        return value or "''"
    return f"{value:.0f}" if value == int(value) else f"{value:g}"


def number_of(value: str | float | None) -> float:
    """The value as a number; NaN when it is not known or not a number.

    >>> number_of("2147483647"), number_of(" 8 "), number_of("unlimited")
    (2147483647.0, 8.0, nan)
    """
    if value is None or isinstance(value, str):
        return float(value) if value is not None and _NUMBER.fullmatch(value.strip()) else NAN
    return float(value)


def flag_of(value: str | float | None) -> bool | None:
    """The value as on or off; None when it is neither.

    >>> flag_of("on"), flag_of(0.0), flag_of("try")
    (True, False, None)
    """
    if value is None:
        return None
    word = value.strip().casefold() if isinstance(value, str) else shown(value)
    return True if word in _ON else False if word in _OFF else None


def postgresql_bytes(name: str, value: str | float | None) -> float:
    """A size PostgreSQL is set to, in bytes: ``8GB``, or a bare number in the unit pg_settings prints.

    NaN when it is not known or not a size.

    >>> postgresql_bytes("shared_buffers", 1048576), postgresql_bytes("shared_buffers", "8GB")
    (8589934592.0, 8589934592.0)
    """
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is not None:
        return float(match[1]) * _SIZE_UNITS[match[2]]
    return number_of(value) * _POSTGRESQL_BASE_BYTES.get(name, NAN)


def vm_of(inventory: Inventory, database: Entity) -> Entity | None:
    """The VM a database runs in, where it is known."""
    guest = database.ancestor(EntityKind.GUEST)
    return None if guest is None else inventory.vm_of(guest)


def machine_fact(inventory: Inventory, database: Entity, guest_setting: str, vm_setting: str) -> Fact | None:
    """A fact of the machine a database runs on: as the guest sees it, else as its VM is configured."""
    guest, vm = database.ancestor(EntityKind.GUEST), vm_of(inventory, database)
    guest_fact = None if guest is None else inventory.fact(guest, guest_setting)
    return guest_fact if guest_fact is not None or vm is None else inventory.fact(vm, vm_setting)


def memory_bytes(inventory: Inventory, database: Entity) -> float:
    """Memory of the machine a database runs on, in bytes; NaN when it is not known."""
    fact = machine_fact(inventory, database, "memory_mib", "memory_mib")
    return NAN if fact is None else float(fact.value) * MIB


def disks_of(inventory: Inventory, known: Mapping[Entity, Use], database: Entity, role: Role) -> dict[Entity, Use]:
    """Block devices that hold a database's data or log: the one it names, else those of its guest with the role.

    ``known`` is what `uses` found; the medium of a disk that has none is that of the LUN or datastore it lies on.
    """
    named = inventory.get(database, "data_device" if role is Role.DATA else "wal_device")
    disk_uses: dict[Entity, Use] = {}
    for disk in [] if database.parent is None else inventory.children(database.parent, EntityKind.BLOCK_DEVICE):
        use = known.get(disk, Use())
        is_wanted = use.role is role if named is None else whole_disk(disk.name) == whole_disk(str(named))
        if is_wanted:
            media = (inventory.get(below, "medium") for below in behind(inventory, disk))
            disk_uses[disk] = replace(use, medium=use.medium or next((m for m in media if m is not None), None))
    return disk_uses
