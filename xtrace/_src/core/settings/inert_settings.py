"""Settings of JAX that have no effect here. They are read and set like the others; setting one logs the reason once.

A row is a setting's name, its default, its kind, and the reason.
"""

from __future__ import annotations

from xtrace._src.core.settings.setting import (
    BOOLEAN,
    INTEGER,
    TEXT,
    Setting,
    declare_setting,
    declared_settings,
    one_of,
)

_TRANSITION = "it switches between two implementations within JAX, and xtrace has one"
_TRANSFERS = "arrays go between processes by collectives"
_OWN_BINARY = "each process compiles its programs itself"
_NO_MOCK = "machines are not mocked; compile(target=...) compiles for other machines"
_XLA_CACHES = "XLA_FLAGS decides on XLA's own caches"
_PALLAS = "there is no Pallas"
_JAX2TF = "there is no jax2tf"
_PROFILES = "programs are not recompiled by profiles"
_REFERENCES = "references are always checked, and programs have no pins"
_LOCATIONS = "an operation's location is its line in your source, without the frames around it"
_IGNORE = one_of("ignore", "raise")

INERT: tuple[Setting, ...] = tuple([
    declare_setting(name, default, kind, f"Without effect: {note}.", note=note) for name, default, kind, note in (
        ("check_vma", False, BOOLEAN, "shard_map takes check_vma as an argument"),
        ("eager_constant_folding", False, BOOLEAN, "constants are folded by XLA"),
        ("jax2tf_associative_scan_reductions", False, BOOLEAN, _JAX2TF),
        ("jax2tf_default_native_serialization", True, BOOLEAN, _JAX2TF),
        ("jax_auto_pcast", True, BOOLEAN, "operands that vary along different manual axes are always cast"),
        ("jax_backend_target", "", TEXT, "devices of other machines cannot be reached"),
        ("jax_bcoo_cusparse_lowering", False, BOOLEAN, "sparse arrays are computed with dense operations"),
        ("jax_captured_constants_report_frames", 0, INTEGER, "the warning names the types of the constants"),
        ("jax_check_proxy_envs", True, BOOLEAN, "no proxy variables are looked at"),
        ("jax_compilation_cache_check_contents", False, BOOLEAN, "entries have a checksum, which is always verified"),
        ("jax_compilation_cache_expect_pgle", False, BOOLEAN, _PROFILES),
        ("jax_compiler_detailed_logging_min_ops", 10, INTEGER, "jax_log_compiles logs programs of every size"),
        ("jax_cross_host_transfer_socket_address", "", TEXT, _TRANSFERS),
        ("jax_cross_host_transfer_timeout_seconds", None, INTEGER, _TRANSFERS),
        ("jax_cross_host_transfer_transfer_size", None, INTEGER, _TRANSFERS),
        ("jax_cross_host_transport_addresses", "", TEXT, _TRANSFERS),
        ("jax_custom_vjp3", False, BOOLEAN, _TRANSITION),
        ("jax_debug_leaked_clients_on_clear_backends", False, BOOLEAN, "clients live as long as the process"),
        ("jax_disable_bwd_checks", False, BOOLEAN, "results of backward functions are always checked"),
        ("jax_disable_vmap_shmap_error", False, BOOLEAN, _TRANSITION),
        ("jax_disallow_mesh_context_manager", False, BOOLEAN, "a mesh is a context; set_mesh is the newer form"),
        ("jax_distributed_debug", False, BOOLEAN, "errors of processes always have the details"),
        ("jax_embedded_constants_max_bytes", 32, INTEGER, "arrays of up to 1 KiB are constants of a program's text"),
        ("jax_enable_pgle", False, BOOLEAN, _PROFILES),
        ("jax_enable_preemption_service", True, BOOLEAN, "reached_preemption_sync_point watches for SIGTERM"),
        ("jax_error_checking_behavior_divide", "ignore", _IGNORE, "experimental.checkify finds divisions by zero"),
        ("jax_error_checking_behavior_nan", "ignore", _IGNORE, "jax_debug_nans and experimental.checkify find NaNs"),
        ("jax_error_checking_behavior_oob", "ignore", _IGNORE, "experimental.checkify finds indices out of bounds"),
        ("jax_experimental_unsafe_xla_runtime_errors", False, BOOLEAN, "experimental.checkify reports errors"),
        ("jax_export_calling_convention_version", 10, INTEGER, "functions are exported by the newest version"),
        ("jax_export_ignore_forward_compatibility", False, BOOLEAN, "no operation has a newer form"),
        ("jax_force_dcn_cross_host_transfers", False, BOOLEAN, _TRANSFERS),
        ("jax_include_full_tracebacks_in_locations", True, BOOLEAN, _LOCATIONS),
        ("jax_mock_gpu_topology", "", TEXT, _NO_MOCK), ("jax_mosaic_allow_hlo", False, BOOLEAN, _PALLAS),
        ("jax_mutable_array_checks", True, BOOLEAN, _REFERENCES),
        ("jax_oneapi_visible_devices", "all", TEXT, "there is no oneAPI platform"),
        ("jax_pallas_enable_debug_checks", False, BOOLEAN, _PALLAS),
        ("jax_pallas_poison_buffers", False, BOOLEAN, _PALLAS), ("jax_pallas_use_mosaic_gpu", True, BOOLEAN, _PALLAS),
        ("jax_pallas_verbose_errors", False, BOOLEAN, _PALLAS),
        ("jax_persistent_cache_enable_xla_caches", "xla_gpu_per_fusion_autotune_cache_dir", TEXT, _XLA_CACHES),
        ("jax_pgle_aggregation_percentile", 90, INTEGER, _PROFILES), ("jax_pgle_profiling_runs", 3, INTEGER, _PROFILES),
        ("jax_pprint_use_color", True, BOOLEAN, "jaxprs are printed without colours"),
        ("jax_ragged_dot_use_gpu_pallas_triton_lowering", False, BOOLEAN, _PALLAS),
        ("jax_ragged_dot_use_ragged_dot_instruction", True, BOOLEAN, "ragged_dot is written with dense products"),
        ("jax_refs_to_pins", False, BOOLEAN, _REFERENCES), ("jax_remat3", False, BOOLEAN, _TRANSITION),
        ("jax_remove_custom_partitioning_ptr_from_cache_key", False, BOOLEAN,
            "programs name functions in Python by their places"),
        ("jax_remove_size_one_mesh_axis_from_type", False, BOOLEAN, "types name the axes of size 1 as the others"),
        ("jax_scan3", False, BOOLEAN, _TRANSITION),
        ("jax_send_traceback_to_runtime", "off", one_of("off", "on", "full"), "the runtime does not take your lines"),
        ("jax_serialization_version", 0, INTEGER, "functions are exported by the newest version"),
        ("jax_share_binary_between_hosts", False, BOOLEAN, _OWN_BINARY),
        ("jax_share_binary_between_hosts_timeout_ms", 1200000, INTEGER, _OWN_BINARY),
        ("jax_softmax_custom_jvp", False, BOOLEAN, "softmax has one derivative rule"),
        ("jax_sort_devices_by_process_index", True, BOOLEAN, "devices are in the order of their ids"),
        ("jax_threefry_gpu_kernel_lowering", False, BOOLEAN, "random bits are made by operations that XLA fuses"),
        ("jax_traceback_in_locations_limit", 100, INTEGER, _LOCATIONS),
        ("jax_tracer_error_num_traceback_frames", 5, INTEGER, "errors show the lines that a traced value came from"),
        ("jax_use_direct_linearize", True, BOOLEAN, _TRANSITION),
        ("jax_use_emit_pipeline_primitive", False, BOOLEAN, _PALLAS),
        ("jax_use_magma", "auto", one_of("off", "on", "auto", None), "eig takes the library as an argument"),
        ("jax_use_shardy_partitioner", True, BOOLEAN, "Shardy partitions every program"),
        ("jax_use_simplified_jaxpr_constants", False, BOOLEAN, _TRANSITION),
        ("jax_xla_profile_version", 0, INTEGER, _PROFILES), ("mock_num_gpu_processes", 0, INTEGER, _NO_MOCK),
    )
])

# JAX has context managers for some of these.
auto_pcast = declared_settings["jax_auto_pcast"]
jax2tf_associative_scan_reductions = declared_settings["jax2tf_associative_scan_reductions"]
remove_size_one_mesh_axis_from_type = declared_settings["jax_remove_size_one_mesh_axis_from_type"]
softmax_custom_jvp = declared_settings["jax_softmax_custom_jvp"]
