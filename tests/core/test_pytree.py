"""Pytrees: everything jax.tree_util and jax.tree do, compared on random trees, and the errors that are ours."""

import collections
import copy
import dataclasses
import functools
import inspect
import pickle
import re
import subprocess
import sys
import threading

import jax
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xtrace.tree
import xtrace.tree_util
from xtrace import tree_util
from xtrace._src.core.pytrees import key_paths, pytree
from xtrace._src.core.pytrees import pytree_differences as differences
from xtrace._src.core.pytrees import pytree_registration as registration

jtu = jax.tree_util

Pair = collections.namedtuple("Pair", "left right")


class Comparable:
    """Equal when the classes and the attributes are."""

    def __eq__(self, other):
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None


class Box(Comparable):
    """Registered without keys; `label` is metadata."""

    def __init__(self, children, label):
        self.children, self.label = list(children), label

    def __repr__(self):
        return f"Box({self.children}, {self.label!r})"


class Keyed(Comparable):
    """Registered with keys."""

    def __init__(self, **children):
        self.children = children

    def __repr__(self):
        return f"Keyed({self.children})"

    def tree_flatten_with_keys(self):
        return tuple((tree_util.GetAttrKey(k), v) for k, v in self.children.items()), tuple(self.children)

    @classmethod
    def tree_unflatten(cls, names, children):
        return cls(**dict(zip(names, children)))


class Listed(Comparable):
    """Registered by its methods, without keys."""

    def __init__(self, *children):
        self.children = children

    def __repr__(self):
        return f"Listed{self.children}"

    def tree_flatten(self):
        return self.children, None

    @classmethod
    def tree_unflatten(cls, metadata, children):
        return cls(*children)


@dataclasses.dataclass
class Point:
    x: object
    y: object
    tag: str = xtrace.tree.static(default="t")


@dataclasses.dataclass(frozen=True)
class Setting:
    value: int


for library in (xtrace.tree_util, jtu):
    library.register_pytree_node(Box, lambda b: (b.children, b.label), lambda label, xs: Box(xs, label))
    library.register_pytree_with_keys_class(Keyed)
    library.register_pytree_node_class(Listed)
    library.register_dataclass(Point)
    library.register_static(Setting)

NAMES = st.text("abc", min_size=1, max_size=2)
LEAVES = st.one_of(st.integers(-9, 9), st.text("xyz", max_size=2), st.floats(0, 1), st.builds(frozenset))


def containers(children):
    return st.one_of(
        st.lists(children, max_size=3),
        st.lists(children, max_size=3).map(tuple),
        st.dictionaries(NAMES, children, max_size=3),
        st.dictionaries(st.integers(0, 5), children, max_size=3),
        st.dictionaries(NAMES, children, max_size=3).map(collections.OrderedDict),
        st.dictionaries(NAMES, children, max_size=3).map(lambda d: collections.defaultdict(list, d)),
        st.builds(Pair, children, children),
        st.builds(Box, st.lists(children, max_size=3), NAMES),
        st.dictionaries(NAMES, children, max_size=3).map(lambda d: Keyed(**d)),
        st.lists(children, max_size=2).map(lambda xs: Listed(*xs)),
        st.builds(Point, children, children, NAMES),
        st.builds(Setting, st.integers(0, 2)),
        st.none(),
    )


TREES = st.recursive(st.one_of(LEAVES, st.none()), containers, max_leaves=12)


def is_pair_or_none(node):
    return node is None or isinstance(node, Pair)


def is_short_path(path, node):
    return len(path) > 1


PREDICATES = st.sampled_from([None, is_pair_or_none, lambda node: isinstance(node, (list, Point))])


@st.composite
def tree_and_relative(draw):
    """A tree and another one: deeper at its leaves, changed in one place, or unrelated."""
    tree = draw(TREES)
    leaves, treedef = pytree.flatten(tree)
    deeper = treedef.unflatten([draw(st.one_of(LEAVES, containers(LEAVES))) for _ in leaves])
    kind = draw(st.sampled_from(["deeper", "changed", "unrelated"]))
    if kind == "unrelated":
        return tree, draw(TREES)
    return tree, change_one(draw, deeper) if kind == "changed" else deeper


