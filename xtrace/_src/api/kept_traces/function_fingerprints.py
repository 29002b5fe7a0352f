"""Digests of functions: of a function's code and of every value the code reads.

Functions with equal digests trace to equal programs. Some values have no certain digest: a function in C, an object of
an unknown kind, a module that is passed as a value. For these `UncertainError` names the value.
"""

from __future__ import annotations

import builtins
import dis
import enum
import functools
import hashlib
import json
import os
import struct
import types
from abc import ABCMeta
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from xtrace._late_imports import get_namespace
from xtrace._src.api.compilation.serialized_programs import record_mesh, record_sharding
from xtrace._src.api.jit.static_arguments import Selection
from xtrace._src.api.kept_traces import known_functions
from xtrace._src.api.kept_traces.registrations import LocalRegistrationError, describe_registrations, find_copier
from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapeDtypeStruct
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.positions import is_of_package
from xtrace._src.core.sentinels import MISSING
from xtrace._src.core.shardings.mesh import BaseMesh
from xtrace._src.core.shardings.partition_spec import PartitionSpec
from xtrace._src.core.shardings.shardings import NamedSharding, SingleDeviceSharding, TiledSharding
from xtrace._src.runtime.arrays import ConcreteArray, get_layout
from xtrace._src.xla.clients import Device
from xtrace._src.xla.pytree_registry import PyTreeDef, functions_of_nodes
from xtrace._src.xla.source_locations import name_file

# The bounds of a digest; a function that closes over more is always traced.
_MAX_OBJECTS = 200_000
_MAX_BYTES = 64 * 2**20

# Instructions that load a global variable, a variable of an enclosing function, and an attribute.
_GLOBAL_LOADS = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"))
_CELL_LOADS = frozenset(("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"))
_ATTRIBUTE_LOADS = frozenset(("LOAD_ATTR", "LOAD_METHOD"))
_WITHOUT_EFFECT = frozenset(("EXTENDED_ARG", "CACHE", "NOP"))
# Attributes that lead from a value to values outside its digest, such as the variables of a module.
_REFLECTIONS = frozenset((
    "__globals__", "__builtins__", "__subclasses__", "__import__", "__loader__", "__spec__", "f_globals", "f_back",
    "f_locals", "gi_frame", "cr_frame", "tb_frame", "__code__", "__closure__", "__func__", "__self__", "__wrapped__",
    "__dict__", "__reduce__", "__reduce_ex__", "__sizeof__", "__doc__", "__annotations__", "__annotate__",
    "__getattribute__", "__static_attributes__", "__firstlineno__", "__type_params__",
))
# Attributes of classes that do not affect instances, or that follow from other attributes.
_IGNORED_ATTRIBUTES = frozenset((
    "__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__dataclass_params__", "__match_args__",
    "__annotate__", "__annotate_func__", "__annotations_cache__", "__static_attributes__", "__firstlineno__",
    "_abc_impl", "__abstractmethods__", "__orig_bases__", "__parameters__", "__qualname__", "__protocol_attrs__",
    "_is_protocol", "_is_runtime_protocol", "__non_callable_proto_members__", "__set_name__", "__slotnames__",
))
_IN_C = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType)
# The classes in C that a user's class may derive from: the state of their instances can be read.
_BASES = (object, tuple, list, dict, int, float, str)
# Modules of the package whose functions depend on their closures only.
_PURE_MODULES = frozenset(("xtrace._src.ops.remat.policies",))
_METACLASSES = ("type", "ABCMeta", "EnumType", "EnumMeta", "_ProtocolMeta", "NamedTupleMeta")


class UncertainError(Exception):
    """A function has no certain digest; the message names the value that prevents it."""


