"""`from_stablehlo`: functions from StableHLO modules of any origin."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from xtrace._late_imports import late_modules
from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.settings import config
from xtrace._src.core.tables import memoize
from xtrace._src.export.checks import maximum_supported_calling_convention_version
from xtrace._src.export.deserialization import deserialize
from xtrace._src.export.disabled_checks import DisabledSafetyCheck
from xtrace._src.export.exported import Exported

with late_modules(globals()):
    from xtrace._src.xla.mlir import artifacts

_TENSOR = re.compile(r"tensor<((?:(?:[0-9]+|\?)x)*)([\w<>]+)>")
_ALL: list[Any] = list(dtypes.all_dtypes.values())
_DTYPES = {dtypes.mlir_name(dtype): dtype for dtype in _ALL if dtypes.bit_width(dtype) > 1}


def from_stablehlo(program: str | bytes | bytearray | memoryview) -> Callable[..., Any]:
    """Return a function that runs a StableHLO module, also in `jit` and other transformations.

    A separate process reads the module, because MLIR trusts its input. The function calls ``main`` of the module, or
    its only public function. Each call determines the unknown sizes of the module's arguments.

    Args:
        program: the module, as MLIR's text or bytecode, or as a portable artifact; or a file of `xtrace.export` or
            jax.export.

    Returns:
        A function of arrays with checked types. Its result is an array, or a tuple of several arrays. Its attribute
        `in_avals` has the types of the arguments, None if sizes are unknown. A file gives the exported function, with
        its arguments and derivatives. `vmap` calls the function in a loop, once for each element.

    Raises:
        TypeError: `program` is neither text nor bytes.
        ValueError: it is no module (the message has the line and the column of the error), has tokens or other
            arguments that are no arrays, calls Python, or has several replicas.

    Example:
        >>> text = xtrace.jit(lambda x: jnp.sin(x) * 2).lower(jnp.zeros(2)).as_text()
        >>> f = xtrace.from_stablehlo(text)
        >>> xtrace.jit(lambda x: f(x) + 1)(jnp.zeros(2))
        Array([1., 1.], dtype=float32)
    """
    if not isinstance(program, (str, bytes, bytearray, memoryview)):
        raise TypeError(
            "from_stablehlo: program must be the text or the bytes of a module, such as lowered.as_text() returns; got "
            f"{abbreviate(program)}"
        )
    data = program.encode(errors="surrogatepass") if isinstance(program, str) else bytes(program)
    if not isinstance(program, str) and b"\0" in data and not artifacts.is_bytecode(data):
        return deserialize(data).call
    return _make_function(data)


def _make_function(data: bytes) -> Callable[..., Any]:
    module = _Module(data)

    @boundary
    def call(*args: Any) -> Any:
        leaves = list(args)
        return module.find_program(leaves).call(*leaves)

    call.__name__ = call.__qualname__ = module.name
    call.in_avals = module.in_avals  # type: ignore[attr-defined]
    call.__doc__ = f"Run a StableHLO module of type ({', '.join(module.takes)}) -> ({', '.join(module.returns)})."
    return call


class _Module:
    """A module, and its programs for the argument types of earlier calls."""

    def __init__(self, data: bytes) -> None:
        self._data = _rewrite(data, ())
        module = artifacts.read_artifact(self._data)
        self.takes, self.returns = artifacts.read_signature(module)
        self.name = artifacts.get_module_name(module)
        replicas, self._partitions = artifacts.count_copies(module)
        if replicas != 1:
            raise ValueError(f"from_stablehlo: the module is for {replicas} replicas; write it for partitions of one")
        python = [name for name in artifacts.find_custom_calls(module) if "python" in name and "callback" in name]
        if python:
            raise ValueError(
                f"from_stablehlo: the module calls Python, by {', '.join(python)}, and the function was in the process "
                "that wrote it. Leave the calls out"
            )
        self._arguments = [_parse_type("argument", i, text) for i, text in enumerate(self.takes)]
        self._programs: dict[tuple[str, ...], Exported] = {}
        if not any("?" in text for text in self.takes):
            self._programs[()] = self._make_exported(self._data, self.takes, self.returns)

    @property
    def in_avals(self) -> tuple[ShapedArray, ...] | None:
        """The types of the arguments; None if sizes are unknown."""
        return self._programs[()].in_avals if () in self._programs else None

    def find_program(self, values: Sequence[Any]) -> Exported:
        """Return the program for the types of the arguments.

        TypeError for another number of arguments, ValueError for other shapes or dtypes.
        """
        if len(values) != len(self._arguments):
            raise TypeError(
                f"{self.name} takes {len(self._arguments)} arrays, as its module says, and got {len(values)}"
            )
        avals = []
        for i, (value, (sizes, dtype)) in enumerate(zip(values, self._arguments, strict=True)):
            aval = aval_of(value)
            fits = len(sizes) == aval.ndim and all(n in (None, m) for n, m in zip(sizes, aval.shape, strict=True))
            if not fits or aval.dtype != dtype:
                raise ValueError(
                    f"{'Dtype' if fits else 'Shape'} mismatch for argument {i} of {self.name}: its module takes "
                    f"{_format_type(sizes, dtype)}, and it is called with {aval.str_short()}."
                    f"{_advise(fits, dtype)}"
                )
            avals.append(aval)
        if () in self._programs:
            return self._programs[()]
        types = tuple([aval.mlir_type for aval in avals])
        if types not in self._programs:
            try:
                artifact = _rewrite(self._data, types)
                takes, returns = artifacts.read_signature(artifacts.read_artifact(artifact))
            except ValueError as error:
                raise ValueError(
                    f"{self.name}: the sizes of its module cannot be found for ({', '.join(types)}): {error}"
                ) from None
            self._programs[types] = self._make_exported(artifact, takes, returns)
        return self._programs[types]

    def _make_exported(self, artifact: bytes, takes: Sequence[str], returns: Sequence[str]) -> Exported:
        in_avals, out_avals = [
            tuple([ShapedArray(*_parse_static_type(word, i, text)) for i, text in enumerate(types)])
            for word, types in (("argument", takes), ("result", returns))
        ]
        results = (0,) * len(out_avals) if len(out_avals) != 1 else 0
        return Exported(
            fun_name=self.name, in_tree=pytree.tree_structure(((0,) * len(in_avals), {})), in_avals=in_avals,
            out_tree=pytree.tree_structure(results), out_avals=out_avals, _has_named_shardings=True,
            _in_named_shardings=(None,) * len(in_avals), _out_named_shardings=(None,) * len(out_avals),
            in_shardings_hlo=(None,) * len(in_avals), out_shardings_hlo=(None,) * len(out_avals),
            nr_devices=self._partitions, platforms=("cpu",), ordered_effects=(), unordered_effects=(),
            disabled_safety_checks=(DisabledSafetyCheck.platform(),), mlir_module_serialized=artifact,
            calling_convention_version=maximum_supported_calling_convention_version,
            module_kept_var_idx=tuple(range(len(in_avals))), uses_global_constants=False, _get_vjp=_no_derivative,
        )


def _no_derivative(exported: Exported) -> Exported:
    raise ValueError(
        f"{exported.fun_name} is a StableHLO module, which has no derivative. Give it one with xtrace.custom_vjp, or "
        "save the function with its derivative, by xtrace.export.export(f)(...).serialize(vjp_order=1)"
    )


@memoize(64)
def _rewrite(data: bytes, types: tuple[str, ...]) -> bytes:
    try:
        return artifacts.rewrite_in_process(data, types)
    except ValueError as error:
        raise ValueError(f"from_stablehlo: program cannot be used: {error}") from None


def _parse_type(word: str, position: int, text: str) -> tuple[list[int | None], Any]:
    """Return the sizes of an argument or result, None for unknown sizes, and its dtype; ValueError for no array."""
    match = _TENSOR.fullmatch(text)
    dtype = None if match is None else _DTYPES.get(match[2])
    if match is None or dtype is None:
        token = " A token orders side effects, which functions do not have." if "token" in text else ""
        raise ValueError(
            f"from_stablehlo: {word} {position} of the module is {text}, and only arrays of known dtypes can be passed "
            f"and returned.{token}"
        )
    return [None if n == "?" else int(n) for n in match[1].split("x")[:-1]], dtype


def _parse_static_type(word: str, position: int, text: str) -> tuple[list[int], Any]:
    """Return the shape and dtype of an argument or result; ValueError if a size is unknown."""
    sizes, dtype = _parse_type(word, position, text)
    if None in sizes:
        raise ValueError(
            f"from_stablehlo: {word} {position} of the module is {text}, whose size depends on values, not on the "
            "sizes of arguments; such arrays do not exist here"
        )
    return [n for n in sizes if n is not None], dtype


def _format_type(sizes: Sequence[int | None], dtype: Any) -> str:
    return f"{dtype.name}[{','.join(['?' if n is None else str(n) for n in sizes])}]"


def _advise(fits: bool, dtype: Any) -> str:
    if fits and dtypes.canonicalize(dtype, config.enable_x64.value) != dtype:
        return " Types of 64 bits are off: xtrace.config.update('jax_enable_x64', True) turns them on"
    return f" Convert it with x.astype({abbreviate(dtype.name)})" if fits else " Reshape it"
