"""The trace of Taylor series, and jaxprs of series.

A series is the list of a value's derivatives in one parameter, so the derivative of a series is the series without its
first term. Some operations have rules in ``rules.py``. The jvp rule of any other operation is enough: if ``x'`` is the
derivative of the operand ``x``, the rule computes the derivative of the result ``y`` by operations on ``x``, ``x'`` and
``y``. These run once, on series, and define a differential equation: term n of ``y`` on the right gives term n + 1 on
the left. So the terms are computed one after another, as by the usual recurrences for ``exp``, ``tan`` or ``pow``
(Griewank and Walther, "Evaluating Derivatives", chapter 13).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xtrace._src.core.avals import aval_of, aval_rules, own_aval
from xtrace._src.core.diagnostics import explain
from xtrace._src.core.diagnostics.rule_error_notes import note_rule
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, DebugInfo
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.settings import config
from xtrace._src.core.tables import memoize_by_owner
from xtrace._src.core.tangents import is_differentiable, tangent_aval
from xtrace._src.core.trace import Trace, Tracer, current_trace, use_trace
from xtrace._src.jet.rules import INLINE, TERMS, WHOLE
from xtrace._src.jet.series import (
    Derivation,
    Patterns,
    Rows,
    Series,
    constant_series,
    fill_terms,
    flatten_terms,
    get_value,
    open_derivations,
    unflatten_terms,
)
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.jaxpr_transforms import cast_weak_type, stage_to_jaxpr

if TYPE_CHECKING:
    from xtrace._src.core.diagnostics.provenance import Provenance


class JetTracer(Tracer):
    """A value with the terms of its series from 1 to `order`; Python conditions use the value only."""

    __slots__ = ("series", "order")

    def __init__(self, trace: JetTrace, series: Series, order: int) -> None:
        self.owner, self.series, self.order, self.aval = trace, series, order, series.aval

    @property
    def primal(self) -> Any:
        """The value itself."""
        parent = self.owner.parent
        assert parent is not None
        with use_trace(parent):
            return get_value(self.series)

    def __bool__(self) -> bool:
        return bool(self.primal)

    def __int__(self) -> int:
        return int(self.primal)

    def item(self, *indices: int) -> Any:
        """Return the value as a Python number, a constant without derivatives."""
        return self.primal.item(*indices)

    def __repr__(self) -> str:
        return f"JetTracer(primal={self.primal!s}, order={self.order})"


aval_rules[JetTracer] = own_aval


class JetTrace(Trace):
    """Computes the series of operations on its tracers; its parent computes the operations on terms."""

    __slots__ = ("described", "_results", "_waiting", "_depth")

    def __init__(self, parent: Trace, described: Callable[[], DebugInfo] | None = None) -> None:
        super().__init__(parent)
        self.described = described
        # While a jvp rule runs: results by operation and operands. The entries keep operands alive, for keys have ids.
        self._results: dict[Any, tuple[Sequence[Any], int, list[Series]]] = {}
        # The series with an open derivation; they are released after it.
        self._waiting: list[Series] = []
        self._depth = 0

    def process(self, primitive: Primitive, operands: Sequence[Any], parameters: tuple[Any, ...]) -> Any:
        assert self.parent is not None
        own = [type(x) is JetTracer and x.owner is self for x in operands]
        if not any(own):
            return self.parent.process(primitive, operands, parameters)
        if primitive in INLINE:
            with use_trace(self):
                return INLINE[primitive](operands, **dict(zip(primitive.parameters, parameters, strict=True)))
        given = [x.series if mine else constant_series(x) for x, mine in zip(operands, own, strict=True)]
        order = min([x.order for x, mine in zip(operands, own, strict=True) if mine])
        try:
            with use_trace(self.parent):
                results = self._expand(primitive, operands, own, given, parameters, order)
        except Exception as error:
            note_rule(error, "jvp", primitive, operands)
            raise
        finally:
            if not self._depth:
                for s in self._waiting:
                    s.release()
                self._waiting.clear()
        tracers = [self.tracer(s, order) for s in results]
        return tracers if primitive.multiple_results else tracers[0]

    def _expand(
        self, primitive: Primitive, operands: Sequence[Any], own: Sequence[bool], given: list[Series],
        parameters: tuple[Any, ...], order: int,
    ) -> list[Series]:
        """Return the series of an operation's results to the given order."""
        key = primitive, parameters, tuple([id(s if mine else x) for s, x, mine in zip(given, operands, own)])
        try:
            known = self._results.get(key)
        except TypeError:  # an unhashable parameter
            known, key = None, None  # type: ignore[assignment]
        if known is not None and known[1] >= order:
            return known[2]
        named = dict(zip(primitive.parameters, parameters, strict=True))
        pending = open_derivations(given)
        whole = getattr(primitive, "series", None) or WHOLE.get(primitive)
        if whole is not None and not pending:
            values, terms = whole(self, order, given, **named)
            return [Series(aval_of(x), [x, *own]) for x, own in zip(values, terms, strict=True)]
        results, first = self._begin(primitive, given, parameters)
        if not order or not any(is_differentiable(s.aval) for s in results):
            compute: Callable[[int], list[list[Any]]] = lambda n: [[None] * len(results)]  # noqa: E731
        elif whole is not None:
            # The operands have no later terms yet.
            compute = lambda n: [[t[n - 1] for t in whole(self, n, given, **named)[1]]]  # noqa: E731
        elif primitive in TERMS:
            rule = TERMS[primitive]
            if primitive.multiple_results:
                compute = lambda n: [rule(n, given, results, **named)]  # noqa: E731
            else:
                compute = lambda n: [[rule(n, given, results, **named)]]  # noqa: E731
        else:
            tangents = [None if s.is_constant else self.tangent(s, order - 1) for s in given]
            # Tracers even at order 0, so the rule's operations find earlier results.
            primals = [JetTracer(self, s, order - 1) if mine else x for s, x, mine in zip(given, operands, own)]
            slopes = self._derive(primitive, primals, tangents, named, results, first, (key, operands, order))
            compute = lambda n: [[None if s is None else s.term(n - 1) for s in slopes]]  # noqa: E731
            pending = pending | open_derivations([s for s in slopes if s is not None])
        self._extend(results, first, compute, pending, order)
        return results

    def _begin(
        self, primitive: Primitive, given: list[Series], parameters: tuple[Any, ...]
    ) -> tuple[list[Series], Rows | None]:
        """Return the series of an operation's results, with values; without operands' values, `Rows` for later."""
        parent = self.parent
        assert parent is not None

        def compute(_: int) -> list[list[Any]]:
            values = parent.process(primitive, list(map(get_value, given)), parameters)
            return [list(values) if primitive.multiple_results else [values]]

        if all(s.known for s in given):
            (values,) = compute(0)
            return [Series(aval_of(x), [x]) for x in values], None
        avals = primitive.infer_types(tuple([s.aval for s in given]), parameters)
        return [Series(a, []) for a in (avals if primitive.multiple_results else [avals])], Rows(compute)

    def _extend(
        self, results: list[Series], first: Rows | None, compute: Callable[[int], list[list[Any]]],
        pending: frozenset[Derivation], order: int,
    ) -> None:
        """Set the terms of the results from 1 on to the rows of `compute`, and compute them unless some are pending."""
        rows = Rows(lambda n: compute(n + 1))
        for i, s in enumerate(results):
            smooth = is_differentiable(s.aval)

            def term(n: int, i: int = i, smooth: bool = smooth) -> Any:
                if n:
                    return rows.term(i, n - 1) if smooth else None
                assert first is not None
                return first.term(i, 0)

            s.compute, s.pending = term, pending
        if pending:
            self._waiting += results
        else:
            for s in results:
                s.complete(order)

    def _derive(
        self, primitive: Primitive, primals: Sequence[Any], tangents: Sequence[Any], named: dict[str, Any],
        results: list[Series], first: Rows | None, entry: tuple[Any, Sequence[Any], int],
    ) -> list[Series | None]:
        """Return the derivatives of the results by the operation's jvp rule, None for zero.

        The rule may use the first terms of the operation's results.
        """
        if primitive.jvp is None:
            raise NotImplementedError(
                f"jet: the primitive {primitive} has neither a rule for Taylor series nor a jvp rule to derive one "
                f"from. Register one in xtrace.interpreters.ad.primitive_jvps[{primitive}] or in "
                f"xtrace.experimental.jet.jet_rules[{primitive}]"
            )
        derivation = Derivation()
        for i, s in enumerate(results):
            s.compute = functools.partial(_read_first_term, first, i)
            s.pending = frozenset((derivation,))
        key, operands, order = entry
        if key is not None:
            self._results[key] = operands, order, results
        self._depth += 1
        try:
            with use_trace(self):
                _, moved = primitive.jvp(primals, tangents, **named)
        finally:
            self._depth -= 1
            if not self._depth:
                self._results.clear()
        derivatives = moved if primitive.multiple_results else [moved]
        slopes = [None if t is None else self.get_series(t) for t in derivatives]
        waiting = open_derivations([s for s in slopes if s is not None])
        derivation.closed, derivation.behind = True, waiting - {derivation}
        return slopes

    # Tracers and series

    def get_series(self, value: Any) -> Series:
        """Return the series of a tracer of this trace; a constant series for any other value."""
        return value.series if type(value) is JetTracer and value.owner is self else constant_series(value)

    def tracer(self, series: Series, order: int) -> Any:
        """Return a tracer of a series up to `order`; the value itself if the series has no other terms."""
        if series.known and (not order or series.is_constant):
            return get_value(series)
        return JetTracer(self, series, order)

    def tangent(self, series: Series, order: int) -> Any:
        """Return the derivative of a series up to `order`; None if all its terms are zero."""
        derivative = series.derivative()
        if derivative.compute is None and all(x is None for x in derivative.known[: order + 1]):
            return None
        return self.tracer(derivative, order)

    @staticmethod
    def jaxpr(
        closed: ClosedJaxpr, order: int, patterns: Patterns, always: Patterns | None = None
    ) -> tuple[ClosedJaxpr, Patterns]:
        """Return a jaxpr of series, for rules of operations with jaxprs; see `series_jaxpr`."""
        return series_jaxpr(closed, order, patterns, always)

    def find_provenance(self, tracer: Tracer) -> Provenance:
        """Return the provenance of the tracer, for messages."""
        assert isinstance(tracer, JetTracer)
        note = (
            "The value has a Taylor series, and would lose it as a Python or NumPy number. If that is what you want, "
            "convert xtrace.lax.stop_gradient(x)."
        )
        return explain.provenance_under(self, "jet", [x for x in tracer.series.known if x is not None], note)

    def __repr__(self) -> str:
        return f"JetTrace(level={sum(isinstance(t, JetTrace) for t in self.enclosing())})"