def change_one(draw, tree):
    """Replace the node at a random place."""
    if pytree.is_tree_node(type(tree)) and draw(st.booleans()):
        children, metadata = pytree.flatten_one_level(tree)
        children = list(children)
        if children and isinstance(tree, (list, tuple, dict)) and not isinstance(tree, collections.defaultdict):
            position = draw(st.integers(0, len(children) - 1))
            children[position] = change_one(draw, children[position])
            if isinstance(tree, dict):
                return type(tree)(zip(metadata, children))
            return Pair(*children) if isinstance(tree, Pair) else type(tree)(children)
    return draw(containers(LEAVES))


def outcome(function, *args, **kwargs):
    """Return ("value", result) or ("error", exception)."""
    try:
        return "value", function(*args, **kwargs)
    except Exception as error:
        return "error", error


@given(TREES, PREDICATES)
def test_flatten_and_unflatten(tree, is_leaf):
    leaves, treedef = xtrace.tree.flatten(tree, is_leaf)
    expected_leaves, expected = jax.tree.flatten(tree, is_leaf)
    assert leaves == expected_leaves
    assert str(treedef) == str(expected)
    assert (treedef.num_leaves, treedef.num_nodes) == (expected.num_leaves, expected.num_nodes)
    assert treedef == xtrace.tree.structure(tree, is_leaf)
    assert hash(treedef) == hash(xtrace.tree.structure(copy.deepcopy(tree), is_leaf))
    rebuilt = xtrace.tree.unflatten(treedef, iter(leaves))
    assert rebuilt == jax.tree.unflatten(expected, expected_leaves) == tree
    assert type(rebuilt) is type(tree)
    assert xtrace.tree.leaves(tree, is_leaf) == leaves
    assert [str(c) for c in xtrace.tree_util.treedef_children(treedef)] == [str(c) for c in expected.children()]
    assert xtrace.tree_util.treedef_is_leaf(treedef) == jtu.treedef_is_leaf(expected)


@given(TREES, st.sampled_from([(None, False), (is_pair_or_none, False), (is_short_path, True)]))
def test_paths(tree, predicate):
    pairs, treedef = xtrace.tree.flatten_with_path(tree, *predicate)
    expected_pairs, expected = jax.tree.flatten_with_path(tree, *predicate)
    assert repr(pairs) == repr(expected_pairs)
    assert str(treedef) == str(expected)
    assert xtrace.tree.leaves_with_path(tree, *predicate) == pairs
    for (path, _), (expected_path, _) in zip(pairs, expected_pairs):
        for options in ({}, {"separator": "/"}, {"simple": True}, {"simple": True, "separator": "."}):
            assert xtrace.tree_util.keystr(path, **options) == jtu.keystr(expected_path, **options)


@given(TREES)
def test_one_level(tree):
    functions = "flatten_one_level", "flatten_one_level_with_keys"
    for name in functions:
        kind, found = outcome(getattr(xtrace.tree_util, name), tree)
        expected_kind, expected = outcome(getattr(jtu, name), tree)
        assert kind == expected_kind
        if kind == "error":
            assert type(found) is type(expected) is ValueError
        else:
            # jaxlib 0.10 gives all children of a namedtuple the key of the first.
            keyed = name == "flatten_one_level_with_keys" and isinstance(tree, Pair)
            children = [c for _, c in found[0]] if keyed else list(found[0])
            assert repr(children) == repr([c for _, c in expected[0]] if keyed else list(expected[0]))
            assert found[1] == expected[1]
    assert xtrace.tree_util.is_tree_node(type(tree)) == jtu.is_tree_node(type(tree))


def test_keys_of_a_namedtuple():
    pairs, metadata = pytree.flatten_one_level_with_keys(Pair(1, 2))
    assert list(pairs) == [(tree_util.GetAttrKey("left"), 1), (tree_util.GetAttrKey("right"), 2)]
    assert metadata is Pair


@given(st.lists(TREES, max_size=4), st.sampled_from([None, is_pair_or_none]))
def test_all_leaves(trees, is_leaf):
    assert xtrace.tree_util.all_leaves(trees, is_leaf) == jtu.all_leaves(trees, is_leaf)


def test_all_leaves_asks_about_the_elements_only():
    assert xtrace.tree_util.all_leaves([1, [2]], is_leaf=lambda x: isinstance(x, list))
    assert not xtrace.tree_util.all_leaves([1, (2,)], is_leaf=lambda x: isinstance(x, list))


