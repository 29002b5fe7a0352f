"""xtrace: a thin frontend to XLA. Python functions are traced to jaxprs, lowered to StableHLO, and compiled.

``xtrace.jit`` compiles a function; ``xtrace.lower(f, *args).as_text()`` shows its StableHLO; ``xtrace.make_jaxpr``
its jaxpr. The names are JAX's.
"""
# ruff: noqa: I001

from xtrace._late_imports import late_imports as _late_imports
from xtrace.version import __version__, __version_info__

# These load at their first use.
with _late_imports(globals()):
    from xtrace._src.api.devices import (
        block_until_ready as block_until_ready, copy_to_host_async as copy_to_host_async,
        default_backend as default_backend, device_count as device_count, device_get as device_get,
        device_put as device_put, devices as devices, host_count as host_count, host_id as host_id,
        host_ids as host_ids, local_device_count as local_device_count, local_devices as local_devices,
        print_environment_info as print_environment_info, process_count as process_count,
        process_index as process_index, process_indices as process_indices, typeof as typeof,
    )
    from xtrace._src.api.jit.jit import jit as jit, lower as lower
    from xtrace._src.api.jit.jit_cache import clear_caches as clear_caches
    from xtrace._src.api.tracing import eval_shape as eval_shape, make_jaxpr as make_jaxpr
    from xtrace._src.core.arrays import Array as Array
    from xtrace._src.core.avals import ShapeDtypeStruct as ShapeDtypeStruct
    from xtrace._src.core.settings.compiler_choices import compilation as compilation
    from xtrace._src.core.settings.config import (
        allow_f16_reductions as allow_f16_reductions, array_garbage_collection_guard as array_garbage_collection_guard,
        check_tracer_leaks as check_tracer_leaks, check_tracer_leaks as checking_leaks, config as config,
        debug_infs as debug_infs, debug_key_reuse as debug_key_reuse, debug_nans as debug_nans,
        default_device as default_device, default_matmul_precision as default_matmul_precision,
        default_prng_impl as default_prng_impl, enable_checks as enable_checks,
        enable_custom_prng as enable_custom_prng, enable_x64 as enable_x64,
        explain_cache_misses as explain_cache_misses, legacy_prng_key as legacy_prng_key, log_compiles as log_compiles,
        no_execution as no_execution, no_tracing as no_tracing, numpy_dtype_promotion as numpy_dtype_promotion,
        numpy_rank_promotion as numpy_rank_promotion, thread_guard as thread_guard,
        threefry_partitionable as threefry_partitionable, transfer_guard as transfer_guard,
        transfer_guard_device_to_device as transfer_guard_device_to_device,
        transfer_guard_device_to_host as transfer_guard_device_to_host,
        transfer_guard_host_to_device as transfer_guard_host_to_device,
    )
    from xtrace._src.core.dtypes import float0 as float0
    from xtrace._src.core.settings.inert_settings import (
        auto_pcast as auto_pcast, jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions,
        remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type,
        softmax_custom_jvp as softmax_custom_jvp,
    )
    from xtrace._src.core.settings.jax_version import jax_version as jax_version
    from xtrace._src.runtime.arrays import Shard as Shard
    from xtrace._src.xla.clients import Device as Device
    from xtrace._src.api.meshes.array_assembly import (
        make_array_from_callback as make_array_from_callback,
        make_array_from_process_local_data as make_array_from_process_local_data,
        make_array_from_single_device_arrays as make_array_from_single_device_arrays,
    )
    from xtrace._src.api.differentiation.checkpoint import checkpoint as checkpoint, remat as remat
    from xtrace._src.ops.remat.policies import checkpoint_policies as checkpoint_policies
    from xtrace._src.api.custom_rules.closures import closure_convert as closure_convert
    from xtrace._src.api.custom_rules.custom_jvp import custom_jvp as custom_jvp
    from xtrace._src.api.custom_rules.custom_vjp import custom_gradient as custom_gradient, custom_vjp as custom_vjp
    from xtrace._src.api.pages.explore import explore as explore
    from xtrace._src.api.differentiation.grad import (
        grad as grad, jvp as jvp, linearize as linearize, value_and_grad as value_and_grad, vjp as vjp,
    )
    from xtrace._src.api.reports.compile_time_reports import explain_compile_time as explain_compile_time
    from xtrace._src.api.live_arrays import live_arrays as live_arrays
    from xtrace._src.api.differentiation.jacobian import (
        hessian as hessian, jacfwd as jacfwd, jacobian as jacobian, jacrev as jacrev,
        linear_transpose as linear_transpose,
    )
    from xtrace._src.api.differentiation.fwd_and_bwd import fwd_and_bwd as fwd_and_bwd
    from xtrace._src.api.meshes.meshes import (
        get_abstract_mesh as get_abstract_mesh, get_mesh as get_mesh, make_mesh as make_mesh, set_mesh as set_mesh,
        targets as targets, use_abstract_mesh as use_abstract_mesh,
    )
    from xtrace._src.api.mapping.pmap import pmap as pmap, smap as smap
    from xtrace._src.runtime.compilation_cache import compilation_cache_info as cache_info
    from xtrace._src.api.mapping.shard_map import shard_map as shard_map
    from xtrace._src.api.contexts import (
        disable_jit as disable_jit, ensure_compile_time_eval as ensure_compile_time_eval, named_call as named_call,
        named_scope as named_scope,
    )
    from xtrace._src.api.compilation.tiered_compilation import compile_all as compile_all
    from xtrace._src.api.mapping.vmap import vmap as vmap
    from xtrace._src.core.settings.compiler_choices import CompilerEffortLevel as CompilerEffortLevel, Inline as Inline
    from xtrace._src.core.shardings.partition_spec import P as P
    from xtrace._src.export.stablehlo_modules import from_stablehlo as from_stablehlo
    from xtrace.sharding import NamedSharding as NamedSharding, reshard as reshard
    from xtrace._src.ops.host.callbacks import pure_callback as pure_callback
    from xtrace._src.api.differentiation.gradient_references import ad as ad
    from xtrace._src.ops.references.indexing import ds as ds
    from xtrace.ref import (
        Ref as Ref, empty_ref as empty_ref, free_ref as free_ref, freeze as freeze, new_ref as new_ref,
    )
    from xtrace._src.core.settings.user_contexts import make_user_context as make_user_context
    from xtrace._src.runtime.callbacks import effects_barrier as effects_barrier
    from xtrace._src.alias.finder import (
        alias_names as alias_names, as_jax as as_jax, load_ipython_extension as load_ipython_extension,
    )
    from xtrace import (
        ad_checkpoint as ad_checkpoint, api_util as api_util, core as core, custom_batching as custom_batching,
        custom_derivatives as custom_derivatives, debug as debug, distributed as distributed, dlpack as dlpack,
        dtypes as dtypes,
        errors as errors, example_libraries as example_libraries, export as export,
        experimental as experimental, extend as extend, ffi as ffi, flatten_util as flatten_util, image as image,
        interpreters as interpreters,
        lax as lax, lib as lib, memory as memory, monitoring as monitoring, nn as nn, numpy as numpy, ops as ops,
        profiler as profiler, random as random, ref as ref, scipy as scipy, sharding as sharding, stages as stages,
        test_util as test_util, tree as tree, tree_util as tree_util, typing as typing,
        version as version,
    )
