"""Places and scopes of operations for programs that record equations, and the members of tracers that they ask for."""

import jax
import numpy as np
import pytest
from jax.experimental import sparse as jax_sparse
from jax.extend import source_info_util as jax_places

import xtrace
from tests.support.jax_modules import import_jax_module
from xtrace.experimental import sparse
from xtrace.extend import source_info_util as places

PAIRS = ((xtrace, places), (jax, jax_places))


def test_name_stacks():
    found = []
    for _, module in PAIRS:
        empty = module.NameStack()
        inner = empty.extend("a").transform("jvp").extend("b").transform("vmap")
        assert module.NameStack(inner.stack) == inner and hash(module.NameStack(inner.stack)) == hash(inner)
        assert inner != empty and module.new_name_stack("a") == empty.extend("a")
        found.append((
            str(empty), repr(empty), str(inner), repr(inner), repr(inner + module.new_name_stack("q")), len(inner),
            repr(module.new_name_stack()), [each.name for each in inner.stack], str(module.NameStack(inner.stack[:3])),
        ))
    assert found[0] == found[1]


def scopes_of_blocks(package, module):
    """Return the names in nested blocks, inside and outside of programs, and those of the equations."""
    seen = []

    def note():
        seen.append(str(module.current_name_stack()))

    def function(x):
        note()
        with module.set_name_stack(module.new_name_stack("own")):
            note()
            x = package.lax.sin(x)
        with module.reset_name_stack():
            note()
            x = package.lax.cos(x)
        with module.transform_name_stack("double"), package.named_scope("i"):
            note()
            x = package.lax.tan(x)
        return x

    note()
    with module.extend_name_stack("a") as names:
        seen.append(repr(names))
        with module.transform_name_stack("jvp") as names:
            seen.append(repr(names))
            with package.named_scope("b"):
                note()
                with module.set_name_stack(module.new_name_stack("c")):
                    note()
                with module.reset_name_stack():
                    note()
                note()
                jaxpr = package.make_jaxpr(function)(1.0)
                package.grad(function)(1.0)
                package.vmap(lambda x: note() or x)(np.ones(2, np.float32))
                package.jit(package.vmap(package.grad(lambda x: note() or x)))(np.ones(2, np.float32))
    note()
    with package.named_scope("o"):
        seen.append(str(module.current().name_stack))
    equations = [
        (e.primitive.name, str(e.source_info.name_stack))
        for j in (jaxpr, package.make_jaxpr(package.grad(function))(1.0)) for e in j.eqns
        if e.primitive.name in ("sin", "cos", "tan")
    ]
    return seen, equations


def test_blocks_have_the_scopes_of_jax():
    mine, other = (scopes_of_blocks(*pair) for pair in PAIRS)
    assert mine == other and "a/jvp(b)" in mine[0] and ("tan", "double(i)") in mine[1]


def test_places_that_are_given():
    found = []
    for package, module in PAIRS:
        (equation,) = package.make_jaxpr(lambda x, p=package: p.lax.sin(x))(1.0).eqns
        names = module.new_name_stack("given")

        def function(x, package=package, module=module, equation=equation, names=names):
            with module.user_context(equation.source_info.traceback, name_stack=names):
                x = package.lax.cos(x)
            with package.named_scope("own"), module.user_context(equation.source_info.traceback):
                x = package.lax.tan(x)
            return package.lax.exp(x)

        made = package.make_jaxpr(function)(1.0).eqns
        lines = [module.summarize(e.source_info).rpartition("/")[2] for e in (equation, *made)]
        assert lines[0] == lines[1] == lines[2] != lines[3] and lines[0].endswith("<lambda>)")
        replaced = equation.source_info.replace(name_stack=names)
        assert module.summarize(module.new_source_info()) == ""
        found.append((lines[1:], [str(e.source_info.name_stack) for e in made], str(replaced.name_stack)))
    assert found[0][1:] == found[1][1:] == (["given", "own", ""], "given")
    assert [x.split(":")[0] for x in found[0][0]] == [x.split(":")[0] for x in found[1][0]]


def test_an_equation_made_by_hand_has_the_place_of_another():
    closed = xtrace.make_jaxpr(xtrace.named_call(xtrace.lax.sin, name="wave"))(1.0)
    (equation,) = closed.eqns
    core = xtrace.extend.core
    made = core.new_jaxpr_eqn(
        equation.invars, equation.outvars, xtrace.lax.cos_p, {"accuracy": None}, equation.effects, equation.source_info
    )
    assert made.source_info == equation.source_info and str(made.source_info.name_stack) == "wave"
    replaced = core.ClosedJaxpr(closed.jaxpr.replace(eqns=[made]), closed.consts)
    lowered = xtrace.jit(core.jaxpr_as_fun(replaced)).lower(1.0)
    assert "wave/cos" in lowered.as_text(debug_info=True)
    np.testing.assert_allclose(lowered.compile()(1.0)[0], np.cos(np.float32(1)), rtol=1e-6)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: places.NameStack().extend(3), "the name of a scope must be a string, got 3"),
    (lambda: places.NameStack().transform(3), "the name of a scope must be a string, got 3"),
    (lambda: places.new_name_stack(3), "new_name_stack: the name of a scope must be a string"),
    (lambda: places.extend_name_stack(3), "extend_name_stack: the name"),
    (lambda: places.transform_name_stack(3), "transform_name_stack: the name"),
    (lambda: places.set_name_stack("a"), "name_stack must be a NameStack, got 'a'"),
    (lambda: places.summarize(3), "source_info must be the source_info of an equation, got 3"),
    (lambda: places.user_context(3), "traceback must be None or the source_info.traceback of an equation, got 3"),
    (lambda: places.user_context(None, name_stack="a"), "name_stack must be None or a NameStack, got 'a'"),
    (lambda: xtrace.extend.core.Token(3), "buf must be a token or an array, got 3"),
])
def test_wrong_arguments(call, message):
    with pytest.raises(TypeError, match=message):
        call()