def _read_first_term(first: Rows | None, result: int, n: int) -> Any:
    if n or first is None:
        raise NotImplementedError(
            "jet: a jvp rule needs the derivative of a function in order to compute that same derivative, in a branch "
            "or loop. Its Taylor series cannot be computed; compute it from the function's arguments"
        )
    return first.term(result, 0)


def expand(
    function: Callable[..., Sequence[Any]], primals: Sequence[Any], terms: Sequence[Sequence[Any]], order: int,
    described: Callable[[], DebugInfo] | None = None,
) -> tuple[list[Any], list[list[Any]]]:
    """Return the results of ``function(*primals)``, a flat sequence, and their terms from 1 to `order`.

    terms: the terms of each primal, None for zero. described: returns the debug info of the user's function.
    """
    trace = JetTrace(current_trace.get(), described)
    inputs = [trace.tracer(Series(aval_of(x), [x, *own]), order) for x, own in zip(primals, terms, strict=True)]
    try:
        with use_trace(trace):
            results = function(*inputs)
        series = [trace.get_series(x) for x in results]
        pairs = list(map(get_value, series)), [s.terms(order) for s in series]
    finally:
        trace.end()
    if config.check_tracer_leaks.value:
        del inputs, results, series
        explain.check_leaks(trace)
    return pairs


