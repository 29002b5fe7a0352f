"""The calls of the cipher of random numbers, in programs for CPUs: those to be kept, stored or ended by a barrier."""

from __future__ import annotations

from xtrace._src.stablehlo.builder import ModuleBuilder
from xtrace._src.stablehlo.loop_barriers import add_barriers
from xtrace._src.stablehlo.repeated_calls import keep_calls
from xtrace._src.stablehlo.shared_draws import store_shared_draws


def arrange_cipher_calls(module: ModuleBuilder, name: str, *, is_portable: bool) -> None:
    """Change the calls of the cipher in a module, so that XLA compiles and runs it sooner; the bits are the same.

    name: the private functions of the cipher are called `name`, ``name_1`` and so on.
    is_portable: whether other releases of jaxlib may compile the module.
    """
    are_kept = False
    if module.mesh is None:
        are_kept = keep_calls(module, name)
        store_shared_draws(module, name)
    if is_portable or not are_kept:
        # The refinement of symbolic shapes inlines calls that are kept.
        add_barriers(module, name, is_portable=is_portable)