@given(TREES, PREDICATES)
def test_reductions(tree, is_leaf):
    strings = xtrace.tree.map(str, tree, is_leaf=is_leaf)

    def join(a, b):
        return f"({a}{b})"

    calls = [("reduce", (join, strings)), ("reduce", (join, strings, "start")), ("reduce_associative", (join, strings))]
    for name, args in calls:
        kind, found = outcome(getattr(xtrace.tree, name), *args)
        expected_kind, expected = outcome(getattr(jax.tree, name), *args)
        assert kind == expected_kind
        if kind == "value":
            assert found == expected
        else:
            assert isinstance(found, type(expected))
            assert "without leaves needs" in str(found)
    associative = [library.reduce_associative(join, strings, identity="e") for library in (xtrace.tree, jax.tree)]
    assert associative[0] == associative[1]
    numbers = xtrace.tree.map(lambda x: x != "", tree)
    assert xtrace.tree.all(numbers) == jax.tree.all(numbers)
    assert xtrace.tree.all(tree, is_leaf=is_leaf) == jax.tree.all(tree, is_leaf=is_leaf)


def test_an_explicit_none_is_an_initializer():
    assert xtrace.tree.reduce(lambda a, b: (a, b), [1], None) == (None, 1)
    assert xtrace.tree.reduce_associative(max, [], identity=None) is None


def first_path(error):
    """Return the key path that jax's message names first."""
    return re.search(r"at key path\n\s+(?:tree_map tree|broadcast_prefix prefix_tree)(.*)\n", str(error))[1]


def assert_same_outcome(found, expected, exact_path):
    assert found[0] == expected[0]
    if found[0] == "value":
        assert found[1] == expected[1]
        assert repr(found[1]) == repr(expected[1])
        return
    assert type(found[1]) is ValueError
    if isinstance(expected[1], AttributeError):
        # jax fails over its own message when attributes are missing.
        assert "has no attribute 'key'" in str(expected[1])
        return
    path = first_path(expected[1])
    if exact_path and ".left" not in path:
        assert (f" at key path {path}: " if path else " at the root: ") in str(found[1])
        assert " against " in str(found[1])


@given(tree_and_relative(), PREDICATES)
def test_map_of_two_trees(trees, is_leaf):
    found = outcome(xtrace.tree.map, lambda x, y: ("f", x, y), *trees, is_leaf=is_leaf)
    expected = outcome(jax.tree.map, lambda x, y: ("f", x, y), *trees, is_leaf=is_leaf)
    assert_same_outcome(found, expected, is_leaf is None)


@given(tree_and_relative())
def test_map_with_path(trees):
    found = outcome(xtrace.tree.map_with_path, lambda p, x, y: (repr(p), x, y), *trees)
    expected = outcome(jax.tree.map_with_path, lambda p, x, y: (repr(p), x, y), *trees)
    assert found[0] == expected[0]
    if found[0] == "value":
        assert found[1] == expected[1]
    args = (lambda p, x: (repr(p), x), trees[0])
    found = xtrace.tree.map_with_path(*args, is_leaf=is_short_path, is_leaf_takes_path=True)
    assert found == jax.tree.map_with_path(*args, is_leaf=is_short_path, is_leaf_takes_path=True)


@given(tree_and_relative(), PREDICATES)
def test_broadcast(trees, is_leaf):
    found = outcome(xtrace.tree.broadcast, *trees, is_leaf=is_leaf)
    assert_same_outcome(found, outcome(jax.tree.broadcast, *trees, is_leaf=is_leaf), is_leaf is None)
    if found[0] == "value":
        prefix = pytree.broadcast_prefix(*trees, is_leaf=is_leaf)
        assert len(prefix) == len(pytree.flatten(trees[1])[0])
        assert pytree.tree_unflatten(pytree.tree_structure(trees[1]), prefix) == xtrace.tree.broadcast(*trees, is_leaf)


