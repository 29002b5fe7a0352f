"""The implicit and the split solvers of diffrax."""

from typing import ClassVar

import diffrax as dfx
import numpy as np
import optimistix as optx
from pendulum import loose, solve, term, values_of
from surface import Surface

surface = Surface(1e-7)
for solver in (dfx.Kvaerno3(), dfx.Kvaerno4(), dfx.Kvaerno5()):
    assert isinstance(solver, dfx.AbstractESDIRK) and isinstance(solver, dfx.AbstractDIRK)
    surface.record(type(solver).__name__, values_of(solve(solver, loose)))
implicit = dfx.ImplicitEuler(root_finder=optx.Newton(1e-5, 1e-5))
assert isinstance(implicit, dfx.AbstractImplicitSolver)
rough = dfx.PIDController(rtol=1e-2, atol=1e-3)
surface.record("ImplicitEuler", values_of(solve(implicit, rough)))
surface.record("VeryChord", values_of(solve(dfx.ImplicitEuler(root_finder=dfx.VeryChord(1e-3, 1e-3)))))


GAMMA = 1 - 0.5**0.5


class Diagonal(dfx.AbstractSDIRK):
    """Alexander's rule of two stages, of order 2."""

    tableau: ClassVar[dfx.ButcherTableau] = dfx.ButcherTableau(
        c=np.array([1.0]), b_sol=np.array([1 - GAMMA, GAMMA]), b_error=np.array([0.1, -0.1]),
        a_lower=(np.array([1 - GAMMA]),), a_diagonal=np.array([GAMMA, GAMMA]), a_predictor=(np.array([1.0]),),
        c1=GAMMA,
    )
    calculate_jacobian: ClassVar = dfx.CalculateJacobian.every_stage
    interpolation_cls: ClassVar = dfx.ThirdOrderHermitePolynomialInterpolation.from_k
    root_finder: optx.AbstractRootFinder = dfx.VeryChord(1e-3, 1e-3)
    root_find_max_steps: int = 20

    def order(self, terms):
        return 2


surface.record("a solver of one's own", values_of(solve(Diagonal())))
split = dfx.MultiTerm(term, dfx.ODETerm(lambda t, y, args: -y))
tolerances = dfx.with_stepsize_controller_tols(dfx.VeryChord)()
for solver in (dfx.KenCarp3(), dfx.KenCarp4(), dfx.KenCarp5(root_finder=tolerances), dfx.Sil3()):
    assert isinstance(solver.tableau, dfx.MultiButcherTableau)
    surface.record(type(solver).__name__, values_of(solve(solver, loose, terms=split)))
doubled = dfx.Kvaerno3(root_finder=optx.Chord(1e-5, 1e-5))
surface.record("another root finder", values_of(solve(doubled, rough)))

surface.finish(__file__, {}, {})