class Fingerprint:
    """A digest of values, in the order of their addition."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._numbers: dict[int, int] = {}
        # Keeps the added values alive: no address is used twice.
        self._alive: list[Any] = []
        self._path: list[str] = []
        self._bytes = 0

    def digest(self) -> bytes:
        """Return the SHA-256 digest of the added values."""
        return self._hash.digest()

    def add(self, value: Any, name: str = "") -> None:
        """Add a value; messages call it `name`. Raises `UncertainError`."""
        if name:
            self._path.append(name)
        try:
            self._add(value)
        except RecursionError:
            raise UncertainError(f"{self._where()} is nested too deeply") from None
        if name:
            self._path.pop()

    def _put(self, tag: str, content: bytes | str = b"") -> None:
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        self._bytes += len(data)
        if self._bytes > _MAX_BYTES:
            raise UncertainError(f"{self._where()} holds more than {_MAX_BYTES // 2**20} MiB of values")
        self._hash.update(b"%d:%s%d:" % (len(tag), tag.encode(), len(data)))
        self._hash.update(data)

    def _where(self) -> str:
        return " of ".join(reversed(self._path)) or "the function"

    def _refuse(self, value: object, why: str) -> UncertainError:
        return UncertainError(f"{self._where()} is {abbreviate(value)}, {why}")

    def _add(self, value: Any) -> None:
        kind = type(value)
        if value is None or value is NotImplemented or value is Ellipsis or kind is bool:
            self._put("constant", repr(value))
        elif kind is int or kind is str:
            self._put(kind.__name__, str(value))
        elif kind is float:
            self._put("float", struct.pack("<d", value))
        elif kind is complex:
            self._put("complex", struct.pack("<dd", value.real, value.imag))
        elif kind is bytes:
            self._put("bytes", value)
        elif kind is types.CodeType:
            self._add_code(value)
        elif isinstance(value, np.dtype):
            self._put("dtype", repr((value.str, value.descr)) if value.isbuiltin == 1 else f"{value!r}")
        elif isinstance(value, np.generic) and known_functions.is_known(kind):
            self._put("scalar", kind.__name__)
            self._add_data(value.dtype, np.asarray(value))
        else:
            self._add_once(value, kind)

    def _add_once(self, value: Any, kind: type) -> None:
        """Add a value that may contain itself, or may be reached several times."""
        number = self._numbers.get(id(value))
        if number is not None:
            self._put("again", str(number))
            return
        if len(self._numbers) >= _MAX_OBJECTS:
            raise UncertainError(f"the function reaches more than {_MAX_OBJECTS} values")
        self._numbers[id(value)] = len(self._numbers)
        self._alive.append(value)
        if kind is tuple or kind is list:
            self._put(kind.__name__, str(len(value)))
            for i, each in enumerate(value):
                self.add(each, f"item {i}")
        elif kind is dict or kind is OrderedDict or kind is types.MappingProxyType:
            self._add_mapping(kind.__name__, value)
        elif kind is set or kind is frozenset:
            self._add_set(kind.__name__, value)
        elif kind is np.ndarray:
            self._add_data(value.dtype, value)
        elif kind is ConcreteArray:
            self._add_array(value)
        elif kind is slice or kind is range:
            self._put(kind.__name__)
            self._add((value.start, value.stop, value.step))
        elif kind is types.ModuleType or isinstance(value, types.ModuleType):
            raise self._refuse(value, "which is passed on as a value: what is read of it cannot be told")
        elif kind is types.FunctionType:
            self._add_function(value)
        elif kind is types.MethodType:
            self._put("method")
            self.add(value.__func__)
            self.add(value.__self__, "self")
        elif kind is functools.partial or (kind.__name__ == "Partial" and _is_of_xtrace(kind)):
            self._put("partial")
            self._add_parts(func=value.func, args=value.args, keywords=value.keywords)
        elif kind is functools._lru_cache_wrapper:
            self._put("memoized")
            self.add(value.__wrapped__)
        elif kind is staticmethod or kind is classmethod:
            self._put(kind.__name__)
            self.add(value.__func__)
        elif kind is property:
            self._put("property")
            self._add_parts(fget=value.fget, fset=value.fset, fdel=value.fdel)
        elif isinstance(value, _IN_C):
            self._add_function_in_c(value)
        elif isinstance(value, type):
            self._add_class(value)
        elif isinstance(value, enum.Enum):
            self._put("member", value.name or str(value.value))
            self.add(type(value))
        elif isinstance(value, PyTreeDef):
            self._add_structure(value)
        elif isinstance(value, Device):
            self._put("device", f"{value.platform} {value.id} {value.device_kind}")
        elif isinstance(value, (types.GenericAlias, types.UnionType)) or kind.__module__ == "typing":
            self._put("annotation", repr(value))
        elif kind in (types.MemberDescriptorType, types.GetSetDescriptorType):
            self._put("slot", value.__name__)
        else:
            self._add_object(value, kind)

    def _add_parts(self, **parts: Any) -> None:
        for name, part in parts.items():
            self.add(part, name)

    def _add_mapping(self, tag: str, mapping: Mapping[Any, Any]) -> None:
        self._put(tag, str(len(mapping)))
        for key, value in mapping.items():
            self.add(key, "a key")
            self.add(value, f"item {abbreviate(key)}")

    def _add_set(self, tag: str, values: Any) -> None:
        """Add a set, whose order differs between processes, by the digests of its elements."""
        digests = []
        for value in values:
            if type(value) not in (int, str, float, bool, bytes, type(None), complex):
                raise self._refuse(value, "in a set, whose order differs between processes")
            one = Fingerprint()
            one._add(value)
            digests.append(one.digest())
        self._put(tag, b"".join(sorted(digests)))

    def _add_data(self, dtype: Any, array: np.ndarray[Any, Any]) -> None:
        if dtype.hasobject:
            raise self._refuse(array, "an array of Python objects")
        self._put("data", f"{dtype!r} {array.shape} {array.strides if not array.flags.c_contiguous else ''}")
        if array.nbytes > _MAX_BYTES:
            raise self._refuse(array, f"an array of more than {_MAX_BYTES // 2**20} MiB")
        self._put("bytes", array.tobytes())

    def _add_array(self, array: ConcreteArray) -> None:
        if array.is_deleted():
            raise self._refuse("an array", "which has been deleted")
        if array.nbytes > _MAX_BYTES:
            raise self._refuse("an array", f"of more than {_MAX_BYTES // 2**20} MiB")
        if not array.is_fully_addressable:
            raise self._refuse("an array", "which is in several processes")
        self._put("array", f"{array.aval.str_short(True)} {dtypes.short_name(array.dtype)} {array.weak_type}")
        self._put("place", f"{array.sharding!r} {[d.id for d in array.sharding.devices]} {array.committed}")
        self._put("layout", str(get_layout(array)))
        data = np.asarray(array.physical_array())
        self._add_data(data.dtype, data)

    def _add_object(self, value: Any, kind: type) -> None:
        """Add an object of a class written in Python: its class and its state."""
        if _is_of_xtrace(kind):
            self._add_object_of_library(value, kind)
            return
        if kind.__module__.partition(".")[0] == "numpy" and known_functions.is_known(value):
            self._put("known", f"numpy.{value.__name__}")
            return
        if kind.__module__ in ("dataclasses", "functools", "collections", "_collections"):
            self._add_standard_object(value, kind)
            return
        for each in kind.__mro__:
            if each not in _BASES and not known_functions.is_written_in_python(each):
                name = f"{each.__module__}.{each.__qualname__}"
                raise self._refuse(value, f"an object of {name}, whose state is not known")
        self._put("object")
        self.add(kind, f"the class {kind.__qualname__}")
        base: Any = next((b for b in _BASES if b is not object and isinstance(value, b)), None)
        if base is dict:
            self._add_mapping("base", cast("dict[Any, Any]", value))
        elif base is not None:
            self.add(base(value))
        self._add_state(value, kind)

    def _add_state(self, value: Any, kind: type) -> None:
        for each in kind.__mro__:
            slots = vars(each).get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                    self.add(getattr(value, name), f"the attribute {name}")
        state = getattr(value, "__dict__", None)
        if state is not None:
            self._put("state", str(len(state)))
            for name, part in state.items():
                self._put("name", name)
                self.add(part, f"the attribute {name}")

    def _add_object_of_library(self, value: Any, kind: type) -> None:
        """Add an object of a class of xtrace; only classes that hold users' values alone are known."""
        name = f"{kind.__module__}.{kind.__qualname__}"
        if known_functions.is_known(value):
            self._put("known", f"{value.__module__}.{value.__qualname__}")
            return
        if kind.__name__ in ("custom_jvp", "custom_vjp"):
            self._put("rules", name)
            for key, part in vars(value).items():
                if not key.startswith("__") and key not in ("signature", "_xtrace_jitted"):
                    self._put("name", key)
                    self.add(part, key)
            return
        if isinstance(value, (NamedSharding, SingleDeviceSharding, TiledSharding)):
            self._put("sharding", json.dumps(record_sharding(value)))
        elif isinstance(value, PartitionSpec):
            self._put("specification", repr((tuple(value), sorted(value.unreduced), sorted(value.reduced))))
        elif isinstance(value, BaseMesh):
            self._put("mesh", json.dumps(record_mesh(value)))
        elif kind is ShapeDtypeStruct and value.sharding is None:
            self._put("type", f"{value.shape} {dtypes.short_name(value.dtype)} {value.weak_type}")
        elif isinstance(value, tuple) and kind.__name__ == "ShardingTree":
            self._put("shardings")
            self.add(tuple(value))
        elif isinstance(value, Selection):
            self._put("selection", repr((value.numbers, value.names)))
        else:
            raise self._refuse(value, f"an object of {name}, whose state is not known")

    def _add_standard_object(self, value: Any, kind: type) -> None:
        name = kind.__name__
        if name == "Field":
            self._put("field", f"{value.name} {value.init} {value.kw_only}")
            self._add_parts(
                type=value.type, default=value.default, factory=value.default_factory, metadata=value.metadata
            )
        elif name in ("_MISSING_TYPE", "_HAS_DEFAULT_FACTORY_CLASS", "_KW_ONLY_TYPE"):
            self._put("standard", name)
        elif name == "_tuplegetter":
            self._put("field of a tuple", str(value.__reduce__()[1][0]))
        elif name == "_FIELD_BASE":
            self._put("kind of field", value.name)
        elif name == "cached_property":
            self._put("cached property")
            self.add(value.func)
        else:
            raise self._refuse(value, f"an object of {kind.__module__}.{name}, whose state is not known")

    def _add_structure(self, tree: PyTreeDef) -> None:
        data = tree.node_data()
        if data is None:
            self._put("leaf", str(tree.num_leaves))
            return
        kind, metadata = data
        self._put("node", kind.__qualname__)
        if kind not in (tuple, list, dict, type(None)):
            self.add(kind, f"the class {kind.__qualname__} of an argument")
        if metadata is not kind:
            self.add(metadata, f"the metadata of {kind.__qualname__}, the class of an argument")
        children = tree.children()
        self._put("children", str(len(children)))
        for child in children:
            self._add_structure(child)

    def _add_class(self, cls: type) -> None:
        self._add_registrations(cls)
        if known_functions.is_known(cls):
            self._put("known class", f"{cls.__module__}.{cls.__qualname__}")
            return
        if _is_of_xtrace(cls):
            if not issubclass(cls, enum.Enum):
                raise self._refuse(cls, "which may depend on more than its arguments")
            self._put("class of xtrace", f"{cls.__module__}.{cls.__qualname__}")
            return
        if not known_functions.is_written_in_python(cls):
            raise self._refuse(cls, "a class that is not written in Python")
        if type(cls).__name__ not in _METACLASSES or not known_functions.is_standard(type(cls).__module__):
            raise self._refuse(cls, "a class that has a metaclass")
        self._put("class", f"{cls.__module__} {cls.__qualname__} {cls.__name__}")
        self.add(cls.__bases__, "the bases")
        if issubclass(cls, enum.Enum):
            self._put("members", repr([(name, type(m.value).__name__) for name, m in cls.__members__.items()]))
            self.add([m.value for m in cls.__members__.values()], "the values")
        for name, value in vars(cls).items():
            if name in _IGNORED_ATTRIBUTES or (issubclass(cls, enum.Enum) and _is_made_by_enum(cls, name, value)):
                continue
            is_function = isinstance(value, types.FunctionType)
            if name == "__hash__" and is_function and value.__code__.co_filename == "<string>":
                # A dataclass generates it from its fields.
                continue
            self._put("attribute", name)
            self.add(value, f"the attribute {name}")
        registered = functions_of_nodes.get(cls)
        if registered is not None:
            self._put("node")
            self.add(registered, "its functions as a pytree")

    def _add_registrations(self, cls: type) -> None:
        if not isinstance(cls, ABCMeta) and (known_functions.is_known(cls) or _is_of_xtrace(cls)):
            return
        try:
            self._put("registrations", "\n".join(describe_registrations(cls)))
        except LocalRegistrationError as error:
            raise self._refuse(cls, f"with which a class is registered: {error}") from None
        copier = find_copier(cls)
        if copier is not None:
            self.add(copier, "its function of copyreg")

    def _add_function_in_c(self, value: Any) -> None:
        owner = getattr(value, "__self__", None)
        if known_functions.is_known(value):
            home = getattr(value, "__objclass__", owner if isinstance(owner, type) else None)
            self._put("known function", f"{home} {value.__module__ if home is None else ''} {value.__qualname__}")
        elif owner is not None and not isinstance(owner, (types.ModuleType, type)) and is_plain(owner):
            self._put("method in C", value.__name__)
            self.add(owner)
        else:
            raise self._refuse(value, "a function in C that may depend on more than its arguments")

    def _add_function(self, function: types.FunctionType) -> None:
        jitted = getattr(function, "_xtrace_jitted", None)
        code = function.__code__
        if known_functions.is_known(function):
            self._put("known", f"{function.__module__}.{function.__qualname__}")
        elif jitted is not None and jitted.wrapper() is function:
            self._put("jitted")
            self._add_parts(options=tuple(jitted.options), function=jitted.fun)
        elif is_of_package(code.co_filename) or known_functions.is_standard_code(function):
            # A wrapper's code depends on the versions of xtrace and Python only; its cells may hold the user's values.
            home = function.__globals__.get("__name__")
            is_own = "<locals>" not in code.co_qualname and is_of_package(code.co_filename)
            if (is_own and home not in _PURE_MODULES) or function.__name__ in known_functions.READING:
                raise self._refuse(function, "which may depend on more than its arguments")
            self._put("function of the library", f"{function.__globals__.get('__name__')} {code.co_qualname}")
            self._put("line", str(code.co_firstlineno))
            self._add_closure(function, all_cells=True)
        else:
            self._put("function", f"{function.__module__} {function.__qualname__} {function.__name__}")
            self._add_closure(function, all_cells=False)
            self.add(code)
            self._add_variables(function)

    def _add_closure(self, function: types.FunctionType, all_cells: bool) -> None:
        self._add_parts(defaults=function.__defaults__, keyword_defaults=function.__kwdefaults__)
        own = {k: v for k, v in vars(function).items() if k not in ("__wrapped__", "__signature__", "_xtrace_jitted")}
        if all_cells:
            for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
                self._put("cell", name)
                self._add_cell(name, cell)
        elif own:
            self.add(own, "its attributes")

    def _add_cell(self, name: str, cell: types.CellType) -> None:
        try:
            value = cell.cell_contents
        except ValueError:
            self._put("empty")
        else:
            self.add(value, f"the variable {name}")

    def _add_code(self, code: types.CodeType) -> None:
        self._put("code", code.co_code)
        self._put("exceptions", code.co_exceptiontable)
        self._put("names", repr((
            code.co_name, code.co_qualname, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars,
            code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags,
        )))
        # `co_consts` itself does not do: constants of different types, such as 1 and True, are equal.
        for constant in code.co_consts:
            self._add_constant(constant)

    def _add_constant(self, constant: Any) -> None:
        if type(constant) is tuple:
            self._put("constants", str(len(constant)))
            for each in constant:
                self._add_constant(each)
        elif type(constant) is frozenset:
            self._add_set("constants", constant)
        elif type(constant) is types.CodeType:
            self._add_code(constant)
        else:
            self._add(constant)

    def _add_variables(self, function: types.FunctionType) -> None:
        """Add the values of the outer variables that a function's code, and the code nested in it, reads."""
        code = function.__code__
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        where = f"{function.__qualname__} ({os.path.basename(name_file(code.co_filename))}:{code.co_firstlineno})"
        self._path.append(where)
        if "__class__" in cells:
            self._add_cell("__class__", cells["__class__"])
        seen: set[_Read] = set()
        for each in _codes(code):
            for read in _reads(each):
                if read in seen:
                    continue
                seen.add(read)
                self._put("read", repr(read))
                kind, name, attributes = read
                if kind == "forbidden":
                    raise UncertainError(f"{where} {name}")
                if kind == "attribute" and name not in function.__globals__ and _is_builtin(name, function):
                    continue
                if kind == "cell":
                    if name in cells:
                        self._add_read(name, cells[name], attributes)
                elif name in function.__globals__:
                    self._add_read(f"the global {name}", function.__globals__[name], attributes)
                else:
                    self._add_builtin(name, function)
        self._path.pop()

    def _add_read(self, name: str, value: Any, attributes: tuple[str, ...]) -> None:
        if isinstance(value, types.CellType):
            try:
                value = value.cell_contents
            except ValueError:
                self._put("empty")
                return
        left = list(attributes)
        while isinstance(value, types.ModuleType) and left:
            attribute = left.pop(0)
            inner = _attribute(value, attribute)
            name = f"{name}.{attribute}"
            if inner is MISSING:
                raise UncertainError(f"{name}, read by {self._where()}, is not there, or is made when it is read")
            if value.__name__.partition(".")[0] == "xtrace" and not isinstance(inner, types.ModuleType):
                if known_functions.is_known_name(value.__name__, attribute) and _is_original(inner):
                    self._put("known name", f"{value.__name__}.{attribute}")
                    return
                if inner is _LATE:
                    raise UncertainError(f"{name}, read by {self._where()}, may depend on more than its arguments")
            value = inner
        if isinstance(value, types.ModuleType):
            raise UncertainError(f"{name}, read by {self._where()}, is a module that is passed on as a value")
        self.add(value, name)

    def _add_builtin(self, name: str, function: types.FunctionType) -> None:
        scope = function.__globals__.get("__builtins__", {})
        scope = vars(scope) if isinstance(scope, types.ModuleType) else scope
        if name in scope:
            self.add(scope[name], f"the builtin {name}")
        else:
            self._put("missing", name)


