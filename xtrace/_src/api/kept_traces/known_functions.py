"""Functions and classes that are known by their names: their results depend on their arguments only.

`function_fingerprints` reads the code of all others, or raises `UncertainError`.
"""

from __future__ import annotations

import builtins
import os
import sys
import types
from typing import Any

import numpy as np

# Builtins whose results depend on their arguments only. `getattr` and `vars` can read values that no fingerprint
# contains, `print` and `open` have side effects, `hash` and `id` differ between processes.
_BUILTINS = frozenset((
    "abs", "all", "any", "bool", "bytearray", "bytes", "callable", "chr", "complex", "dict", "divmod", "enumerate",
    "filter", "float", "format", "frozenset", "int", "isinstance", "issubclass", "iter", "len", "list", "map", "max",
    "memoryview", "min", "next", "object", "ord", "pow", "range", "repr", "reversed", "round", "set", "slice", "sorted",
    "str", "sum", "super", "tuple", "type", "zip", "property", "staticmethod", "classmethod", "__build_class__",
    "NotImplemented", "Ellipsis", "None", "True", "False", "__debug__", "__name__",
))

# Standard modules: their functions are known by name, and call no functions of users except their arguments.
_STANDARD = frozenset((
    "abc", "_abc", "builtins", "cmath", "collections", "_collections", "collections.abc", "_collections_abc",
    "contextlib", "copy", "dataclasses", "enum", "functools", "_functools", "itertools", "math", "numbers", "operator",
    "_operator", "reprlib", "types", "typing", "_typing",
))

# Functions of these modules that read values outside of fingerprints.
READING = frozenset((
    "attrgetter", "methodcaller", "get_type_hints", "get_overloads", "get_annotations", "FunctionType", "CodeType",
))

# Modules of xtrace whose functions are known by name, submodules included.
_XTRACE = (
    "xtrace.numpy", "xtrace.lax", "xtrace.nn", "xtrace.random", "xtrace.scipy", "xtrace.tree", "xtrace.tree_util",
    "xtrace.image", "xtrace.dtypes", "xtrace.ops", "xtrace.sharding", "xtrace.typing", "xtrace.ad_checkpoint",
    "xtrace.flatten_util", "xtrace.custom_derivatives", "xtrace.example_libraries", "xtrace.errors",
)
_TOP = frozenset((
    "Array", "ShapeDtypeStruct", "checkpoint", "custom_gradient", "custom_jvp", "custom_vjp", "device_count",
    "default_backend", "eval_shape", "float0", "grad", "hessian", "jacfwd", "jacrev", "jacobian", "jit", "jvp",
    "linear_transpose", "linearize", "named_call", "named_scope", "remat", "shard_map", "typeof", "value_and_grad",
    "vjp", "vmap", "numpy", "lax", "nn", "random", "scipy", "tree", "tree_util", "image", "dtypes", "ops", "sharding",
    "typing", "ad_checkpoint", "flatten_util", "custom_derivatives", "example_libraries", "errors",
))

_NUMPY_FUNCTIONS = frozenset((
    "abs", "absolute", "all", "allclose", "amax", "amin", "any", "append", "arange", "argmax", "argmin", "argsort",
    "array", "array_equal", "array_split", "asarray", "ascontiguousarray", "atleast_1d", "atleast_2d", "atleast_3d",
    "average", "base_repr", "bincount", "block", "broadcast_arrays", "broadcast_shapes", "broadcast_to", "can_cast",
    "clip", "column_stack", "concatenate", "copy", "count_nonzero", "cov", "cross", "cumprod", "cumsum", "delete",
    "diag", "diag_indices", "diagonal", "diff", "digitize", "dot", "dstack", "dtype", "einsum", "eye", "expand_dims",
    "finfo", "flatnonzero", "flip", "fliplr", "flipud", "full", "full_like", "gradient", "histogram", "hstack",
    "identity", "iinfo", "indices", "inner", "insert", "interp", "isclose", "iscomplexobj", "isrealobj", "isscalar",
    "issubdtype", "ix_", "kron", "lexsort", "linspace", "logspace", "geomspace", "mask_indices", "matmul", "max",
    "mean", "median", "meshgrid", "min", "min_scalar_type", "moveaxis", "nanmax", "nanmean", "nanmin", "nansum",
    "ndarray", "ndenumerate", "ndim", "ndindex", "nonzero", "ones", "ones_like", "outer", "pad", "partition",
    "percentile", "permute_dims", "prod", "promote_types", "ptp", "put_along_axis", "quantile", "ravel",
    "ravel_multi_index", "repeat", "reshape", "result_type", "roll", "rollaxis", "rot90", "round", "searchsorted",
    "shape", "size", "sort", "split", "squeeze", "stack", "std", "sum", "swapaxes", "take", "take_along_axis",
    "tensordot", "tile", "trace", "transpose", "trapezoid", "tri", "tril", "tril_indices", "triu", "triu_indices",
    "unique", "unravel_index", "unwrap", "vander", "var", "vdot", "vsplit", "hsplit", "vstack", "where", "zeros",
    "zeros_like", "newaxis", "pi", "e", "inf", "nan",
))


