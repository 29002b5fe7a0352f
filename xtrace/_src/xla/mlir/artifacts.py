"""StableHLO's portable artifacts: programs in files. The import of this module loads jaxlib's MLIR bindings.

MLIR's reader trusts its input: a changed bit aborts the process, or fills the memory. So another process reads a
program whose bytes may be damaged, and writes it again; this process reads the copy.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func, stablehlo

from xtrace._src.xla.custom_calls import lapack
from xtrace._src.xla.mlir import mlir_names, mlir_objects, modules

# The seconds for a process that reads an artifact, plus one for each megabyte, and the bytes of its address space.
_PATIENCE = 30
_ADDRESS_SPACE = 1 << 35

_READ = "import sys; from xtrace._src.xla.mlir import artifacts; sys.exit(artifacts.rewrite(sys.argv[1:]))"
# Precedes the message of the other process, which may write other text before.
_MARK = "\nThe program: "

# The first bytes of MLIR's bytecode; the name of the writer follows.
_BYTECODE = b"ML\xefR"
_PORTABLE = b"StableHLO_v"


@cache
def portable_version() -> str:
    """Return the newest version of StableHLO that releases from four weeks ago can read."""
    return str(stablehlo.get_version_from_compatibility_requirement(stablehlo.StablehloCompatibilityRequirement.WEEK_4))


def write_artifact(text: str) -> bytes:
    """Return the portable artifact of a module's text; shardings are not converted."""
    return mlir_names.to_artifact(modules.parse(text), portable_version(), True)


def read_artifact(artifact: bytes) -> Any:
    """Return the verified module of an artifact; ValueError with MLIR's messages for other bytes."""
    try:
        module = mlir_names.from_artifact(artifact, None)
        module.operation.verify()
    except Exception as error:
        raise ValueError(f"its program is no portable artifact of StableHLO: {_describe(error)}") from None
    return module


def is_bytecode(data: bytes) -> bool:
    """Return whether bytes are MLIR's bytecode, or a portable artifact."""
    return data.startswith(_BYTECODE)


def refine(text: str) -> Any:
    """Return the module of a text in which the known sizes of ``main``'s arguments determine all unknown sizes.

    Raises ValueError with the message of an assertion on sizes that fails.
    """
    return _with_known_sizes(modules.parse(text), "sdy." in text)


def _with_known_sizes(module: Any, has_shardings: bool) -> Any:
    try:
        refined = mlir_names.with_static_shapes(mlir_objects.bytecode(module), True, True, has_shardings)
    except Exception as error:
        # The message of an assertion is the rest of a line; locations are before and after.
        message = re.search(r"error: (Input shapes .*)", str(error))
        why = message[1] if message is not None else "; ".join([str(error), *getattr(error, "__notes__", ())])
        raise ValueError(why) from None
    with modules.collect_diagnostics():
        return ir.Module.parse(refined, context=modules.context())


def rewrite_in_process(program: bytes, argument_types: Sequence[str] = ()) -> bytes:
    """Let another process read a program, and return the artifact that it writes; ValueError if it fails or dies.

    argument_types: the types of ``main``'s arguments, whose sizes determine the unknown ones; empty to keep these.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([path or os.getcwd() for path in sys.path])}
    try:
        ran = subprocess.run(
            [sys.executable, "-c", _READ, *argument_types], input=program, env=environment, capture_output=True,
            check=False, timeout=_PATIENCE + len(program) / 1e6,
        )
    except subprocess.TimeoutExpired:
        raise ValueError("its program is damaged: reading it takes forever") from None
    if ran.returncode < 0:
        raise ValueError(f"its program is damaged: reading it ends a process with signal {-ran.returncode}")
    if ran.returncode:
        why = ran.stderr.decode(errors="replace").rstrip()
        why = why.rpartition(_MARK)[2] if _MARK in why else why.rpartition("\n")[2]
        raise ValueError(f"its program is no StableHLO that can be read here: {why}")
    return ran.stdout


def rewrite(argument_types: Sequence[str]) -> int:
    """Read a program from the standard input, and write this jaxlib's artifact of it to the standard output.

    Returns the exit code.
    """
    if resource is not None:
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        limit = _ADDRESS_SPACE if most == resource.RLIM_INFINITY else min(_ADDRESS_SPACE, most)
        resource.setrlimit(resource.RLIMIT_AS, (limit, most))
    try:
        module = _read_program(sys.stdin.buffer.read())
        _name_entry(module)
        if argument_types:
            module = _refine_arguments(module, argument_types)
        _check_operations(module)
        artifact = mlir_names.to_artifact(module, portable_version(), True)
    except Exception as error:
        sys.stderr.write(f"{_MARK}{_describe(error)}")
        return 1
    sys.stdout.buffer.write(artifact)
    return 0


def _describe(error: Exception) -> str:
    """Return the text of an error with its notes, MLIR's messages."""
    return f"{error} {'; '.join(getattr(error, '__notes__', ()))}".rstrip()


def _read_program(data: bytes) -> Any:
    """Return the module of an artifact, of MLIR's bytecode, or of text."""
    if not is_bytecode(data):
        return _translate_portable(modules.parse(data))
    if _PORTABLE in data[:64]:
        module = mlir_names.from_artifact(data, None)
    else:
        with modules.collect_diagnostics() as messages:
            try:
                module = ir.Module.parse(data, context=modules.context())
            except ir.MLIRError as error:
                raise ValueError("; ".join(messages) or str(error)) from None
            module = _translate_portable(module)
    module.operation.verify()
    return module


