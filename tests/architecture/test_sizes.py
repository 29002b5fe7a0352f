"""Bounds on the source: lines of a file, and the share of annotations that say nothing."""

import ast

from tests.architecture.source_tree import ROOT, read_package

LINES = 700
# Of 100 parameters and results, so many may be annotated `Any`, or not at all.
ANY_PERCENT = 15


def annotations(tree):
    """Every annotation of a parameter or a result in a module, None where there is none; `self` and `cls` left out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            given = node.args
            every = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
            yield from (x.annotation for x in every if x is not None and x.arg not in ("self", "cls"))
            yield node.returns


def says_nothing(annotation):
    return annotation is None or ast.unparse(annotation) == "Any"


def test_no_file_is_too_long():
    lengths = {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in (ROOT / "xtrace").rglob("*.py")}
    assert {path: length for path, length in lengths.items() if length > LINES} == {}


def test_annotations_name_types():
    every = [says_nothing(a) for module in read_package().values() for a in annotations(module.tree)]
    assert 100 * sum(every) <= ANY_PERCENT * len(every)


def test_annotations_are_counted():
    tree = ast.parse("def f(self, a, b: Any, *c: int, d: 'Any' = 1, **e) -> Any: ...")
    assert [says_nothing(a) for a in annotations(tree)] == [True, True, False, False, True, True]
