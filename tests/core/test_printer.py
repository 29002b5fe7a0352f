"""Printed jaxprs against jax's own text: programs of both packages, and jaxprs of jax's rebuilt in our IR."""

import re
from types import SimpleNamespace

import jax
import jax.numpy
import ml_dtypes
import numpy as np
import pytest
from jax.extend import core as jax_core

import xtrace
import xtrace.lax
import xtrace.numpy as jnp
from tests.support import programs
from tests.support.cost import calls_while
from tests.support.names import stable_name
from xtrace._src.core.jaxprs.ir import NEVER_PRINTED, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var
from xtrace._src.core.jaxprs.printer import format_equation, format_jaxpr
from xtrace._src.core.jaxprs.text_layout import Break, Group, Nest, lay_out
from xtrace._src.transforms.dead_code import name_dropped

lax = jax.lax
SCALAR = jax.ShapeDtypeStruct((), "float32")
VECTOR = jax.ShapeDtypeStruct((3,), "float32")
MATRIX = jax.ShapeDtypeStruct((3, 4), "float32")


# Programs written once for both


@pytest.mark.parametrize("name", programs.ALIKE)
def test_prints_as_jax(name):
    program, args = programs.ALIKE[name]
    ours = xtrace.make_jaxpr(program(xtrace.lax, xtrace.jit))(*args)
    theirs = jax.make_jaxpr(program(jax.lax, jax.jit))(*args)
    assert str(ours) == str(theirs)


LITERALS = [2.0, -0.0, 1e-08, 1e30, float("inf"), float("-inf"), float("nan"), 3, True, 1j, 0.1]
NUMPY_LITERALS = [np.float32(0.1), np.int8(-3), np.bool_(True), np.float16(0.1), ml_dtypes.bfloat16(0.1), np.uint32(7)]


@pytest.mark.parametrize("value", [*LITERALS, *NUMPY_LITERALS], ids=stable_name)
def test_literal_as_result_prints_as_jax(value):
    theirs = str(jax.make_jaxpr(lambda x: value)(1.0))
    shown = re.fullmatch(r"\{ lambda ; a:f32\[\]\. let  in \((.*):\w+\[\],\) \}", theirs)[1]
    assert str(xtrace.make_jaxpr(lambda x: value)(1.0)) == f"{{ lambda ; a:f32[]. let  in ({shown},) }}"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "complex64", "int8", "uint32", "float8_e4m3fn"])
@pytest.mark.parametrize(
    "value", [2.5, -0.0, 0.1, float("inf"), float("nan"), 3, -1, True, 1j, np.float32(0.1)], ids=stable_name
)
def test_literal_as_operand_prints_as_jax(value, dtype):
    operand = np.ones(3, dtype)
    try:
        theirs = str(jax.make_jaxpr(lambda x: x * value)(operand))
    except jax.dtypes.TypePromotionError:
        return
    ours = str(xtrace.make_jaxpr(lambda x: x * value)(operand))
    assert re.search(r"mul . (\S+)", ours)[1] == re.search(r"mul . (\S+):", theirs)[1]


# Jaxprs of jax's, rebuilt: every construct of its text, also of operations that are not ours yet


