"""Compiled functions as bytes, for other processes on like machines: `serialize` and `deserialize_and_load`.

`pickle.dumps` of a compiled function does the same.
"""

from xtrace._late_names import late_imports as _late_imports

# These load at their first use.
with _late_imports(globals()):
    from xtrace._src.api.compilation.serialized_programs import deserialize_and_load as deserialize_and_load
    from xtrace._src.api.compilation.serialized_programs import serialize as serialize