def _translate_portable(module: Any) -> Any:
    """Return the module in StableHLO; artifacts before StableHLO's versions are bytecode of VHLO, its portable form."""
    if any(operation.operation.name.startswith("vhlo.") for operation in module.body.operations):
        version = stablehlo.get_current_version()
        modules.run_passes(module, f"builtin.module(vhlo-to-version{{target={version}}},vhlo-legalize-to-stablehlo)")
    return module


def _check_operations(module: Any) -> None:
    """Raise ValueError for operations that MLIR accepts, and jaxlib or XLA does not: bad names, bad comparisons."""
    # A list, because MLIR replaces an error that a visit raises by its own.
    faults: list[str] = []

    def visit(operation: Any) -> Any:
        names = [operation.attributes[n] for n in ("sym_name", "call_target_name") if n in operation.attributes]
        if not all(map(_is_text, names)):
            faults.append("a name in it is no UTF-8")
        if operation.name == "stablehlo.compare" and "compare_type" in operation.attributes:
            faults.extend(_find_comparison_faults(operation))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    if faults:
        raise ValueError(faults[0])


def _is_text(attribute: Any) -> bool:
    try:
        return isinstance(ir.StringAttr(attribute).value, str)
    except (RuntimeError, UnicodeError):
        return False


def _find_comparison_faults(operation: Any) -> list[str]:
    """Return a description if the order of a comparison does not fit the operands' type, which aborts XLA."""
    element = str(ir.RankedTensorType(operation.operands[0].type).element_type)
    fitting = ["FLOAT", "TOTALORDER"]
    if element == "i1" or element.startswith("ui"):
        fitting = ["UNSIGNED"]
    elif re.fullmatch(r"i\d+", element):
        fitting = ["SIGNED"]
    order = re.findall(r"[A-Z]+", str(operation.attributes["compare_type"]))[-1]
    if order in (*fitting, "NOTYPE"):
        return []
    return [f"a comparison of {element} has the order {order} instead of {' or '.join(fitting)}"]


def _name_entry(module: Any) -> None:
    """Rename the entry function to ``main``: the only function, or the only one that is not private."""
    functions = [f for f in module.body.operations if isinstance(f, func.FuncOp)]
    names = [ir.StringAttr(f.attributes["sym_name"]).value for f in functions]
    if "main" in names:
        return
    public = [f for f in functions if "sym_visibility" not in f.attributes] if len(functions) > 1 else functions
    if len(public) != 1:
        listed = f"; its functions are {', '.join(names)}" if names else ""
        raise ValueError(f"it has no function main, nor a single one that could be meant{listed}")
    old = ir.StringAttr(public[0].attributes["sym_name"]).value
    ir.SymbolTable.replace_all_symbol_uses(old, "main", module.operation)
    public[0].attributes["sym_name"] = ir.StringAttr.get("main", context=module.context)


def _refine_arguments(module: Any, types: Sequence[str]) -> Any:
    """Return the module for arguments of known sizes."""
    modules.run_passes(module, f"builtin.module(stablehlo-refine-arguments{{types={','.join(types)}}})")
    return _with_known_sizes(module, True)


def read_signature(module: Any) -> tuple[list[str], list[str]]:
    """Return the types of the arguments and of the results of ``main``; ValueError for a module without it."""
    main = next((f for f in module.body.operations if _is_main(f)), None)
    if main is None:
        raise ValueError("its program has no function main")
    kind = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
    return list(map(str, kind.inputs)), list(map(str, kind.results))


def get_module_name(module: Any) -> str:
    """Return the name of a module, "main" if it has none."""
    attributes = module.operation.attributes
    return ir.StringAttr(attributes["sym_name"]).value if "sym_name" in attributes else "main"


def count_copies(module: Any) -> tuple[int, int]:
    """Return the numbers of replicas and partitions of a module; a missing one is 1."""
    attributes = module.operation.attributes
    names = ["mhlo.num_replicas", "mhlo.num_partitions"]
    replicas, partitions = [ir.IntegerAttr(attributes[n]).value if n in attributes else 1 for n in names]
    return replicas, partitions


def _is_main(operation: Any) -> bool:
    return isinstance(operation, func.FuncOp) and ir.StringAttr(operation.attributes["sym_name"]).value == "main"


def read_functions(module: Any) -> list[mlir_objects.RuleFunction]:
    """Return the functions of a module as text, ``main`` last, and register the LAPACK kernels that they call.

    Meshes replace their names in shardings.
    """
    if any(target.startswith("lapack_") for target in find_custom_calls(module)):
        lapack.register()
    meshes, main = {}, None
    for each in list(module.body.operations):
        if each.operation.name == "sdy.mesh":
            name = ir.StringAttr(each.attributes["sym_name"]).value
            meshes[f"<@{name},"] = str(each.attributes["mesh"]).replace("#sdy.mesh", "<mesh", 1) + ","
            each.operation.erase()
        elif not isinstance(each, func.FuncOp):
            raise ValueError(f"its program has a {each.operation.name} beside its functions, which cannot be called")
        elif _is_main(each):
            main = each
    functions = mlir_objects.write_module_functions(module, main)
    for function in functions:
        for name, mesh in meshes.items():
            function.lines[:] = [line.replace(name, mesh) for line in function.lines]
    return functions


def find_custom_calls(module: Any) -> dict[str, str]:
    """Return the targets of the custom calls in a module, each with the text of its first call."""
    calls: dict[str, str] = {}

    def visit(operation: Any) -> Any:
        if operation.name == "stablehlo.custom_call":
            target = ir.StringAttr(operation.attributes["call_target_name"]).value
            calls.setdefault(target, str(operation))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return calls
