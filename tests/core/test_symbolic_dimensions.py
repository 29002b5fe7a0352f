"""Symbolic dimensions: arithmetic as of the integers that they stand for, one form, and comparisons that are right."""

import operator
import re

import jax
import jax.export
import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

import xtrace
from xtrace import export
from xtrace._src.core.symbolic_dimensions.bounds import find_bounds
from xtrace._src.core.symbolic_dimensions.dimensions import choose, evaluate
from xtrace.errors import InconclusiveDimensionOperation

NAMES = ("a", "b", "c")


def dimensions(scope=None, constraints=()):
    return export.symbolic_shape("a, b, c", scope=scope or export.SymbolicScope(constraints))


# Drawn expressions: a function that computes it from values of the variables, which may be sizes or integers.

OPERATIONS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "max": lambda x, y: choose("max", x, y), "min": lambda x, y: choose("min", x, y),
}


def expressions(depth=3):
    leaves = st.one_of(st.sampled_from(NAMES), st.integers(-4, 4))
    if not depth:
        return leaves
    inner = expressions(depth - 1)
    return st.one_of(leaves, st.tuples(st.sampled_from(list(OPERATIONS)), inner, inner))


def compute(expression, values):
    if isinstance(expression, str):
        return values[expression]
    if isinstance(expression, int):
        return expression
    name, left, right = expression
    return OPERATIONS[name](compute(left, values), compute(right, values))


VALUES = st.lists(st.integers(1, 12), min_size=3, max_size=3).map(lambda v: dict(zip(NAMES, v, strict=True)))


def compute_or_skip(expression, values):
    try:
        return compute(expression, values)
    except ZeroDivisionError:
        return assume(False)


@settings(max_examples=400, deadline=None)
@given(expressions(), VALUES)
def test_arithmetic_is_that_of_integers(expression, values):
    size = compute_or_skip(expression, dict(zip(NAMES, dimensions(), strict=True)))
    expected = compute_or_skip(expression, values)
    assert evaluate(size, values) == expected


@settings(max_examples=400, deadline=None)
@given(expressions(2), expressions(2), st.lists(VALUES, min_size=4, max_size=4))
def test_comparisons_and_bounds_are_never_wrong(one, other, rows):
    variables = dict(zip(NAMES, dimensions(), strict=True))
    x, y = compute_or_skip(one, variables), compute_or_skip(other, variables)
    for values in rows:
        try:
            number, with_number = compute(one, values), compute(other, values)
        except ZeroDivisionError:
            continue
        low, high = find_bounds(x)
        assert low <= number <= high
        for compare in (operator.ge, operator.gt, operator.le, operator.lt):
            try:
                decided = compare(x, y)
            except InconclusiveDimensionOperation:
                continue
            assert decided == compare(number, with_number), (x, y, values)
        if x == y:
            assert number == with_number and hash(x) == hash(y)


@settings(max_examples=200, deadline=None)
@given(expressions(2), expressions(2), expressions(2))
def test_equal_polynomials_have_one_form(x, y, z):
    variables = dict(zip(NAMES, dimensions(), strict=True))
    x, y, z = [compute_or_skip(e, variables) for e in (x, y, z)]
    for one, other in (
        (x + y, y + x), (x * y, y * x), (x * (y + z), x * y + x * z), ((x + y) + z, x + (y + z)), (x - x, 0),
    ):
        assert one == other and hash(one) == hash(other) and str(one) == str(other)


