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
def _set_in_block(**values: object) -> Iterator[None]:
    """Set attributes of this thread's guards inside the block."""
    state = _guards.thread_local_state()
    before = {name: getattr(state, name) for name in values}
    try:
        for name, value in values.items():
            setattr(state, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(state, name, value)


def mark_explicit(transfer: str) -> contextlib.AbstractContextManager[None]:
    """Mark transfers of one kind, "put" or "get", inside the block as explicit."""
    return _set_in_block(**{f"explicit_device_{transfer}": True})


@contextlib.contextmanager
def between_devices() -> Iterator[None]:
    """Guard copies from the host in the block as copies between devices, whose data may pass through the host."""
    level = _guards.thread_local_state().device_to_device or _guards.global_state().device_to_device
    try:
        with _set_in_block(host_to_device=level):
            yield
    except _jax.JaxRuntimeError as error:
        message = str(error).replace("Disallowed host-to-device", "Disallowed device-to-device")
        raise _jax.JaxRuntimeError(message) from None


def lift_guards() -> contextlib.AbstractContextManager[None]:
    """Allow all copies inside the block, because they are parts of a computation."""
    allow = _guards.TransferGuardLevel.ALLOW
    return _set_in_block(host_to_device=allow, device_to_device=allow)