@given(TREES, TREES, st.booleans())
def test_transpose(outer, inner, infer):
    outer_def, inner_def = pytree.tree_structure(outer), pytree.tree_structure(inner)
    tree = outer_def.unflatten(
        [inner_def.unflatten([(i, j) for j in map(str, range(inner_def.num_leaves))]) for i in
         range(outer_def.num_leaves)]
    )
    tree = xtrace.tree.map(repr, tree, is_leaf=lambda x: type(x) is tuple and len(x) == 2 and type(x[1]) is str)
    theirs = jax.tree.structure(outer), jax.tree.structure(inner)
    if infer and outer_def.num_leaves == 0:
        with pytest.raises(ValueError, match="no leaves to take the inner structure from"):
            xtrace.tree.transpose(outer_def, None, tree)
        return
    if outer_def.num_leaves == 0 and inner_def.num_leaves > 0:
        # jax 0.10 asks for the leaves it has not.
        expected = inner_def.unflatten([outer] * inner_def.num_leaves)
        assert xtrace.tree.transpose(outer_def, inner_def, tree) == expected
        return
    found = outcome(xtrace.tree.transpose, outer_def, None if infer else inner_def, tree)
    expected = outcome(jax.tree.transpose, theirs[0], None if infer else theirs[1], tree)
    assert found[0] == expected[0]
    if found[0] == "value":
        assert found[1] == expected[1]
        # Twice transposed, it is the tree again.
        if outer_def.num_leaves and inner_def.num_leaves:
            assert xtrace.tree.transpose(inner_def, outer_def, found[1]) == tree


def test_transpose_counts_leaves_as_jax_does():
    pair, three = pytree.tree_structure([0, 0]), pytree.tree_structure((0, 0, 0))
    assert xtrace.tree.transpose(pair, three, ((1, 2, 3), (4, 5, 6))) == ([1, 4], [2, 5], [3, 6])
    message = r"has 5 leaves where outer and inner structure make 2 x 3:\nPyTreeDef\(\[.*\nagainst\nPyTreeDef\(\[\("
    with pytest.raises(TypeError, match=message):
        xtrace.tree.transpose(pair, three, [(1, 2, 3), (4, 5)])


@given(TREES)
def test_treedefs_pickle_and_copy(tree):
    treedef = pytree.tree_structure(tree)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(treedef, protocol)) == treedef


def test_the_registry_pickles_by_reference():
    assert pickle.loads(pickle.dumps(pytree.default_registry)) is pytree.default_registry
    treedef = pytree.tree_structure({"a": [1, Point(1, 2)], "b": collections.defaultdict(list, z=1)})
    assert pickle.loads(pickle.dumps(treedef)) == treedef


def test_build_tree():
    treedef = pytree.tree_structure({"a": [0, 0], "b": (0,)})
    assert pytree.build_tree(treedef, [iter([1, 2]), [3]]) == {"a": [1, 2], "b": (3,)}


def test_treedef_tuple():
    parts = [pytree.tree_structure(t) for t in (1, [2, None], {"a": 3})]
    assert pytree.treedef_tuple(iter(parts)) == pytree.tree_structure((1, [2, None], {"a": 3}))
    assert pytree.treedef_tuple([]) == pytree.tree_structure(())


def test_key_classes():
    for name in ("SequenceKey", "DictKey", "GetAttrKey", "FlattenedIndexKey"):
        ours, theirs = getattr(xtrace.tree_util, name), getattr(jtu, name)
        argument = "a" if name in ("DictKey", "GetAttrKey") else 3
        assert (repr(ours(argument)), str(ours(argument))) == (repr(theirs(argument)), str(theirs(argument)))
        assert ours(argument) == ours(argument)
        assert hash(ours(argument)) == hash(ours(argument))
    assert key_paths.keystr(()) == ""
    assert key_paths.keystr(("a", 1), simple=True, separator="/") == jtu.keystr(("a", 1), simple=True, separator="/")


def test_the_registry_is_not_that_of_jax():
    class Ours:
        pass

    xtrace.tree_util.register_pytree_node(Ours, lambda o: ((), None), lambda metadata, children: Ours())
    assert pytree.is_tree_node(Ours)
    assert not jtu.is_tree_node(Ours)
    assert pytree.default_registry is not jtu.default_registry


def test_partial():
    for library in (xtrace.tree_util, jtu):
        partial = library.Partial(max, 1, [2], key=3)
        leaves, treedef = library.tree_flatten(partial)
        assert leaves == [1, 2, 3]
        assert str(treedef) == "PyTreeDef(CustomNode(Partial[<built-in function max>], [(*, [*]), {'key': *}]))"
        paths = [library.keystr(path) for path, _ in library.tree_leaves_with_path(partial)]
        assert paths == ["[<flat index 0>][0]", "[<flat index 0>][1][0]", "[<flat index 1>]['key']"]
    partial = registration.Partial(divmod, 7)
    assert partial(2) == (3, 1)
    assert isinstance(partial, functools.partial)
    doubled = xtrace.tree.map(lambda x: 2 * x, partial)
    assert type(doubled) is registration.Partial
    assert doubled(4) == (3, 2)
    assert repr(partial).endswith("Partial(<built-in function divmod>, 7)")
    assert pickle.loads(pickle.dumps(partial))(2) == (3, 1)


