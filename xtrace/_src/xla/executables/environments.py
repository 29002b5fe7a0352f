"""The environment of compiled programs, on which they depend: jaxlib, the platform, the device, the processor."""

from __future__ import annotations

import functools
import platform
import re
from collections.abc import Mapping
from typing import Any

from xtrace._src.xla import versions
from xtrace._src.xla.clients import Device


def describe_environment(device: Device) -> dict[str, Any]:
    """Return the environment of programs for `device`, by name: strings, and the list of the processor's features."""
    environment = {
        "jaxlib": versions.JAXLIB_VERSION_TEXT, "platform": device.platform, "runtime": device.client.platform_version,
        "device kind": device.device_kind,
    }
    return environment | (_processor() if device.platform == "cpu" else {})


def describe_incompatibilities(recorded: Mapping[str, Any], device: Device) -> list[str]:
    """Return the reasons why a program compiled in the environment `recorded` cannot run on `device`."""
    own = describe_environment(device)
    words = [
        f"its {name} is {recorded.get(name)}, and here it is {own[name]}"
        for name in ("jaxlib", "platform", "runtime", "device kind", "machine")
        if recorded.get(name) != own.get(name) and name in own
    ]
    missing = [each for each in _instructions(recorded) if each not in _instructions(own)]
    if missing:
        words.append(f"it may use the processor's instructions {', '.join(missing)}, which this processor lacks")
    return words


def _instructions(environment: Mapping[str, Any]) -> list[str]:
    return [each for each in environment.get("features", ()) if _INSTRUCTIONS.match(each)]


# The features of processors for which XLA generates code; others are features of operating systems.
_INSTRUCTIONS = re.compile(
    "sse|ssse|avx|amx|fma|f16c|bmi|abm|adx|aes|vaes|sha|gfni|pclmul|vpclmul|popcnt|movbe|"  # of x86
    "asimd|sve|sme|bf16|i8mm|fp|atomics|crc32|pmull|dotprod"  # of ARM
)


@functools.cache
def _processor() -> dict[str, Any]:
    """Return the kind and features of this machine's processor, for which XLA compiles."""
    lines: dict[str, str] = {}
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file.read().split("\n\n")[0].splitlines():
                name, _, value = line.partition(":")
                lines[name.strip()] = value.strip()
    except OSError:
        lines["model name"] = platform.processor()
    features = lines.get("flags", lines.get("Features", ""))
    return {
        "machine": platform.machine(), "processor": lines.get("model name", lines.get("CPU part", "")),
        "features": sorted(features.split()),
    }
