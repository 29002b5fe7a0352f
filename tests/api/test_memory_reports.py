"""What memory a program takes: XLA's figures, the arrays behind them, their lines, and whether they fit."""

import json
import pickle
import re

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace import lax
from xtrace._src.xla.hlo.hlo_programs import read_program
from xtrace._src.xla.hlo.lifetimes import ARGUMENT, RESULT, TEMPORARY, Lifetimes
from xtrace._src.xla.source_locations import Place

# As reports show this file.
HERE = str(Place(__file__, 1, "")).removesuffix(":1")
SIDE = 256
SQUARE = 4 * SIDE * SIDE
SCALE = jnp.ones((SIDE, SIDE))


def layer(p, x):
    return jnp.tanh(x @ p["w"] + p["b"])


LAYER = layer.__code__.co_firstlineno + 1


def loss(params, x):
    for p in params:
        x = layer(p, x)
    return (x @ SCALE).sum()


def update(params, x):
    return xtrace.tree.map(lambda p, g: p - g, params, xtrace.grad(loss)(params, x))


PARAMS = [{"w": np.ones((SIDE, SIDE), np.float32), "b": np.ones(SIDE, np.float32)} for _ in range(4)]
X = np.ones((SIDE, SIDE), np.float32)


def looped(x):
    return lax.scan(lambda c, _: (jnp.tanh(c @ c), c.sum(0)), x, None, length=20)


def chosen(x):
    return lax.cond(x[0, 0] > 0, lambda x: x @ x, lambda x: jnp.tanh(x) @ x.T, x)


def factored(x):
    return jnp.linalg.cholesky(x @ x.T + jnp.eye(SIDE))


PROGRAMS = {
    "gradient": (xtrace.value_and_grad(loss), (PARAMS, X), {}),
    "donated": (update, (PARAMS, X), {"donate_argnums": 0}),
    "scan": (looped, (X,), {}),
    "gradient of scan": (xtrace.grad(lambda x: looped(x)[0].sum()), (X,), {}),
    "cond": (chosen, (X,), {}),
    "cholesky": (factored, (X,), {}),
    "sort": (lambda x: jnp.sort(x, 0), (X,), {}),
    "while": (lambda x: lax.while_loop(lambda s: s[0].sum() < 9, lambda s: (s[0] + s[1], s[1] @ s[0]), (x, x)), (X,),
              {}),
    "chain": (lambda x: jnp.tanh(jnp.tanh(x @ x) @ x) @ x, (X,), {}),
    "random": (lambda key: xtrace.random.normal(key, (SIDE, SIDE)) @ SCALE, (xtrace.random.key(0),), {}),
    "nothing": (lambda x: x, (X,), {}),
}


def compiled(name):
    function, arguments, options = PROGRAMS[name]
    return xtrace.jit(function, **options).lower(*arguments).compile()


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_arrays_add_up_to_the_figures_of_xla(name):
    report = compiled(name).memory_analysis()
    sizes = dict.fromkeys(("argument", "constant", "result", "temporary"), 0)
    for buffer in report.buffers:
        if buffer.at_peak:
            sizes[buffer.kind] += buffer.size
    memory = report.memory
    # XLA adds a table of pointers for several results, and rounds temporaries to cache lines.
    assert sizes["argument"] + sizes["constant"] == memory.arguments
    assert sizes["result"] == pytest.approx(memory.results, rel=0.01, abs=8 * len(report.buffers))
    assert sizes["temporary"] == pytest.approx(memory.temporaries, rel=0.05, abs=64 * len(report.buffers))
    assert sum(sizes.values()) - memory.aliased == pytest.approx(report.peak, rel=0.05)
    assert max(report.timeline) == pytest.approx(report.peak, rel=0.05)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_assignment_of_memory_is_guessed_well_where_xla_does_not_say_it(name):
    """As for devices that are not here, or GPUs."""
    made = compiled(name)
    program = read_program(made.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto())
    lives, memory = Lifetimes(program, None), made.memory_analysis().memory
    sizes = {kind: sum(v.shape.size for v in lives.values if v.kind == kind) for kind in (ARGUMENT, RESULT, TEMPORARY)}
    assert sizes[ARGUMENT] == memory.arguments
    guessed = sizes[ARGUMENT] + sizes[RESULT] + lives.temporaries[lives.fullest] - memory.aliased
    # A loop's state can be computed in place or not, which only XLA knows.
    assert guessed == pytest.approx(memory.total, rel=0.05, abs=SQUARE)