# Stands for an attribute that a module of xtrace has not loaded yet.
_LATE = object()


def is_plain(value: object, depth: int = 4) -> bool:
    """Whether a value is a number, a string, bytes, None, a dtype, or a container of these."""
    kind = type(value)
    if kind in (int, float, complex, bool, str, bytes, type(None)) or isinstance(value, (np.dtype, np.generic)):
        return True
    if depth and kind in (tuple, list, set, frozenset):
        return all(is_plain(each, depth - 1) for each in value)  # type: ignore[attr-defined]
    if depth and kind is dict:
        return all(is_plain(k) and is_plain(v, depth - 1) for k, v in value.items())  # type: ignore[attr-defined]
    return False


def _is_of_xtrace(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "xtrace"


def _attribute(module: types.ModuleType, name: str) -> Any:
    """Return an attribute of a module without side effects: of late attributes of xtrace, only modules are loaded."""
    value = get_namespace(module).get(name, MISSING)
    if value is MISSING:
        late = get_namespace(module).get("_late", {}).get(name)
        if late is not None and late.origin == module.__name__:
            return getattr(module, name)
        if late is not None:
            return _LATE
    return value


def _is_original(value: Any) -> bool:
    """Whether a value in a module of xtrace is the library's own, not one that the user assigned."""
    if value is _LATE or is_plain(value):
        return True
    home = getattr(value, "__module__", None) or type(value).__module__
    code = getattr(value, "__code__", None)
    return home.startswith(("xtrace", "numpy", "ml_dtypes")) and (code is None or is_of_package(code.co_filename))


def _is_made_by_enum(cls: Any, name: str, value: Any) -> bool:
    return (name.startswith("_") and not name.startswith("__") and name.endswith("_")) or name in cls.__members__ or (
        name in ("__new__", "_generate_next_value_", "__format__") and not isinstance(value, types.FunctionType)
    ) or type(value).__module__ == "enum"


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


_Read = tuple[str, str, tuple[str, ...]]


def _reads(code: types.CodeType) -> Iterator[_Read]:
    """Yield each outer variable that code reads: its kind, its name, and the attributes read from it at once."""
    instructions = [i for i in dis.get_instructions(code) if i.opname not in _WITHOUT_EFFECT]
    for number, instruction in enumerate(instructions):
        name = instruction.opname
        argument = instruction.argval
        if name == "IMPORT_NAME":
            yield "forbidden", f"imports {argument} when it is called", ()
        elif name in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            yield "forbidden", f"changes the global {argument}", ()
        elif name in ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "LOAD_SUPER_ATTR") and argument in _REFLECTIONS:
            yield "forbidden", f"reads the attribute {argument}", ()
        elif name in _GLOBAL_LOADS or name in _CELL_LOADS:
            attributes = []
            for following in instructions[number + 1 :]:
                if following.opname not in _ATTRIBUTE_LOADS or following.is_jump_target:
                    break
                attributes.append(following.argval)
            if argument in _BY_NAME and _has_constant_name(instructions[number + 1 :]):
                yield "attribute", argument, ()
            else:
                yield "global" if name in _GLOBAL_LOADS else "cell", argument, tuple(attributes)


