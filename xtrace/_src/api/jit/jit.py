"""`jit`: trace once per signature, compile with XLA, and call the compiled program from then on."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any, ParamSpec, TypeVar, overload

from xtrace._late_imports import late_modules
from xtrace._src.api.compilation import sharding_assignment
from xtrace._src.api.jit import static_arguments
from xtrace._src.api.jit.jit_cache import Options
from xtrace._src.api.jit.jitted import Jitted, make_jitted
from xtrace._src.api.jit.static_arguments import Selection
from xtrace._src.core.callables import check_callable, wraps
from xtrace._src.core.diagnostics.warn import warn_user
from xtrace._src.core.sentinels import UNSPECIFIED, Unspecified
from xtrace._src.core.settings.compiler_choices import Inline, check_compilation, parse_inline
from xtrace._src.xla.clients import Device

with late_modules(globals()):
    from xtrace._src.api.jit import jitted_type, stages

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


@overload
def jit(
    fun: Callable[_Arguments, _Result], /, *, in_shardings: Any = ..., out_shardings: Any = ...,
    static_argnums: int | Sequence[int] | None = ..., static_argnames: str | Sequence[str] | None = ...,
    donate_argnums: int | Sequence[int] | None = ..., donate_argnames: str | Sequence[str] | None = ...,
    keep_unused: bool = ..., device: Any = ..., backend: str | None = ..., inline: bool | Inline = ...,
    compiler_options: dict[str, Any] | None = ..., compilation: str | None = ...,
) -> jitted_type.Wrapped[_Arguments, _Result]: ...


@overload
def jit(
    fun: Unspecified = ..., /, *, in_shardings: Any = ..., out_shardings: Any = ...,
    static_argnums: int | Sequence[int] | None = ..., static_argnames: str | Sequence[str] | None = ...,
    donate_argnums: int | Sequence[int] | None = ..., donate_argnames: str | Sequence[str] | None = ...,
    keep_unused: bool = ..., device: Any = ..., backend: str | None = ..., inline: bool | Inline = ...,
    compiler_options: dict[str, Any] | None = ..., compilation: str | None = ...,
) -> Callable[[Callable[_Arguments, _Result]], jitted_type.Wrapped[_Arguments, _Result]]: ...


def jit(
    fun: Callable[..., Any] | Unspecified = UNSPECIFIED, /, *, in_shardings: Any = None, out_shardings: Any = None,
    static_argnums: int | Sequence[int] | None = None, static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None, donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False, device: Device | None = None, backend: str | None = None, inline: bool | Inline = False,
    compiler_options: dict[str, Any] | None = None, compilation: str | None = None,
) -> Callable[..., Any]:
    """Return `fun` compiled by XLA: traced once for each signature of its arguments, then run as one program.

    A signature is the shapes, dtypes and weak types of all array leaves, the pytree structure, and the values of static
    arguments. Arguments and results are pytrees of arrays, NumPy arrays and Python scalars. Without `fun`, `jit`
    returns a decorator with the other arguments.

    Args:
        fun: the function to compile. It must not depend on the values of its arrays in Python control flow.
        in_shardings: the shardings of the positional arguments, or a tree prefix of them. A `PartitionSpec` refers to
            the mesh of `set_mesh`; None leaves the choice to the argument or to XLA.
        out_shardings: the shardings of the results, likewise.
        static_argnums: positions of parameters that stay Python values; these must be hashable. Names are inferred.
        static_argnames: names of such parameters; positions are inferred.
        donate_argnums: positions of parameters whose memory the program may reuse; the arrays cannot be used
            afterwards. A call under grad, vmap or another jit donates nothing.
        donate_argnames: names of such parameters.
        keep_unused: whether arguments that the program does not read are passed to it.
        device: the device on which the program runs. Deprecated: put the arguments there.
        backend: the platform on which the program runs, such as "cpu". Deprecated, likewise.
        inline: whether a call in another traced function records the operations without a call; or an `Inline`,
            which names a later time for this.
        compiler_options: options of XLA by name.
        compilation: ``"full"``; ``"quick"``, which compiles with little optimisation; or ``"tiered"``, which runs the
            quick program until a background thread has compiled the full one: the last bits of results may then
            change between calls. None reads the setting ``xtrace_compilation``. A call in another traced function is
            compiled with that function.

    Returns:
        A function with the arguments and results of `fun`. It has the members `lower`, `trace`, `eval_shape`,
        `warm_up`, `warm_up_all`, `wait_for_compilation`, `cache_info` and `clear_cache`.

    Raises:
        TypeError: `fun` is not callable. A call raises it for an argument that is no array.
        ValueError: an option does not fit. A call raises it for a static argument that is not hashable.

    Example:
        >>> @xtrace.jit
        ... def norm(x):
        ...     return jnp.sqrt((x * x).sum())
        >>> norm(jnp.array([3.0, 4.0]))
        Array(5., dtype=float32)
    """
    if isinstance(fun, Unspecified):
        keywords = {k: v for k, v in locals().items() if k != "fun"}
        return functools.partial(jit, **keywords)
    check_callable(fun)
    chosen = sharding_assignment.read_device_option(device, backend, in_shardings, out_shardings)
    if chosen is not None:
        warn_user(
            "backend and device argument on jit is deprecated: put the arguments of the jitted function on the device "
            "with xtrace.device_put(x, device)", DeprecationWarning,
        )
    static = Selection("static", fun, static_argnums, static_argnames)
    donated = Selection("donate", fun, donate_argnums, donate_argnames)
    static_arguments.check_disjoint(fun, static, donated)
    options = Options(
        static.numbers, static.names, donated.numbers, donated.names, bool(keep_unused),
        chosen, parse_inline(inline),
        static_arguments.freeze_compiler_options("jit", compiler_options),
        sharding_assignment.make_sharding_tree("in_shardings", in_shardings),
        sharding_assignment.make_sharding_tree("out_shardings", out_shardings),
        check_compilation(compilation),
    )
    return make_jitted(fun, static, donated, options).callable()


def jit_library_function(function: Callable[..., Any], names: Sequence[str], inline: bool) -> Jitted:
    """Return a function of the library jitted; `names` are its static parameters."""
    static, donated = Selection("static", function, None, names), Selection("donate", function, None, None)
    options = Options(static.numbers, static.names, (), (), False, None, inline, ())
    jitted = make_jitted(function, static, donated, options)
    jitted.of_library = True
    return jitted


def with_code_of(
    jitted: Jitted, call: Callable[[tuple[Any, ...], dict[str, Any]], Any], function: Any
) -> Callable[..., Any]:
    """Return a function that runs the specialised code of `jitted` and passes other calls to ``call(args, kwargs)``.

    It has the name and the signature of `function`, and the stages of `jitted`. Frequent signatures of `jitted` have
    specialised code, which saves a Python call.
    """
    wrapper = wraps(function)(jitted.cache.call_shapes.entry_point(call))
    vars(wrapper).update(jitted.stage_attributes(), _xtrace_jitted=jitted)
    return wrapper


def run_specialised(jitted: Jitted) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """Return a function of ``(args, kwargs)`` that runs the specialised code of `jitted`, or returns MISS."""
    return jitted.cache.call_shapes.run


def lower(fun: Callable[..., Any], /, *args: object, **kwargs: object) -> stages.Lowered:
    """Return ``jit(fun).lower(*args, **kwargs)``, the lowered program of a function, without compiling or running it.

    Args:
        fun: a function of pytrees of arrays, jitted or not.
        args: its arguments; ShapeDtypeStructs may stand for arrays.
        kwargs: its keyword arguments, likewise.

    Returns:
        A `Lowered`: ``as_text()`` is its StableHLO, ``compile()`` compiles it.

    Raises:
        TypeError: `fun` is not callable, or an argument is no array.

    Example:
        >>> print(xtrace.lower(jnp.negative, 1.0).as_text().rstrip())
        module @jit_negative attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
          func.func public @main(%arg0: tensor<f32>) -> (tensor<f32> {jax.result_info = "result"}) {
            %0 = stablehlo.negate %arg0 : tensor<f32>
            return %0 : tensor<f32>
          }
        }
    """
    check_callable(fun)
    jitted, before = get_jitted(fun)
    if args or kwargs:
        return jitted.lower(*before, *args, **kwargs)
    return jitted.lower_without_arguments()


def get_jitted(fun: Callable[..., Any]) -> tuple[Jitted, tuple[Any, ...]]:
    """Return the `Jitted` of `fun`, a new one if it is not jitted, and the arguments that a method prepends."""
    function, before = (fun.__func__, (fun.__self__,)) if isinstance(fun, MethodType) else (fun, ())
    jitted = getattr(function, "_xtrace_jitted", None)
    # functools.wraps copies the attribute to functions that do more than call this one.
    if isinstance(jitted, Jitted) and jitted.wrapper() is function:
        return jitted, before
    made: Any = jit(fun)
    return made._xtrace_jitted, ()
