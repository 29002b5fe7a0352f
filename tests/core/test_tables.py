"""Tables are bounded, drop their oldest entries, and are emptied together."""

import gc
import threading
import weakref

import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace._src.core import tables
from xtrace._src.core.tables import Table, clear_tables, memoize, memoize_by_owner
from xtrace._src.runtime.execute import Program
from xtrace._src.stablehlo.emission_templates import EmissionTemplate
from xtrace._src.transforms.equation_templates import EquationTemplate


def test_the_oldest_entry_makes_room():
    table = Table(3)
    for key in range(5):
        table.remember(key, -key)
    assert table == {2: -2, 3: -3, 4: -4}
    table.remember(3, 0)
    assert table == {3: 0, 4: -4}


def test_tables_go_with_their_owners():
    before = len(tables._tables)
    table = Table()
    assert len(tables._tables) == before + 1
    del table
    assert len(tables._tables) == before
    nested = Table(nested=True)
    assert len(tables._tables) == before and nested == {}


def test_clearing_empties_tables_and_memoized_functions():
    calls = []

    @memoize(8, typed=True)
    def double(x):
        calls.append(x)
        return 2 * x

    table = Table()
    table.remember("a", 1)
    assert [double(1), double(1), double(True)] == [2, 2, 2] and calls == [1, True]
    clear_tables()
    assert table == {}
    assert double(1) == 2 and calls == [1, True, 1]


def test_results_live_as_long_as_their_owners():
    class Owner:
        pass

    calls = []

    @memoize_by_owner(limit=2, when=lambda result: result != "new")
    def describe(owner, word):
        calls.append(word)
        return word

    owner = Owner()
    assert [describe(owner, w) for w in ("a", "a", "new", "new", "b", "a", "c", "a")] == [*"aa", "new", "new", *"baca"]
    assert calls == ["a", "new", "new", "b", "c", "a"]
    clear_tables()
    assert describe(owner, "c") == "c" and calls[-1] == "c" and len(calls) == 7
    # What has no weak references, or is not hashable, is computed anew.
    assert [describe(1, "d"), describe(1, "d"), describe(owner, ["e"]), describe({}, "f")] == ["d", "d", ["e"], "f"]
    assert calls[7:] == ["d", "d", ["e"], "f"]
    reference = weakref.ref(owner)
    del owner
    assert reference() is None


def test_threads_share_a_table():
    table, failures = Table(16), []

    def work(start):
        try:
            for key in range(start, start + 20_000):
                table.remember(key, key)
                if not key % 1000:
                    clear_tables()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n * 100_000,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == [] and len(table) <= 16


@pytest.mark.parametrize("kind", [Program, EmissionTemplate, EquationTemplate])
def test_clear_caches_frees_what_functions_of_the_library_made(kind):
    x = jnp.arange(6.0).reshape(2, 3)

    @xtrace.jit
    def f(x):
        return jnp.linalg.norm(x) + jnp.median(x) + jnp.einsum("ij,ij", x, xtrace.nn.softmax(x))

    for _ in range(2):
        xtrace.jit(xtrace.vmap(xtrace.grad(f)))(x[None])
        x[1], x.at[0].set(1.0), x @ x.T, xtrace.lax.scan(lambda c, y: (c + y, y), 0.0, x[0])
    assert any(type(made) is kind for made in gc.get_objects())
    xtrace.clear_caches()
    gc.collect()
    assert [made for made in gc.get_objects() if type(made) is kind] == []