# Members of tracers


def members(x):
    return x.dimension_as_value, x.full_lower() is x, x.get_referent(), x.to_concrete_value()


def kinds_of_members(package, run):
    """Return for each member of the tracer that `run` makes None, "itself", or the value."""
    found = []

    def function(x):
        for value in members(x):
            known = isinstance(value, (bool, type(None)))
            inner = "itself" if value is x else "tracer"
            found.append(value if known else inner if isinstance(value, package.core.Tracer) else float(np.sum(value)))
        return x

    run(package, function)
    return found


@pytest.mark.parametrize("run", [
    lambda p, f: p.jit(f)(1.0),
    lambda p, f: p.grad(f)(2.0),
    lambda p, f: p.jit(p.grad(f))(2.0),
    lambda p, f: p.vmap(f)(np.arange(3.0, dtype=np.float32)),
    lambda p, f: p.jvp(f, (2.0,), (1.0,)),
], ids=["jit", "grad", "jit-grad", "vmap", "jvp"])
def test_members_of_tracers(run):
    mine, other = (kinds_of_members(p, run) for p in (xtrace, jax))
    assert mine == other


def test_members_of_sparse_tracers():
    for package, module in ((xtrace, sparse), (jax, jax_sparse)):
        found = []
        module.sparsify(lambda x, f=found: f.append((members(x), x)) or x, use_tracer=True)(module.eye(2))
        ((nothing, same, referent, value), tracer), = found
        assert nothing is None and same and referent is tracer and value is None, package


# Other values of programs


def test_tokens():
    for package in (xtrace, jax):
        core = import_jax_module("jax.extend.core") if package is jax else xtrace.extend.core
        token = package.lax.create_token()
        assert isinstance(token, core.Token) and not isinstance(package.numpy.ones(2), core.Token)
        assert token.block_until_ready() in (None, token)
    assert xtrace.extend.core.Token(xtrace.numpy.ones(2)).block_until_ready() is None


def test_scalars_without_a_value():
    for package in (xtrace, jax):
        primitives = import_jax_module(f"{package.__name__}.extend.core.primitives")
        given = {"dtype": np.dtype("float32"), "memory_space": package.memory.Space.Device}

        def function(x, p=primitives.empty2_p, given=given):
            return x + p.bind(**given)

        assert package.typeof(primitives.empty2_p.bind(**given)).shape == ()
        np.testing.assert_array_equal(package.jit(package.vmap(function))(np.ones(2, np.float32)), np.ones(2))
        np.testing.assert_array_equal(package.jvp(function, (1.0,), (2.0,)), [1.0, 2.0])
        assert "empty2[dtype=float32 memory_space=MemorySpace.Device]" in str(package.make_jaxpr(function)(1.0))
    with pytest.raises(TypeError, match="primitive empty2 has the parameters"):
        xtrace.extend.core.primitives.empty2_p.bind()


@pytest.mark.parametrize("value", [3, 2.5, True, 1j, np.ones(2), np.int64(3), np.float64(2)])
def test_values_in_dtypes_of_programs(value):
    found = []
    for package in (xtrace, jax):
        handlers = import_jax_module(f"{package.__name__}.interpreters.xla").canonicalize_dtype_handlers
        result = np.asarray(handlers[type(value)](value))
        found.append((result.dtype.name, result.tolist()))
    assert found[0] == found[1]


def test_a_handler_is_a_function():
    # It would be asked for values of classes that are no operands, of which jax has none but its own.
    handlers = xtrace.interpreters.xla.canonicalize_dtype_handlers
    assert bytes not in handlers
    handlers[bytes] = len
    assert bytes in handlers and handlers.pop(bytes) is len and list(handlers) == []
    with pytest.raises(TypeError, match="a handler must be a function, got 3"):
        handlers[int] = 3


def test_equations_name_their_context():
    for package in (xtrace, jax):
        sin = package.numpy.sin
        closed = package.make_jaxpr(lambda x, sin=sin: sin(x) + 1)(1.0)
        values = {closed.jaxpr.invars[0]: np.float32(2.0)}
        for equation in closed.eqns:
            with equation.ctx.manager:
                operands = [v.val if hasattr(v, "val") else values[v] for v in equation.invars]
                values[equation.outvars[0]] = equation.primitive.bind(*operands, **equation.params)
        assert equation.ctx.threefry_partitionable and equation.ctx.xla_metadata is None
        assert equation.ctx.compute_type is None
        np.testing.assert_allclose(values[closed.jaxpr.outvars[0]], np.sin(2.0) + 1, rtol=1e-6)