@pytest.mark.parametrize("make", [functools.partial, registration.Partial])
def test_partial_keeps_a_partial_whole(make):
    inner = make(pow, 2)
    outer = registration.Partial(inner, 5, mod=7)
    assert outer.args == (5,)
    assert outer.func == inner and inner == outer.func == registration.Partial(inner).func and outer.func.args == (2,)
    assert outer() == pow(2, 5, 7)
    assert pytree.tree_leaves(outer) == [5, 7]
    assert xtrace.tree.map(lambda x: x + 1, outer)() == pow(2, 6, 8)
    assert pytree.tree_structure(outer) == pytree.tree_structure(registration.Partial(inner, 1, mod=2))
    assert pytree.tree_structure(outer) != pytree.tree_structure(registration.Partial(make(pow, 2), 1, mod=2))
    assert pickle.loads(pickle.dumps(outer))() == outer()


def test_partial_of_no_function():
    with pytest.raises(TypeError, match="func must be a function; got 3"):
        registration.Partial(3)


def fresh_dataclass():
    @dataclasses.dataclass
    class Fields:
        a: object
        b: object
        c: object = 3

    return Fields


def test_register_dataclass_as_jax():
    cases = [
        ([], {}), ([["a", "b"], ["c"]], {}), ([["a"], ["b"]], {}), ([["a"], ["b"], ["c"]], {}),
        ([["a", "q"], ["b", "c"]], {}), ([["a", "b"], ["b", "c"]], {}), ([["a"]], {}), ([None, ["a"]], {}),
        ([["a", "c"], ["b"]], {"drop_fields": ["c"]}), ([["c", "a"], ("b",)], {}),
    ]
    for args, options in cases:
        results = []
        for library in (xtrace.tree_util, jtu):
            cls = fresh_dataclass()
            kind, value = outcome(library.register_dataclass, cls, *args, **options)
            if kind == "error":
                results.append(type(value))
            else:
                assert value is cls
                mapped = library.tree_map(lambda x: (x, 0), cls(1, 2, 5))
                results.append((str(library.tree_structure(cls(1, 2, 5))), vars(mapped)))
        assert results[0] == results[1], (args, options)


def test_register_dataclass_without_some_fields():
    cls = xtrace.tree_util.register_dataclass(fresh_dataclass(), drop_fields=["c"])
    assert vars(xtrace.tree.map(str, cls(1, 2, 5))) == {"a": "1", "b": "2", "c": 3}


def test_register_dataclass_with_static_fields():
    point = Point(1, [2], "name")
    leaves, treedef = xtrace.tree.flatten_with_path(point)
    assert [key_paths.keystr(path) for path, _ in leaves] == [".x", ".y[0]"]
    assert str(treedef) == "PyTreeDef(CustomNode(Point[('name',)], [*, [*]]))"
    assert xtrace.tree.map(lambda x: x + 1, point) == Point(2, [3], "name")


def test_register_dataclass_of_another_class():
    class Plain:
        def __init__(self, a, b):
            self.a, self.b = a, b

    with pytest.raises(TypeError, match="is not a dataclass; give data_fields and meta_fields"):
        xtrace.tree_util.register_dataclass(Plain)
    assert xtrace.tree_util.register_dataclass(Plain, ["a"], ["b"]) is Plain
    assert vars(xtrace.tree.map(str, Plain(1, 2))) == {"a": "1", "b": 2}


def test_fields_outside_the_constructor():
    @dataclasses.dataclass
    class Derived:
        a: object
        b: object = dataclasses.field(default=0, init=False)

    with pytest.raises(ValueError, match=r"\['b'\] are no fields that the constructor of Derived takes"):
        xtrace.tree_util.register_dataclass(Derived)
    assert not pytree.is_tree_node(Derived)
    xtrace.tree_util.register_dataclass(Derived, ["a"], [])
    assert xtrace.tree.leaves(Derived(4)) == [4]


