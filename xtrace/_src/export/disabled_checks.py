"""The safety checks of exported programs that users may disable."""

from __future__ import annotations

from dataclasses import dataclass

from xtrace._src.core.diagnostics.abbreviation import abbreviate

_CUSTOM_CALL = "custom_call:"


@dataclass(frozen=True, repr=False)
class DisabledSafetyCheck:
    """A check for `export` to skip; use the class methods `platform` and `custom_call`.

    Args:
        _impl: the check as text.

    Example:
        >>> xtrace.export.DisabledSafetyCheck.custom_call("my_target")
        custom_call:my_target
    """

    _impl: str

    @classmethod
    def platform(cls) -> DisabledSafetyCheck:
        """Return the check that the program runs on one of its platforms."""
        return cls("platform")

    @classmethod
    def custom_call(cls, target_name: str) -> DisabledSafetyCheck:
        """Return the check that custom calls of a target keep their meaning in later releases.

        Raises:
            TypeError: `target_name` is no string.
        """
        if not isinstance(target_name, str):
            raise TypeError(f"custom_call: target_name must be a string, got {abbreviate(target_name)}")
        return cls(f"{_CUSTOM_CALL}{target_name}")

    def is_custom_call(self) -> str | None:
        """Return the target of unchecked custom calls; None for another check."""
        return self._impl.removeprefix(_CUSTOM_CALL) if self._impl.startswith(_CUSTOM_CALL) else None

    def __repr__(self) -> str:
        return self._impl
