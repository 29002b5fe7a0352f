"""The private layers, from the interface to jaxlib up to `jit` and `grad`; `CONTRIBUTING.md` lists them in order.

The first use of a public name imports this module, which gives lower layers the functions of higher layers that they
call: the evaluator of operations, the methods of arrays, and the boundary around public functions.
"""

import importlib

from xtrace._late_imports import set_public_form_maker
from xtrace._src.core.garbage_collection import age_objects, collection_paused

with collection_paused():
    import xtrace._src.core.settings.inert_settings
    import xtrace._src.core.settings.logging_settings

    # The class of random keys has the name of this module, and cloudpickle looks for classes in loaded modules only.
    import xtrace.dtypes
    from xtrace._src.api.eager import evaluate
    from xtrace._src.api.operators.late_methods import install_late_methods
    from xtrace._src.api.operators.operators import install_operators
    from xtrace._src.core.arrays import Array
    from xtrace._src.core.public_modules import make_public_form
    from xtrace._src.core.trace import Tracer, set_base_trace
    from xtrace._src.runtime.arrays import ConcreteArray
age_objects()

set_public_form_maker(make_public_form)
set_base_trace(evaluate)
install_operators(Array, Tracer, ConcreteArray)
install_late_methods(
    lambda name: importlib.import_module("xtrace.numpy.arrays.methods").install_method(Array, name), Array
)