def test_static_field():
    for options in ({}, {"default": 3}, {"metadata": {"a": 1}}, {"metadata": {"static": False}}, {"repr": False}):
        ours, theirs = xtrace.tree.static(**options), jax.tree.static(**options)
        assert repr(ours) == repr(theirs)


def test_register_static():
    @xtrace.tree_util.register_static
    @dataclasses.dataclass(frozen=True)
    class Mode:
        name: str

    leaves, treedef = xtrace.tree.flatten([Mode("a"), 1])
    assert leaves == [1]
    assert xtrace.tree.unflatten(treedef, [2]) == [Mode("a"), 2]
    assert treedef != pytree.tree_structure([Mode("b"), 1])
    assert pytree.tree_leaves_with_path([Mode("a"), 1])[0][0] == (tree_util.SequenceKey(1),)


REGISTRATIONS = [
    (lambda: registration.register_pytree_node(5, len, len), TypeError, "nodetype must be a class; got 5"),
    (lambda: registration.register_pytree_node(Ellipsis.__class__, 5, len), TypeError, "flatten_func must be"),
    (lambda: registration.register_pytree_node(Ellipsis.__class__, len, None), TypeError, "unflatten_func must be"),
    (lambda: registration.register_pytree_node(range, len, len, 3), TypeError, "flatten_with_keys_func must be"),
    (lambda: registration.register_pytree_with_keys(range, 3, len), TypeError, "flatten_with_keys must be a function"),
    (lambda: registration.register_pytree_node(list, len, len), ValueError, "is a pytree node already"),
    (lambda: registration.register_pytree_node(Box, len, len), ValueError, "is a pytree node already"),
    (lambda: registration.register_dataclass(Point), ValueError, "is a pytree node already"),
    (lambda: registration.register_dataclass(5), TypeError, "nodetype must be a class"),
    (lambda: registration.register_static(5), TypeError, "cls must be a class"),
    (lambda: registration.register_pytree_node_class(5), TypeError, "cls must be a class"),
    (lambda: registration.register_pytree_node_class(range), TypeError, "the class range has no method tree_flatten"),
    (lambda: registration.register_pytree_with_keys_class(Listed), TypeError, "has no method tree_flatten_with_keys"),
]


@pytest.mark.parametrize(("call", "kind", "text"), REGISTRATIONS, ids=lambda v: v if isinstance(v, str) else "")
def test_wrong_registrations(call, kind, text):
    with pytest.raises(kind, match=re.escape(text)):
        call()
    assert not pytree.is_tree_node(range)
    assert not pytree.is_tree_node(type(Ellipsis))


@dataclasses.dataclass
class Loop:
    inside: object


MISMATCHES = [
    ([1, 2], (1, 2), "at the root: list of length 2 against tuple of length 2"),
    ([1, 2], [1], "at the root: list of length 2 against list of length 1"),
    ([1, [2]], [1, 2], "at key path [1]: list of length 1 against a leaf of type int"),
    ([1, None], [1, 2], "at key path [1]: None against a leaf of type int"),
    ({"a": 1, "b": [2, {"c": 3}]}, {"a": 1, "b": [2, {"d": 3, "c": 4}]},
     "at key path ['b'][1]: dict with keys ['c'] against one with ['d']"),
    ({"a": 1}, {"b": 1}, "at the root: dict with keys ['a'] against one without ['a'] and with ['b']"),
    (Pair(1, (2,)), Pair(1, (2, 3)), "at key path .right: tuple of length 1 against tuple of length 2"),
    (Pair(1, 2), (1, 2), "at the root: namedtuple Pair of length 2 against tuple of length 2"),
    (Keyed(a=1, b=[1]), Keyed(a=1, b=Box([1], "z")), "at key path .b: list of length 1 against Box with 1 child"),
    (Box([1], "x"), Box([1, 2], "x"), "at the root: Box with 1 child against Box with 2 children"),
    ([Box([1], "x")], [Box([1], "y")], "at key path [0]: Box with metadata 'x' against 'y'"),
    ([Setting(1)], [Setting(2)], "at key path [0]: Setting with metadata Setting(value=1) against Setting(value=2)"),
    (Point(1, 2, "p"), Point(1, 2, "q"), "at the root: Point with metadata ('p',) against ('q',)"),
    (collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=2, a=1), "OrderedDict with metadata ('a', 'b')"),
    (collections.OrderedDict(a=1), {"a": 1}, "OrderedDict with keys ['a'] against dict with keys ['a']"),
]