CONSTRAINTS = [
    "a >= b", "a <= 9", "mod(c, 2) == 0", "c >= 2*b", "b == 3", "a >= b + c - 4", "max(a, b) == a", "b >= mod(b, 3)",
    "a >= floordiv(a, b)", "2*floordiv(c, 2) >= c - 1",
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(CONSTRAINTS), max_size=3, unique=True), expressions(2), expressions(2), VALUES)
def test_what_follows_from_constraints_holds_where_they_do(constraints, one, other, values):
    python = {"max": max, "mod": operator.mod, "floordiv": operator.floordiv, **values}
    assume(all(eval(text, {}, python) for text in constraints))
    variables = dict(zip(NAMES, dimensions(constraints=constraints), strict=True))
    x, y = compute_or_skip(one, variables), compute_or_skip(other, variables)
    numbers = compute_or_skip(one, values), compute_or_skip(other, values)
    assert (evaluate(x, values), evaluate(y, values)) == numbers
    try:
        assert (x >= y) == operator.ge(*numbers)
    except InconclusiveDimensionOperation:
        pass


def test_constraints_may_be_about_operations_on_the_size_itself():
    (b,) = export.symbolic_shape("b", constraints=["b >= mod(b, 3)", "b >= 2*floordiv(b, 2)", "b <= 7"])
    assert b % 3 <= b and 2 * (b // 2) <= b <= 7 and b >= 1


@settings(max_examples=150, deadline=None)
@given(expressions())
def test_dimensions_print_as_in_jax_and_are_read_again(expression):
    mine = compute_or_skip(expression, dict(zip(NAMES, dimensions(scope := export.SymbolicScope()), strict=True)))
    text = str(mine)
    assert export.symbolic_shape(text, scope=scope) == (mine,)
    try:
        theirs = jax.export.symbolic_shape(text)[0]
    except jax.errors.InconclusiveDimensionOperation:
        reject()  # jax does not divide by sizes whose sign it does not know
    assert export.symbolic_shape(str(theirs), scope=scope) == (mine,)


A, B, C = dimensions()


@pytest.mark.parametrize(("size", "text"), [
    (A + B, "b + a"), (A - B, "- b + a"), (3 - A, "- a + 3"),
    (2 * A * B * C - 3 * A * B + C - 1, "2*a*b*c - 3*a*b + c - 1"),
    (A * A + A * B + B * B, "a*b + b^2 + a^2"), (A // 2 + A * B, "floordiv(a, 2) + a*b"), ((2 * A + 3) // 2, "a + 1"),
    ((2 * A + 3) % 2, "1"), (A % 2 + A // 2, "mod(a, 2) + floordiv(a, 2)"), (A // -2, "floordiv(a, - 2)"),
    ((A * A - 1) // (A - 1), "a + 1"), (A.max(B) + A.min(3), "max(a, b) + min(a, 3)"), (A.max(1), "a"),
    (xtrace.core.max_dim(A - B, 0), "max(- b + a, 0)"), (10 % A, "mod(10, a)"), (A**3, "a^3"), (sum([A, A]), "2*a"),
    (np.int32(3) + A, "a + 3"), (True * A, "a"), (divmod(A * B, B)[0], "a"),
])
def test_text(size, text):
    assert str(size) == text
    others = jax.export.symbolic_shape(text)
    assert str(others[0]) == text


@pytest.mark.parametrize("holds", [
    A >= 1, A + B >= 2, A * B >= A, A.max(B) * 2 >= A + B, A // 2 <= A, A % 3 < 3, A - A % 3 >= 0,
    (A + 3) // 4 * 4 >= A, A // B <= A, A * A >= A, A.min(B) <= B, A < A + B, A != B, A == A + 0, A != 1,
])
def test_comparisons_that_are_decided(holds):
    assert holds is True


def test_an_undecided_comparison_says_the_constraint_to_add():
    with pytest.raises(InconclusiveDimensionOperation, match=re.escape(
        "comparison is inconclusive: 'a' > '3' depends on the values of a, at "
    ) + r".*test_symbolic_dimensions.py:\d+.*constraints=\[\"a >= 4\"\]"):
        assert A > 3
    (a,) = export.symbolic_shape("a", constraints=["a >= 4"])
    assert a > 3


@pytest.mark.parametrize("use", [int, float, range, np.zeros, lambda n: np.zeros((n, 2)), lambda n: "abc"[n]])
def test_where_a_number_is_needed_the_error_names_the_dimension_and_the_line(use):
    with pytest.raises(InconclusiveDimensionOperation, match=r"dimension 'b \+ a' used .*test_symbolic_dimensions.py"):
        use(A + B)


def test_arithmetic_that_has_no_size():
    with pytest.raises(ZeroDivisionError, match="'a' by zero"):
        A // 0
    with pytest.raises(ValueError, match="negative powers: 'a'"):
        A**-1
    with pytest.raises(TypeError):
        A + "x"
    with pytest.raises(TypeError):
        A + None
    with pytest.raises(NotImplementedError, match="has a value only in functions that are traced for export"):
        A / 2


def test_scopes_do_not_mix():
    (other,) = export.symbolic_shape("a")
    assert other != A
    for use in (operator.add, operator.mul, operator.ge, operator.floordiv):
        with pytest.raises(ValueError, match=r"Invalid mixing of symbolic scopes.*test_symbolic_dimensions"):
            use(A, other)
    with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes"):
        export.export(xtrace.jit(lambda x, y: x))(*[xtrace.ShapeDtypeStruct((n,), "float32") for n in (A, other)])


# Texts


@pytest.mark.parametrize(("text", "like", "expected"), [
    ("a, 2*a + 1, 3", None, "(a, 2*a + 1, 3)"), ("(a, b)", None, "(a, b)"), ("()", None, "()"), ("a,", None, "(a,)"),
    ("", None, "()"), ("a, ...", (3, 4, 5), "(a, 4, 5)"), ("a, _, 5", (3, 4, 5), "(a, 4, 5)"), (None, (3,), "(3,)"),
    ("mod(a, 3), floordiv(a, 2), max(a, b)", None, "(mod(a, 3), floordiv(a, 2), max(a, b))"),
    ("min(a, 2), a^2", None, "(min(a, 2), a^2)"),
    ("-a + 3 * b - 1", None, "(3*b - a - 1,)"), ("non_negative(a - b)", None, "(max(- b + a, 0),)"),
])
def test_shapes_are_read(text, like, expected):
    assert str(export.symbolic_shape(text, like=like)) == expected
    if text is None or "non_negative" not in text:
        assert str(jax.export.symbolic_shape(text, like=like)) == expected


@pytest.mark.parametrize(("text", "position", "why"), [
    ("a b", 2, "expected ','"), ("a+", 2, "expected a name"), ("a,,b", 2, "expected a name"),
    ("a+*b", 2, "expected a name"), ("foo(a)", 3, "no operation"), ("mod(a)", 5, "expected ','"),
    ("a $ b", 2, "expected ','"), ("(a", 2, r"expected '\)'"), ("2^a", 2, "expected a number, the power"),
    ("1.5", 1, "expected an integer"), ("...", 0, "no `like`"), ("_", 0, "no `like`"), ("[a]", 0, "expected a name"),
    ("mod(a, 0)", 9, "divisor is zero"), ("9" * 30, 30, "at most 18 digits"),
])
def test_a_text_that_cannot_be_read_is_an_error_at_its_position(text, position, why):
    with pytest.raises(ValueError, match=f"syntax error in symbolic shape .*at position {position}: .*{why}"):
        export.symbolic_shape(text)


@settings(max_examples=300, deadline=None)
@given(st.text("ab10 +-*^(),.=><_modfliervx", max_size=30))
def test_any_text_is_a_shape_or_an_error_in_words(text):
    try:
        export.symbolic_shape(text)
    except ValueError as error:
        assert "symbolic" in str(error)


def test_a_known_size_must_be_that_of_like():
    with pytest.raises(ValueError, match=r"different size 6 for the known dimension 2 of like=\(3, 4, 5\)"):
        export.symbolic_shape("a, _, 6", like=(3, 4, 5))
    with pytest.raises(ValueError, match="has 1 dimensions"):
        export.symbolic_shape("a", like=(3, 4))


@pytest.mark.parametrize("constraints", [
    ["a >= 4", "a <= 3"], ["a <= 0"], ["a >= b + 1", "b >= a"], ["0 >= 1"], ["a == 5", "a >= 7"], ["a == a + 1"],
])
def test_constraints_that_contradict_are_refused(constraints):
    with pytest.raises(ValueError, match=re.escape(f"Unsatisfiable explicit constraint: {constraints[-1]}")):
        export.SymbolicScope(constraints)


@pytest.mark.parametrize(("constraints", "message"), [
    ("a >= 3", "sequence of strings"), (3, "sequence of strings"), ([3], "must be a string: got 3"),
    (["a > 3"], "must contain one of"), (["a"], "must contain one of"), (["a >= "], "expected a name"),
])
def test_what_is_no_constraint(constraints, message):
    with pytest.raises(ValueError, match=message):
        export.SymbolicScope(constraints)


@pytest.mark.parametrize(("constraints", "text", "expected"), [
    (["a == 2*b"], "a, b, a - 2*b", "(2*b, b, 0)"), (["a == 3"], "a, a + b", "(3, b + 3)"),
    (["mod(a, 2) == 0"], "mod(a, 2), a - 2*floordiv(a, 2)", "(0, 0)"), (["a >= b"], "max(a, b), min(a, b)", "(a, b)"),
    (["max(a, b) == a"], "max(a, b)", "(a,)"), (["floordiv(a, 4) == b"], "floordiv(a, 4) + 1", "(b + 1,)"),
    (["a == b", "b == c"], "a + b, c", "(2*c, c)"),
])
def test_equalities_are_rules(constraints, text, expected):
    assert str(export.symbolic_shape(text, constraints=constraints)) == expected


def test_a_scope_shows_where_it_was_made_and_its_constraints():
    text = str(export.SymbolicScope(["a >= 3", "b <= 5"]))
    assert re.search(r"created at .*test_symbolic_dimensions.py:\d+.*with constraints:\n  a >= 3\n  b <= 5", text)
    with pytest.raises(ValueError, match="Cannot specify both a `scope` and `constraints`"):
        export.symbolic_shape("a", scope=export.SymbolicScope(), constraints=["a >= 2"])


def test_which_sizes_are_symbolic():
    assert export.is_symbolic_dim(A) and not export.is_symbolic_dim(3) and not export.is_symbolic_dim(A - A)


def test_descriptions_of_arguments():
    args = (np.ones((3, 4), np.float32), [np.ones(3, np.int32)], 2.0)
    for specs in (("a, ...", ["b"], None), ("a, ...", "b", None)):
        mine, theirs = export.symbolic_args_specs(args, specs), jax.export.symbolic_args_specs(args, specs)
        assert str(mine) == str(theirs)
    assert str(export.symbolic_args_specs(args[0], "a, _")) == str(jax.export.symbolic_args_specs(args[0], "a, _"))
    with pytest.raises(ValueError, match="another structure than args"):
        export.symbolic_args_specs(args, ("a, ...",))
    with pytest.raises(ValueError, match=r"should be None or a string\. Found 3"):
        export.symbolic_args_specs(args[0], 3)


@pytest.mark.parametrize(("text", "least"), [
    ("a - 1 - max(a - 2, 0)", 0), ("a - min(a, 2) - max(a - min(a, 2) - 1, 0)", 0), ("min(a, b) - max(a, b) + a*b", 0),
    ("max(a - 3, 0)*b - a*b + 3*b", 0), ("max(a, b)^2 - a*b", 0),
])
def test_a_maximum_is_one_of_its_operands(text, least):
    size, = export.symbolic_shape(text)
    assert size >= least
    values = [size.evaluate({"a": a, "b": b}) for a in range(1, 9) for b in range(1, 9)]
    assert min(values) >= least
