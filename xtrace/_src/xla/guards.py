"""The runtime's guards: against implicit transfers, and against arrays that only the garbage collector frees."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from jaxlib import _jax

_guards = _jax.guard_lib
_LEVELS = {
    "host_to_device": _guards.TransferGuardLevel, "device_to_device": _guards.TransferGuardLevel,
    "device_to_host": _guards.TransferGuardLevel, "garbage_collect_array": _guards.GarbageCollectionGuardLevel,
}
GUARDS = tuple(_LEVELS)


def set_level(guard: str, level: str | None, everywhere: bool) -> None:
    """Set the level of a guard in all threads or in this one, where None is the level for all threads."""
    state = _guards.global_state() if everywhere else _guards.thread_local_state()
    setattr(state, guard, None if level is None else getattr(_LEVELS[guard], level.upper()))


@contextlib.contextmanager
def mark_explicit(transfer: str) -> Iterator[None]:
    """Mark transfers of one kind, "put" or "get", inside the block as explicit."""
    state, name = _guards.thread_local_state(), f"explicit_device_{transfer}"
    before = getattr(state, name)
    setattr(state, name, True)
    try:
        yield
    finally:
        setattr(state, name, before)


@contextlib.contextmanager
def between_devices() -> Iterator[None]:
    """Guard copies from the host in the block as copies between devices, whose data may pass through the host."""
    state = _guards.thread_local_state()
    before = state.host_to_device
    state.host_to_device = state.device_to_device or _guards.global_state().device_to_device
    try:
        yield
    except _jax.JaxRuntimeError as error:
        message = str(error).replace("Disallowed host-to-device", "Disallowed device-to-device")
        raise _jax.JaxRuntimeError(message) from None
    finally:
        state.host_to_device = before


@contextlib.contextmanager
def lift_guards() -> Iterator[None]:
    """Allow all copies inside the block, because they are parts of a computation."""
    state = _guards.thread_local_state()
    before = state.host_to_device, state.device_to_device
    state.host_to_device = state.device_to_device = _guards.TransferGuardLevel.ALLOW
    try:
        yield
    finally:
        state.host_to_device, state.device_to_device = before