@pytest.mark.parametrize(("first", "other", "text"), MISMATCHES, ids=lambda v: v if isinstance(v, str) else "")
def test_mismatches_name_the_place_and_both_sides(first, other, text):
    with pytest.raises(ValueError, match=re.escape(text)) as info:
        xtrace.tree.map(lambda *xs: xs, first, first, other)
    assert str(info.value).startswith("tree_map: tree 3 does not have the structure of tree 1 at ")
    with pytest.raises(ValueError, match=re.escape(text)):
        xtrace.tree.map_with_path(lambda *xs: xs, first, other)
    with pytest.raises(ValueError, match=re.escape(text)) as info:
        xtrace.tree.broadcast(first, other)
    assert str(info.value).startswith("tree_broadcast: prefix_tree is not a prefix of full_tree at ")
    assert differences.treedef_difference(pytree.tree_structure(first), pytree.tree_structure(other)) is not None
    assert differences.structure_difference(first, first) is None


@given(TREES, TREES)
def test_differences_between_treedefs(first, other):
    one, two = pytree.tree_structure(first), pytree.tree_structure(other)
    difference = differences.treedef_difference(one, two)
    assert (difference is None) == (one == two)
    assert (differences.structure_difference(first, other, prefix=False) is None) == (one == two)
    if difference is not None:
        assert difference == differences.structure_difference(first, other, prefix=False) or "a leaf" in difference


def test_a_difference_where_a_class_rejects_placeholders():
    class Strict:
        def __init__(self, x):
            if not isinstance(x, int):
                raise TypeError("an int, please")
            self.x = x

    registration.register_pytree_node(Strict, lambda s: ((s.x,), None), lambda metadata, children: Strict(*children))
    difference = differences.treedef_difference(pytree.tree_structure(Strict(1)), pytree.tree_structure([1]))
    assert re.match(r"between PyTreeDef\(CustomNode\(Strict.* and PyTreeDef\(\[\*\]\)", difference)


def test_metadata_that_cannot_be_compared():
    class Odd:
        def __eq__(self, other):
            raise RuntimeError("no comparison")

        __hash__ = None

    class Holder:
        pass

    registration.register_pytree_node(Holder, lambda h: ((1,), Odd()), lambda metadata, children: Holder())
    with pytest.raises((ValueError, RuntimeError), match=r"metadata must be hashable and comparable|no comparison"):
        xtrace.tree.map(lambda *xs: xs, Holder(), Holder())


def test_is_leaf_with_a_path_in_mismatches():
    def stop(path, node):
        return path == (tree_util.SequenceKey(0),)

    options = {"is_leaf": stop, "is_leaf_takes_path": True}
    assert xtrace.tree.map_with_path(lambda p, x, y: (x, y), [[1], 2], [3, 4], **options) == [([1], 3), (2, 4)]
    with pytest.raises(ValueError, match=r"at key path \[1\]: list of length 1 against a leaf of type int"):
        xtrace.tree.map_with_path(lambda p, x, y: (x, y), [[1], [2]], [3, 4], **options)


def test_dict_keys_that_cannot_be_sorted():
    tree = [1, {"a": {1: 2, "b": 3}}]
    message = r"the keys of the dict at key path \[1\]\['a'\] cannot be sorted.*: \[1, 'b'\]; use keys of one type"
    for call in (xtrace.tree.flatten, xtrace.tree.flatten_with_path, xtrace.tree.leaves, xtrace.tree.structure):
        with pytest.raises(ValueError, match=message):
            call(tree)
        with pytest.raises(ValueError, match="dict at the root cannot be sorted"):
            call(collections.defaultdict(int, {1: 2, "b": 3}))
    assert xtrace.tree.leaves(collections.OrderedDict([(1, 2), ("b", 3)])) == [2, 3]


def test_a_tree_that_contains_itself():
    tree = []
    tree.append([tree])
    for call in (xtrace.tree.flatten, xtrace.tree.flatten_with_path):
        with pytest.raises(RecursionError, match="nested too deeply, or contains itself"):
            call(tree)


