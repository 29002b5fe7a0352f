"""The private layers, from the door to jaxlib up to `jit` and `grad`; `CONTRIBUTING.md` lists them in order.

The first import of one of them, at the first use of a public name, comes through here: what lower layers need of higher
ones is given to them before anything runs.
"""

import importlib

from xtrace._late_names import set_public_form
from xtrace._src.core.garbage_collection import age_objects, collection_paused

with collection_paused():
    import xtrace._src.core.settings.logging_settings
    from xtrace._src.api.eager import evaluate
    from xtrace._src.api.operators.late_methods import install_late
    from xtrace._src.api.operators.operators import install_operators
    from xtrace._src.core.arrays import Array
    from xtrace._src.core.public_modules import public
    from xtrace._src.core.trace import Tracer, set_base_trace
    from xtrace._src.runtime.arrays import ConcreteArray
age_objects()

set_public_form(public)
set_base_trace(evaluate)
install_operators(Array, Tracer, ConcreteArray)
install_late(lambda name: importlib.import_module("xtrace.numpy.array_methods").install_method(Array, name), Array)