def test_arrays_have_names_lines_and_a_time():
    report = xtrace.memory(xtrace.value_and_grad(loss), PARAMS, X)
    by_name = {buffer.name: buffer for buffer in report.buffers}
    weight = by_name["params[2]['w']"]
    assert (weight.kind, weight.type, weight.size) == ("argument", f"f32[{SIDE},{SIDE}]", SQUARE)
    assert (weight.first, weight.last, weight.at_peak) == (0, len(report.timeline) - 1, True)
    scale = by_name["SCALE"]
    assert (scale.kind, scale.place.file, scale.place.function) == ("constant", __file__, "loss")
    assert by_name["result[1][0]['w']"].kind == "result"
    temporaries = [b for b in report.buffers if b.kind == "temporary" and b.size == SQUARE]
    forward = [b for b in temporaries if b.operation.startswith("jvp")]
    assert {(b.place.file, b.place.line) for b in forward if b.operation.endswith("tanh")} == {(__file__, LAYER)}
    # What the forward pass computes waits for the backward one.
    assert all(b.first < b.last and b.first_place.line for b in forward)
    assert report.by_line()[__file__, LAYER] >= SQUARE
    assert report.fullest.file == __file__ and len(report.places) == len(report.timeline)


def test_a_result_in_the_memory_of_an_argument():
    report = xtrace.jit(lambda x, y: x + y, donate_argnums=0).lower(X, X).compile().memory_analysis()
    assert (report.memory.aliased, report.peak) == (SQUARE, 2 * SQUARE)


def test_the_statistics_of_jax_are_there():
    report = xtrace.jit(jnp.outer).lower(jnp.ones(8), jnp.ones(4)).compile().memory_analysis()
    assert (report.argument_size_in_bytes, report.output_size_in_bytes) == (48, 128)
    assert report.peak_memory_in_bytes > 0 and {"temp_size_in_bytes", "buffers"} <= set(dir(report))
    with pytest.raises(AttributeError, match="no_such"):
        _ = report.no_such


def test_the_table_shows_the_largest_first():
    # These temporaries are too large for the memory of a result.
    text = str(xtrace.memory(xtrace.value_and_grad(loss), PARAMS, np.ones((8 * SIDE, SIDE), np.float32)))
    head, *rows = text.splitlines()
    assert re.fullmatch(r"loss on cpu: [\d.]+ MiB", head)
    assert f"at their fullest in {HERE}:" in text and "code" not in text
    start = rows.index("largest arrays when memory is fullest:")
    assert rows[start + 1].split() == ["bytes", "type", "array", "made", "by", "line", "needed"]
    assert re.search(rf"256 KiB +f32\[256,256\] +SCALE +closed over +{re.escape(HERE)}:\d+ +throughout", text)
    temporaries = re.search(r"3 x 2 MiB +f32\[2048,256\] +3 temporaries +jvp\(\)/tanh +\S+ +steps (\d+) to (\d+)", text)
    assert int(temporaries[1]) < int(temporaries[2])
    assert re.search(r"\n  and \d+ more$", text)


def test_json_and_html():
    report = xtrace.memory(xtrace.value_and_grad(loss), PARAMS, X)
    read = json.loads(report.to_json())
    assert (read["peak"], read["fits"], read["memory"]) == (report.peak, True, report.memory._asdict())
    assert len(read["buffers"]) == len(report.buffers) and read["fullest"]["file"] == __file__
    page = report._repr_html_()
    assert page.count("<tr>") == 11 and "params[0][&#x27;w&#x27;]" in page and "<svg" in page
    assert "<table>" in xtrace.memory(lambda: None)._repr_html_()


def test_functions_of_every_kind():
    class Model:
        def __init__(self):
            self.w = jnp.ones((SIDE, SIDE))

        def __call__(self, x, *, times):
            return x @ self.w * times

    model = Model()
    buffers = xtrace.memory(model, X, times=2.0).buffers
    assert {b.name for b in buffers if b.kind in ("argument", "constant")} == {"self.w", "x", "times"}
    jitted = xtrace.jit(lambda n, x: x * n, static_argnums=0)
    assert xtrace.memory(jitted, 3, X).memory.arguments == SQUARE
    # More than this machine has.
    described = xtrace.ShapeDtypeStruct((1 << 17, 1 << 17), np.float32)
    assert xtrace.memory(jnp.sin, described).memory.total == 1 << 37
    with pytest.raises(TypeError, match="callable"):
        xtrace.memory(3)