WRONG_ARGUMENTS = [
    (lambda: xtrace.tree.flatten([1], 5), TypeError, "is_leaf must be a function; got 5"),
    (lambda: xtrace.tree.flatten_with_path([1], 5), TypeError, "is_leaf must be a function; got 5"),
    (lambda: xtrace.tree.flatten([1], lambda x: "yes"), ValueError, "non-boolean"),
    (lambda: xtrace.tree.unflatten(5, [1]), TypeError, "treedef must be a PyTreeDef, which tree_structure(tree)"),
    (lambda: xtrace.tree.unflatten(pytree.tree_structure([1]), 5), TypeError, "leaves must be an iterable"),
    (lambda: xtrace.tree.unflatten(pytree.tree_structure([1, 2]), [1]), ValueError, "Too few leaves"),
    (lambda: xtrace.tree.unflatten(pytree.tree_structure([1, 2]), [1, 2, 3]), ValueError, "Too many leaves"),
    (lambda: xtrace.tree.map(3, [1]), TypeError, "f must be a function; got 3"),
    (lambda: xtrace.tree.map_with_path(3, [1]), TypeError, "f must be a function; got 3"),
    (lambda: xtrace.tree.transpose([1], None, [1]), TypeError, "outer_treedef must be a PyTreeDef"),
    (lambda: xtrace.tree.transpose(pytree.tree_structure([1]), 3, [1]), TypeError, "inner_treedef must be a PyTreeD"),
    (lambda: pytree.treedef_children([1]), TypeError, "treedef must be a PyTreeDef"),
    (lambda: pytree.treedef_is_leaf([1]), TypeError, "treedef must be a PyTreeDef"),
    (lambda: pytree.treedef_tuple([3]), TypeError, "every element of treedefs must be a PyTreeDef"),
    (lambda: pytree.build_tree(3, []), TypeError, "treedef must be a PyTreeDef"),
    (lambda: pytree.flatten_one_level(3), ValueError, "a value of type int is a leaf"),
    (lambda: pytree.flatten_one_level_with_keys(3), ValueError, "a value of type int is a leaf"),
]


@pytest.mark.parametrize(("call", "kind", "text"), WRONG_ARGUMENTS, ids=lambda v: v if isinstance(v, str) else "")
def test_wrong_arguments(call, kind, text):
    with pytest.raises(kind, match=re.escape(text)):
        call()


def test_errors_of_user_functions_come_through():
    class Broken:
        pass

    def fail(broken):
        raise ValueError("my own error")

    registration.register_pytree_node(Broken, fail, lambda metadata, children: Broken())
    for call in (xtrace.tree.flatten, xtrace.tree.flatten_with_path):
        with pytest.raises(ValueError, match=r"^my own error$"):
            call([1, Broken()])
    with pytest.raises(KeyError, match="mine"):
        xtrace.tree.map(lambda x: {}["mine"], [1])


def test_flatten_is_the_method_of_the_registry():
    assert pytree.flatten([1, (2,)]) == pytree.default_registry.flatten([1, (2,)])
    assert not inspect.isfunction(pytree.flatten)


def test_two_threads_flatten_and_register():
    failures = []

    def work():
        try:
            for _ in range(50):
                cls = type("Made", (), {})
                registration.register_pytree_node(cls, lambda c: ((1, 2), None), lambda metadata, children: children)
                assert pytree.flatten([cls(), cls()])[0] == [1, 2, 1, 2]
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_the_mirrors_have_jax_names_and_parameters():
    for ours, theirs in ((xtrace.tree, jax.tree), (xtrace.tree_util, jtu)):
        for name in dir(theirs):
            if name.startswith("_"):
                continue
            function = getattr(ours, name)
            if inspect.isfunction(getattr(theirs, name)):
                expected = inspect.signature(getattr(theirs, name)).parameters.values()
                found = inspect.signature(function).parameters.values()
                assert [(p.name, p.kind) for p in found] == [(p.name, p.kind) for p in expected], name


def test_jax_is_not_imported_and_treedefs_print():
    code = (
        "import sys\n"
        "import xtrace.tree, xtrace.tree_util\n"
        "leaves, treedef = xtrace.tree.flatten_with_path({'b': [1, None], 'a': 2})\n"
        "print(treedef, treedef.unflatten([3, 4]), xtrace.tree_util.Partial(max, 1)(3))\n"
        "print(sorted(m for m in sys.modules if m == 'jax' or m.startswith('jax.')))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    shown, modules = done.stdout.splitlines()
    assert shown == "PyTreeDef({'a': *, 'b': [*, None]}) {'a': 3, 'b': [4, None]} 3"
    assert modules == "[]"
