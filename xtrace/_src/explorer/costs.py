"""The operations and bytes of instructions, and the least time that a device needs for them: its roofline.

Source: S. Williams, A. Waterman and D. Patterson, Roofline: an insightful visual performance model (2009).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from xtrace._src.xla.hlo.hlo_text import PrintedComputation, PrintedInstruction
from xtrace._src.xla.hlo.hlo_types import ArrayType, read_array_types


class Device(NamedTuple):
    """The peaks of a device: operations per second, with 16-bit matrix products apart, and bytes per second.

    assumed: whether the peaks are a guess, not a maker's data.
    """

    name: str
    flops: float
    half_flops: float
    bandwidth: float
    assumed: bool = False

    def seconds(self, cost: Cost) -> float:
        """Return the least time for a cost: computing and moving overlap."""
        peak = self.half_flops if cost.is_half else self.flops
        return max(cost.flops / peak, cost.bytes / self.bandwidth)


# Dense peaks of the vector units for float32 and of the matrix units for 16 bits, and the memory's bandwidth. From
# NVIDIA's data sheets of A100, H100 and H200 (SXM), and Google Cloud's pages on each TPU, whose matrix units take
# bfloat16 and compute float32 in several passes.
_DEVICES = {
    "NVIDIA A100": (19.5e12, 312e12, 2.039e12), "NVIDIA H100": (67e12, 989e12, 3.352e12),
    "NVIDIA H200": (67e12, 989e12, 4.8e12), "TPU v4": (275e12 / 3, 275e12, 1.228e12),
    "TPU v5 lite": (197e12 / 3, 197e12, 819e9), "TPU v5": (459e12 / 3, 459e12, 2.765e12),
    "TPU v6 lite": (918e12 / 3, 918e12, 1.64e12),
}


def get_device_peaks(kind: str) -> Device:
    """Return the peaks of a kind of device; the assumed peaks of a processor for an unknown kind."""
    for name in sorted(_DEVICES, key=len, reverse=True):
        if kind.startswith(name):
            return Device(kind, *_DEVICES[name])
    # On each core 16 products and sums of float32 per cycle at 3 GHz, and two channels of memory.
    peak = (os.cpu_count() or 1) * 3e9 * 32
    return Device(kind, peak, peak, 40e9, assumed=True)


class Cost(NamedTuple):
    """The number of arithmetic operations and of bytes read and written; is_half: whether products take 16 bits."""

    flops: float
    bytes: float
    is_half: bool = False


_CONTRACTED = re.compile(r"\blhs_contracting_dims=\{([\d,]*)\}")
_LABELS = re.compile(r"\bdim_labels=\w+_(\w+)->")
_HALF = frozenset(("bf16", "f16"))
_FREE = frozenset((
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "while", "call", "conditional", "after-all",
    "partition-id", "replica-id", "opt-barrier", "async-start", "async-done", "async-update",
))
_SLICES = frozenset(("dynamic-slice", "slice", "gather"))
_MOVES = _FREE | _SLICES | frozenset((
    "broadcast", "reshape", "transpose", "copy", "copy-start", "copy-done", "iota", "concatenate", "pad", "reverse",
    "dynamic-update-slice", "fusion", "custom-call", "infeed", "outfeed", "convert", "bitcast-convert", "all-gather",
    "all-to-all", "collective-permute", "rng-bit-generator", "scatter", "sort", "domain", "send", "recv",
))


def count_flops(instruction: PrintedInstruction, types: Mapping[str, str]) -> float:
    """Return the number of arithmetic operations of one instruction, without its called computations."""
    opcode = instruction.opcode
    if opcode.endswith("-done") or (opcode in _MOVES and opcode not in ("scatter", "custom-call")):
        return 0.0
    operands = [read_array_types(types.get(name, "")) for name in instruction.operands]
    first = operands[0][0] if operands and operands[0] else ArrayType("f32", ())
    size = sum([a.size for a in instruction.arrays()])
    if opcode == "dot":
        match = _CONTRACTED.search(instruction.attributes)
        axes = [int(n) for n in match[1].split(",") if n] if match is not None else []
        return 2.0 * size * math.prod([first.shape[a] for a in axes if a < len(first.shape)])
    if opcode == "convolution":
        match = _LABELS.search(instruction.attributes)
        kernel = operands[1][0] if len(operands) > 1 and operands[1] else first
        outputs = kernel.shape[match[1].index("o")] if match is not None and "o" in match[1] else 1
        return 2.0 * size * kernel.size / max(outputs, 1)
    if opcode == "custom-call":
        if ("gemm" in instruction.attributes or "matmul" in instruction.attributes) and len(operands) > 1:
            # A product of m by k and k by n elements: the product of the three sizes is (m k n) squared.
            sizes = [first.size, operands[1][0].size if operands[1] else 1, instruction.arrays()[0].size]
            return 2.0 * math.sqrt(math.prod(sizes))
        return 0.0
    if opcode in ("reduce", "reduce-window", "reduce-scatter", "all-reduce"):
        return float(sum([a.size for operand in operands[: max(1, len(operands) // 2)] for a in operand]))
    if opcode == "scatter":
        return float(operands[-1][0].size if operands and operands[-1] else 0)
    return float(size)


def takes_half(instruction: PrintedInstruction, types: Mapping[str, str]) -> bool:
    """Return whether an instruction multiplies matrices of 16-bit numbers."""
    if instruction.opcode not in ("dot", "convolution", "custom-call"):
        return False
    return any(a.dtype in _HALF for name in instruction.operands[:1] for a in read_array_types(types.get(name, "")))


def count_bytes(instruction: PrintedInstruction, types: Mapping[str, str]) -> float:
    """Return the number of bytes that an instruction outside of fusions reads and writes."""
    # An asynchronous operation counts at its start.
    if instruction.opcode in _FREE or instruction.opcode.endswith("-done"):
        return 0.0
    result = sum([a.bytes for a in instruction.arrays()])
    if instruction.opcode.endswith("-start") and instruction.type.startswith("("):
        # The tuple of results contains the operands.
        return float(result)
    if instruction.opcode in _SLICES:
        return 2.0 * result
    if instruction.opcode == "dynamic-update-slice" and len(instruction.operands) > 1:
        return 2.0 * _count_type_bytes(types.get(instruction.operands[1], ""))
    return float(result + sum([_count_type_bytes(types.get(name, "")) for name in instruction.operands]))


def count_fused(computation: PrintedComputation, by_name: Mapping[str, PrintedComputation]) -> dict[str, Cost]:
    """Return the cost of each instruction of a fused computation; only readers of parameters and the root use memory.

    by_name: all computations. A fusion inside of it has the operations of its instructions.
    """
    types = {i.name: i.type for i in computation.instructions.values()}
    parameters = {i.name for i in computation.instructions.values() if i.opcode == "parameter"}
    readers: dict[str, list[PrintedInstruction]] = {}
    for instruction in computation.instructions.values():
        for name in instruction.operands:
            if name in parameters:
                readers.setdefault(name, []).append(instruction)
    moved: dict[str, float] = {}
    for name, reading in readers.items():
        whole = _count_type_bytes(types.get(name, ""))
        for instruction in reading:
            part = whole
            if instruction.opcode in _SLICES and instruction.operands[:1] == [name]:
                part = min(whole, _count_type_bytes(instruction.type))
            elif instruction.opcode == "dynamic-update-slice" and instruction.operands[:1] == [name]:
                part = 0
            moved[instruction.name] = moved.get(instruction.name, 0.0) + part / len(reading)
    costs = {}
    for name, instruction in computation.instructions.items():
        written = 0.0
        if instruction.is_root:
            is_update = instruction.opcode == "dynamic-update-slice" and len(instruction.operands) > 1
            written = _count_type_bytes(types.get(instruction.operands[1], "") if is_update else instruction.type)
        flops, is_half = count_flops(instruction, types), takes_half(instruction, types)
        if instruction.opcode == "fusion" and instruction.called and instruction.called[0] in by_name:
            inside = count_fused(by_name[instruction.called[0]], by_name).values()
            flops, is_half = sum([c.flops for c in inside]), any(c.is_half for c in inside)
        costs[name] = Cost(flops, moved.get(name, 0.0) + written, is_half)
    return costs


def _count_type_bytes(kind: str) -> int:
    return sum([a.bytes for a in read_array_types(kind)])