# Builtins that read an attribute; known if the attribute's name is a constant.
_BY_NAME = frozenset(("getattr", "hasattr"))
_UNKNOWN = object()


def _is_builtin(name: str, function: types.FunctionType) -> bool:
    """Whether a name, which is no global of the function, is Python's original builtin."""
    scope = function.__globals__.get("__builtins__", builtins)
    scope = vars(scope) if isinstance(scope, types.ModuleType) else scope
    return scope.get(name) is _ORIGINALS[name]


_ORIGINALS = {name: vars(builtins)[name] for name in _BY_NAME}


def _has_constant_name(instructions: list[dis.Instruction]) -> bool:
    """Whether the second argument of a call is a harmless constant string; the call's function was just loaded."""
    stack: list[Any] = []
    for instruction in instructions:
        argument = instruction.arg
        if instruction.opname in ("PRECALL", "CALL") and argument == len(stack):
            return len(stack) >= 2 and type(stack[1]) is str and stack[1] not in _REFLECTIONS
        jumps = instruction.is_jump_target or instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs
        if jumps or instruction.opname.startswith(("SWAP", "COPY", "UNPACK", "ROT", "FOR_")):
            return False
        if instruction.opname == "LOAD_CONST":
            stack.append(instruction.argval)
            continue
        effect = dis.stack_effect(instruction.opcode, argument)
        if effect <= 0:
            # At most one of the remaining values is a result; the others were on the stack before.
            del stack[max(0, len(stack) + effect - 1) :]
            effect = 1
        stack += [_UNKNOWN] * effect
    return False
