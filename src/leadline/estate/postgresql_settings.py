"""Which settings of a PostgreSQL server may leave the machine it runs on.

It is a list of what may be kept, not of what must go: a setting that a later version or an extension brings is left out
until somebody has looked at it. Sizes, times, counts, costs and switches are kept. Commands, connection strings,
addresses, names of users, and paths of files, keys and certificates are not.

Sources:
    PostgreSQL 13 to 18 documentation, "Server Configuration" and "Preset Options".
"""

from __future__ import annotations

# Settings whose values are numbers, switches or words of a fixed list.
HARMLESS = frozenset(
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
NAMING = frozenset({"cluster_name", "data_directory", "server_version"})
