"""The calls of the cipher of random numbers, in programs for CPUs: those to be kept, stored or ended by a barrier."""

from __future__ import annotations

from xtrace._src.stablehlo.builder import ModuleBuilder
from xtrace._src.stablehlo.loop_barriers import add_barriers
from xtrace._src.stablehlo.repeated_calls import keep_calls
from xtrace._src.stablehlo.shared_draws import store_shared_draws

# The private function that the primitive of this name writes.
_CIPHER = "threefry2x32"


def arrange_cipher_calls(module: ModuleBuilder, *, is_portable: bool) -> None:
    """Change the calls of the cipher in a module, so that XLA compiles and runs it sooner; the bits are the same.

    is_portable: whether other releases of jaxlib may compile the module.
    """
    if module.platform != "cpu" or not module.has_function(_CIPHER):
        return
    are_kept = False
    if module.mesh is None:
        are_kept = keep_calls(module, _CIPHER)
        store_shared_draws(module, _CIPHER)
    if is_portable or not are_kept:
        # The refinement of symbolic shapes inlines calls that are kept.
        add_barriers(module, _CIPHER, is_portable=is_portable)