# Exceptions in these modules: these functions read files, or change the results of others.
_NOT_KNOWN = frozenset((
    "load", "fromfile", "loadtxt", "genfromtxt", "save", "savez", "savez_compressed", "from_dlpack", "frompyfunc",
    "get_printoptions", "set_printoptions", "printoptions", "set_mesh", "use_mesh", "use_abstract_mesh",
    "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys", "register_dataclass",
    "register_pytree_with_keys_class", "register_static",
))


def is_known_name(home: str, name: str) -> bool:
    """Whether the name `name` in the public module `home` of xtrace is known, loaded or not."""
    if home == "xtrace":
        return name in _TOP
    return home.startswith(_XTRACE) and name.rpartition(".")[2] not in _NOT_KNOWN


def is_known(value: Any) -> bool:
    """Whether a function or class is known by its module and name, and is the value found there."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if isinstance(value, (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)):
        return _is_known_in_c(value)
    if isinstance(value, np.ufunc):
        return getattr(np, value.__name__, None) is value
    if not isinstance(module, str) or not isinstance(name, str) or not name:
        return False
    if module in ("builtins", "exceptions"):
        kind = isinstance(value, type) and issubclass(value, BaseException)
        return (name in _BUILTINS or kind) and getattr(builtins, name, None) is value
    home = sys.modules.get(module)
    if home is None or _find(home, name) is not value:
        return False
    if is_standard(module):
        return name not in READING
    if module.partition(".")[0] == "xtrace":
        return is_known_name(module, name)
    if module.startswith("ml_dtypes"):
        return isinstance(value, type)
    return module == "numpy" and (name in _NUMPY_FUNCTIONS or _is_scalar_type(value))


def _is_known_in_c(value: Any) -> bool:
    """Whether a function in C is a known builtin, a method of a builtin type, or in a module of known functions."""
    owner = getattr(value, "__objclass__", None)
    if owner is None:
        owner = getattr(value, "__self__", None)
    if isinstance(owner, type):
        return owner.__module__ in ("builtins", "collections") and getattr(owner, value.__name__, None) == value
    module = value.__module__
    if module == "builtins":
        return value.__name__ in _BUILTINS and getattr(builtins, value.__name__, None) is value
    if module == "numpy":
        return value.__name__ in _NUMPY_FUNCTIONS
    return is_standard(module) and isinstance(owner, (types.ModuleType, type(None)))


# The folder of the standard library: a user's module of the same name is found first.
_FOLDER = os.path.dirname(os.__file__) + os.sep


def is_standard(module: object) -> bool:
    """Whether `module` is the name of one of the standard modules above, and is loaded from the standard library."""
    if not isinstance(module, str) or module not in _STANDARD:
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is None or file.startswith(_FOLDER)


def is_standard_code(function: types.FunctionType) -> bool:
    """Whether the code of a function is in such a module."""
    file = function.__code__.co_filename
    return file.startswith((_FOLDER, "<frozen ")) and is_standard(function.__globals__.get("__name__"))


def _is_scalar_type(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, np.generic)


def _find(home: Any, name: str) -> Any:
    for part in name.split("."):
        home = vars(home).get(part) if hasattr(home, "__dict__") else None
    return home


def is_written_in_python(cls: type) -> bool:
    """Whether a class was made by a class statement; a class in C has methods in C of its own."""
    own = vars(cls)
    made = own.get("__new__")
    if not cls.__flags__ & _ON_HEAP or (isinstance(made, types.BuiltinFunctionType) and made.__self__ is cls):
        return False
    in_c = (types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType)
    return not any(isinstance(v, in_c) and v.__objclass__ is cls for v in own.values())


# Py_TPFLAGS_HEAPTYPE: set for all classes written in Python, and for some in C.
_ON_HEAP = 1 << 9