class Shown:
    """Something that prints as `text`."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


# Parameters that jax leaves out of its text: always, or at these values.
ALWAYS_HIDDEN = {
    "jit": {"ctx_mesh", "in_shardings", "in_layouts", "out_shardings", "out_layouts", "inline", "compiler_options_kvs"},
    "broadcast_in_dim": {"shape", "sharding"},
    "convert_element_type": {"sharding"},
    "scan": {"linear", "_split_transpose"},
}
HIDDEN_VALUES = {
    ("broadcast_in_dim", "broadcast_dimensions"): (), ("jit", "keep_unused"): False, ("mul", "out_dtype"): None,
    ("dot_general", "precision"): None, ("dot_general", "out_sharding"): None,
}


class Rebuilt:
    """Makes a jaxpr of jax's one of ours that must print the same: None and literals show themselves as jax's do.

    With `normalised`, parameters that are None and the types of literals are left out, as ours are.
    """

    def __init__(self, normalised):
        self.normalised = normalised
        self.variables, self.jaxprs = {}, {}

    def variable(self, one):
        if one not in self.variables:
            text = one.aval.str_short(short_dtypes=True)
            self.variables[one] = Var(SimpleNamespace(str_short=lambda short_dtypes: text))
        return self.variables[one]

    def atom(self, one):
        if not isinstance(one, jax_core.Literal):
            return self.variable(one)
        value = one.val.item() if isinstance(one.val, (np.generic, np.ndarray)) else one.val
        # Of the subclasses that jax keeps weak numbers in, the plain number.
        kinds = [t for t in (bool, int, float, complex) if isinstance(value, t)]
        value = kinds[0](value) if kinds else value
        return Literal(Shown(str(value) + f":{one.aval.str_short(short_dtypes=True)}" * (not self.normalised)), None)

    def value(self, value):
        if isinstance(value, jax_core.ClosedJaxpr):
            return ClosedJaxpr(self.jaxpr(value.jaxpr), value.consts)
        if isinstance(value, jax_core.Jaxpr):
            return self.jaxpr(value)
        if isinstance(value, tuple) and any(isinstance(v, (jax_core.Jaxpr, jax_core.ClosedJaxpr)) for v in value):
            return tuple(map(self.value, value))
        return Shown("None") if value is None else value

    def equation(self, one):
        name, params = one.primitive.name, dict(one.params)
        if name == "dot_general":
            params["dimension_numbers"] = tuple(tuple(map(list, pair)) for pair in params["dimension_numbers"])
        if name == "jit" and not any(params["donated_invars"]):
            del params["donated_invars"]
        hidden = set(ALWAYS_HIDDEN.get(name, ()))
        hidden |= {k for k, v in params.items() if v is None and (self.normalised or k == "accuracy")}
        hidden |= {k for k, v in params.items() if (name, k) in HIDDEN_VALUES and HIDDEN_VALUES[name, k] == v}
        shown = {k: self.value(v) for k, v in params.items() if k not in hidden}
        primitive = SimpleNamespace(
            name=name, parameters=tuple(shown), unprinted={}, printed=None, given_parameters=lambda named: named
        )
        invars, outvars = [self.atom(x) for x in one.invars], [self.variable(v) for v in one.outvars]
        return JaxprEqn(invars, outvars, primitive, tuple(shown.values()), frozenset(), None)

    def jaxpr(self, one):
        if one not in self.jaxprs:
            self.jaxprs[one] = Jaxpr(
                [self.variable(v) for v in one.constvars],
                [self.variable(v) for v in one.invars],
                [self.atom(v) for v in one.outvars],
                [self.equation(e) for e in one.eqns],
            )
        return self.jaxprs[one]


def rebuilt(closed, normalised=False):
    return name_dropped(Rebuilt(normalised).jaxpr(closed.jaxpr))


def a_loop(x):
    return lax.fori_loop(0, 3, lambda i, carry: carry * x, x)


def a_branch(x):
    return lax.cond(x > 0, lax.sin, lax.cos, x)


def one_branch_twice(x):
    call = jax.jit(lambda x: lax.sin(x))
    return lax.cond(x > 0, call, call, x), call(x)


def many_branches(x):
    call = jax.jit(lambda x: lax.sin(x))
    return lax.switch(lax.convert_element_type(x, "int32"), [lambda x: x, lax.cos, lambda x: call(call(x))], x)


def a_scan(x):
    return lax.scan(lambda carry, y: (carry + y, lax.sin(carry)), 0.0, x)


def a_while(x):
    return lax.while_loop(lambda x: x < 10, lambda x: lax.sin(x), x)


def long_body(x):
    return lax.while_loop(lambda x: x < 10, programs.chain(11)(lax, jax.jit), x)


def gradients(x):
    return jax.grad(lambda x: jax.numpy.sum(jax.nn.softmax(x) ** 2))(x)


def statistics(x):
    found = [f(x) for f in (jax.numpy.std, jax.numpy.mean, jax.numpy.var, jax.numpy.argmax, jax.numpy.cumsum)]
    return *found, jax.numpy.linspace(0, 1, 5)


def random_bits():
    return jax.random.normal(jax.random.PRNGKey(0), (3,))


def convolution(x):
    return lax.conv_general_dilated(x, x[..., :2, :2], (1, 1), "SAME")


def sliced(x):
    return x[1:2], x[0], x.at[1].set(2.0)


def sliced_on_all(x):
    return lax.slice(x, (0,) * x.ndim, (1,) * x.ndim)


def sorted_together(*xs):
    return lax.sort(xs, num_keys=2)


def joined(*xs):
    return lax.concatenate(xs, 0)


def transposed(x):
    return lax.transpose(x, tuple(reversed(range(x.ndim))))


def cube(n):
    return jax.ShapeDtypeStruct((2,) * n, "float32")


OF_JAX = [
    *[(f, (SCALAR,)) for f in (a_branch, one_branch_twice, many_branches, a_while, long_body)],
    *[(f, (VECTOR,)) for f in (a_scan, gradients, sliced)],
    *[(f, (MATRIX,)) for f in (a_loop, statistics, sliced)],
    (random_bits, ()),
    (convolution, (cube(4),)),
    *[(sliced_on_all, (cube(n),)) for n in range(1, 8)],
    *[(transposed, (cube(n),)) for n in range(2, 24)],
    *[(f, (VECTOR,) * n) for n in range(2, 26) for f in (sorted_together, joined)],
    *[(programs.same_operand_twice(lax, jax.jit), (VECTOR, VECTOR))],
    *[(programs.literal_operand(lax, jax.jit), (VECTOR, VECTOR))],
    *[(programs.many_constants(lax, jax.jit), (VECTOR,))],
    *[(programs.closed_over_twice(lax, jax.jit), (VECTOR,))],
]


@pytest.mark.parametrize("function, args", OF_JAX, ids=lambda x: getattr(x, "__name__", None) or str(len(x)))
def test_a_rebuilt_jaxpr_prints_as_jax(function, args):
    closed = jax.make_jaxpr(function)(*args)
    assert format_jaxpr(rebuilt(closed)) == str(closed)


def with_literals(np_like, lax_like, jit):
    @jit
    def inner(x):
        return np_like.true_divide(x, 3) * 2.5

    def function(x, y):
        z = 2.0 * x - y / 7
        # Long enough that the types of literals would decide where lines end.
        w = inner(z) + inner(-1.5 * z)
        np_like.add(w, -0.0)
        return w, 1, 2.5, True, lax_like.max(w, w), 1e-08, float("inf"), 1j, float("nan"), -3, 1e30, 0.125, 17

    return function


def test_with_literals_it_prints_as_jax_without_their_types():
    ours = xtrace.make_jaxpr(with_literals(jnp, xtrace.lax, xtrace.jit))(programs.VECTOR, programs.VECTOR)
    theirs = jax.make_jaxpr(with_literals(jax.numpy, lax, jax.jit))(programs.VECTOR, programs.VECTOR)
    assert str(ours) == format_jaxpr(rebuilt(theirs, normalised=True))


# What the text is for


def test_names_go_on_after_z():
    text = str(xtrace.make_jaxpr(programs.chain(26 * 27)(xtrace.lax, xtrace.jit))(programs.VECTOR))
    bound = re.findall(r"^    (\w+):", text, re.MULTILINE)
    assert bound[24:27] == ["z", "ba", "bb"] and bound[-1] == "bba"
    assert len(set(bound)) == 26 * 27


def test_closed_jaxprs_jaxprs_and_equations_print_themselves():
    closed = xtrace.make_jaxpr(lambda x: xtrace.lax.sin(x))(programs.VECTOR)
    assert str(closed) == repr(closed) == str(closed.jaxpr) == "{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }"
    assert str(closed.eqns[0]) == format_equation(closed.eqns[0]) == "a:f32[3] = sin b"
    assert closed.pretty_print() == str(closed)


def test_parameters_at_their_unprinted_value_are_left_out():
    def shown(*values):
        primitive = SimpleNamespace(
            name="op", parameters=("p", "q", "r"), unprinted={"p": None, "q": (), "r": NEVER_PRINTED},
            given_parameters=lambda named: named, printed=None,
        )
        return format_equation(JaxprEqn([], [], primitive, values, frozenset(), None))

    assert shown(None, (), 1) == "op"
    assert shown(0, [], 2) == "op[p=0 q=[]] "
    assert shown(np.dtype("float32"), shown, 3) == "op[p=float32 q=shown] "


def test_source_info_gives_each_equation_its_line():
    def function(x):
        y = xtrace.lax.sin(x)
        return xtrace.jit(lambda y: xtrace.lax.cos(y))(y)

    first = function.__code__.co_firstlineno
    lines = xtrace.make_jaxpr(function)(programs.VECTOR).pretty_print(source_info=True).split("\n")
    assert f"{__file__}:{first + 1} (function)" in next(line for line in lines if "sin" in line)
    assert f"{__file__}:{first + 2} (<lambda>)" in next(line for line in lines if "cos" in line)
    assert all(line.count("#") <= 1 and not line.partition("#")[2].count(" in (") for line in lines)


def test_remarks_stand_in_one_column_behind_first_lines():
    def function(x):
        with xtrace.named_scope("outer"):
            y = xtrace.lax.sin(x)
            with xtrace.named_scope("inner"):
                return xtrace.lax.dot_general(y, y, (((0,), (0,)), ((), ())), preferred_element_type="float32")

    closed = xtrace.make_jaxpr(function)(programs.VECTOR)
    assert (
        closed.pretty_print(name_stack=True)
        == """\
{ lambda ; a:f32[3]. let
    b:f32[3] = sin a        # [outer]
    c:f32[] = dot_general[  # [outer/inner]
      dimension_numbers=(([0], [0]), ([], []))
      preferred_element_type=float32
    ] b b
  in (c,) }"""
    )
    place = f"{__file__}:{function.__code__.co_firstlineno + 2} (function)"
    assert f"sin a        # {place} [outer]\n" in closed.pretty_print(source_info=True, name_stack=True)


def test_what_pretty_print_shows_and_leaves_out():
    closed = xtrace.make_jaxpr(xtrace.jit(lambda x: xtrace.lax.sin(x)))(programs.VECTOR)
    assert closed.jaxpr.pretty_print(print_shapes=False, width=200) == (
        "{ lambda ; a. let b = jit[name=<lambda> jaxpr={ lambda ; a. let b = sin a in (b,) }] a in (b,) }"
    )
    assert "keep_unused=False" in closed.pretty_print(custom_pp_eqn_rules=False)
    assert closed.pretty_print(print_effects=True).count(" : {  } }") == 2
    coloured = closed.pretty_print(use_color=True)
    assert "\x1b[34;1mlambda\x1b[39;22m ; a\x1b[35m:f32[3]\x1b[39;22m. \x1b[34;1mlet\x1b[39;22m" in coloured
    assert re.sub("\x1b.*?m", "", coloured) == str(closed)


def test_printing_takes_time_in_proportion_to_the_number_of_equations():
    def cost(length):
        closed = xtrace.make_jaxpr(programs.chain(length)(xtrace.lax, xtrace.jit))(programs.VECTOR)
        return calls_while(lambda: str(closed))

    cost(10)
    small, large = cost(500), cost(5_000)
    assert large < 10.5 * small


# The layout of nested text


def test_a_group_stays_on_one_line_up_to_the_width():
    document = Group("(", Nest(2, Break(""), "x" * 5, Break(), "y" * 5), Break(""), ")")
    assert lay_out(document, 13) == "(xxxxx yyyyy)"
    assert lay_out(document, 12) == "(\n  xxxxx\n  yyyyy\n)"


def test_inner_groups_are_tried_on_their_own():
    inner = Group("[", Nest(1, Break(""), "a", Break(), "b"), "]")
    assert lay_out(Group("123456", Break(), inner), 8) == "123456\n[a b]"
    assert lay_out(Group("123456", Break(), inner), 4) == "123456\n[\n a\n b]"


def test_a_break_that_must_be_a_newline_breaks_the_groups_around_it():
    assert lay_out(Group("a", Break(), Nest(2, "b", Break(None), "c")), 80) == "a\nb\n  c"


def test_text_with_newlines_is_kept_and_fits_on_no_line():
    assert lay_out(Group("a\nb", Break(), "c", Group(Break()), "d"), 5) == "a\nb\nc d"


def test_layout_looks_a_line_ahead_only():
    # Each group of a deep nest is decided by at most a line of it; all of it each time would take quadratic time.
    document = "x"
    for _ in range(20_000):
        document = Group("(", document, Break(), ")")
    assert len(lay_out(document, 80)) > 40_000