@memoize_by_owner
def series_jaxpr(
    closed: ClosedJaxpr, order: int, patterns: Patterns, always: Patterns | None = None
) -> tuple[ClosedJaxpr, Patterns]:
    """Return the jaxpr of series of `closed`, and the pattern of each result's terms.

    patterns: the terms after each input. always: terms after each result, even if they are zero.
    """
    out_patterns: list[tuple[bool, ...]] = []
    smooth = [is_differentiable(a) for a in closed.out_avals]

    def expanded(*values: Any) -> list[Any]:
        primals, given = unflatten_terms(values, patterns)
        results, terms = expand(lambda *args: evaluate(closed.jaxpr, closed.consts, args), primals, given, order)
        if always is not None:
            terms = fill_terms(terms, always, closed.out_avals)
        terms = [
            [None if t is None or not s else cast_weak_type(t, tangent_aval(a)) for t in own]
            for own, a, s in zip(terms, closed.out_avals, smooth, strict=True)
        ]
        out_patterns[:] = [tuple([t is not None for t in own]) for own in terms]
        return flatten_terms(results, terms)

    avals = [
        a for aval, pattern in zip(closed.in_avals, patterns, strict=True)
        for a in (aval, *[tangent_aval(aval)] * sum(pattern))
    ]
    return stage_to_jaxpr(expanded, avals, closed.jaxpr.debug_info), tuple(out_patterns)