def test_a_program_fits_or_does_not():
    report = xtrace.memory(jnp.matmul, X, X)
    assert report.fits() and report.fits("cpu") and report.fits(3 * SQUARE) and not report.fits(3 * SQUARE - 1)
    assert str(report.fits(SQUARE)) == (
        "matmul takes 768 KiB on a device, which has 256 KiB: DOES NOT FIT, 512 KiB too much"
    )
    with pytest.raises(ValueError, match="unknown target 'h2000'"):
        report.fits("h2000")
    with pytest.raises(ValueError, match="fits: target is a number of bytes, 0 or more"):
        report.fits(-1)
    with pytest.raises(TypeError, match="a target is a string"):
        report.fits(True)
    compiled = xtrace.jit(jnp.matmul).lower(X, X).compile()
    assert compiled.fits() and not compiled.fits(1000)


def test_targets_without_their_compiler_are_answered_from_the_device_at_hand(monkeypatch):
    monkeypatch.setattr("xtrace._src.xla.plugins.plugins.find_library", lambda platform: None)
    huge = xtrace.ShapeDtypeStruct((1 << 17, 1 << 17), np.float32)
    report = xtrace.memory(jnp.sin, huge)
    for target, capacity in (("h200", 151_397_597_184), ("tpu-v5e", 16 << 30), ("tpu-v5p:2x2x1", 95 << 30)):
        answer = report.fits(target)
        assert (answer.needed, answer.capacity, bool(answer)) == (1 << 37, capacity, capacity >= 1 << 37)
        assert "as compiled for cpu; compiling for" in str(answer) and "xtrace[aot]" in str(answer)


def test_a_loaded_program_is_answered_for_as_it_is():
    made = pickle.loads(pickle.dumps(xtrace.jit(jnp.matmul).lower(X, X).compile()))
    assert {b.name for b in made.memory_analysis().buffers} == {"a", "b", "result"}
    answer = made.fits("h200")
    assert answer and str(answer).endswith("(as compiled for cpu)")


def test_references_have_the_users_names():
    reference, other = xtrace.new_ref(jnp.ones(1000)), xtrace.new_ref(jnp.ones(500))

    def f(ref, x):
        other[...] += x
        return ref[...] + x

    names = {b.name for b in xtrace.memory(f, reference, 2.0).buffers if b.kind == "argument"}
    assert names == {"a reference closed over", "ref", "x"}


def test_memory_that_is_not_known_is_no_answer():
    report = xtrace.memory(jnp.sin, X)
    answer = type(report.fits())("f", "a device", 5, None)
    assert "whose memory is not known" in str(answer)
    with pytest.raises(ValueError, match=r"fits\(16 << 30\)"):
        bool(answer)


def test_an_error_of_insufficient_memory_shows_the_table():
    def f(x):
        y = jnp.sin(x)
        return y * jnp.ones((1 << 20, 1 << 22), "float32")

    jitted = xtrace.jit(f)
    for call in (jitted, jitted.lower(np.float32(1)).compile()):
        with pytest.raises(RuntimeError, match="RESOURCE_EXHAUSTED") as caught:
            call(np.float32(1))
        text = "\n".join(caught.value.__notes__)
        assert "What the program takes:\nf on cpu: 16 TiB of " in text and "DOES NOT FIT" in text
        assert re.search(rf"16 TiB +f32\[1048576,4194304\] +result +mul +{re.escape(HERE)}:", text)


def test_a_compiler_without_room_shows_the_table(monkeypatch):
    def refuse(*arguments, **keywords):
        raise RuntimeError("RESOURCE_EXHAUSTED: no room")

    monkeypatch.setattr("xtrace._src.api.compilation.compilation.compile_program", refuse)
    with pytest.raises(RuntimeError, match="no room") as caught:
        xtrace.jit(loss).lower(PARAMS, X).compile()
    text = "\n".join(caught.value.__notes__)
    assert "as far as that can be told before it is compiled:\nloss on cpu: " in text
    assert re.search(r"256 KiB +f32\[256,256\] +params\[3\]\['w'\] +the caller", text)
    assert re.search(rf"temporary +dot_general +{re.escape(HERE)}:{LAYER}", text)
