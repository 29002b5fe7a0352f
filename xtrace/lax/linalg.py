"""Dense linear algebra on the matrices in the last two axes, as ``jax.lax.linalg`` has it."""


from xtrace._src.core.late import make_public as _make_public
from xtrace._src.core.primitive import primitive_aliases as _primitive_aliases
from xtrace._src.ops.linalg.lu import *
from xtrace._src.ops.linalg.polar import *
from xtrace._src.ops.linalg.qr import *
from xtrace._src.ops.linalg.qr import geqp3 as geqp3_p
from xtrace._src.ops.linalg.qr import geqrf as geqrf_p
from xtrace._src.ops.linalg.rank_updates import *
from xtrace._src.ops.linalg.reduced import *
from xtrace._src.ops.linalg.spectral import *
from xtrace._src.ops.linalg.triangular import *

globals().update(_primitive_aliases(globals()))

__all__ = _make_public(globals())
