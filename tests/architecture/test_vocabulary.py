"""One word for one idea: names that the package has given up stay away."""

import ast

import pytest

from tests.architecture.source_tree import read_package

# The name that was given up, and the one that says it now.
GIVEN_UP = {
    "one_program": "inline_jit", "program_of_trees": "inline_jit",
    "inlined_strongly": "with_strong_results", "Recording": "EquationTemplate", "Linearized": "Subprogram",
    "Stack": "TraceStack", "written_out": "inline_calls", "without_groups": "without_calls",
    "by_formula": "lower_fun", "per_jaxpr": "memoize_by_owner", "table_by_owner": "memoize_by_owner",
    "records_copies": "TraceStack.replay", "recordable": "replayable", "NEVER": "NOT_REPLAYABLE",
    "SplitJaxpr": "PartitionedJaxpr", "Known": "KnownResults", "dependence": "analyze_unknowns",
    "carry_dependence": "find_unknown_carry", "FLAT": "ZERO_DERIVATIVE",
    "Form": "EmissionTemplate", "form_of": "record_emission_template", "Forms": "CallShapes",
    "types_of_results": "abstract_eval", "evaluates": "fusion_level", "fuses": "fusion_level",
    "fused_from": "fusion_level", "under_name": "set_function_name",
    "on_storage": "stage_on_physical_types", "seen_as": "bitcast", "as_called": "move_constants_to_inputs",
}


def names(tree):
    """Every name that a module defines, reads or imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.alias)):
            yield node.name


def test_names_that_were_given_up_stay_away():
    found = {}
    for module in read_package().values():
        for name in GIVEN_UP.keys() & set(names(module.tree)):
            found.setdefault(name, []).append(module.name)
    assert not found


@pytest.mark.parametrize("text", ["Recording = 1", "x.recordable", "from a import NEVER", "def one_program(): pass"])
def test_a_name_is_found_wherever_it_stands(text):
    assert GIVEN_UP.keys() & set(names(ast.parse(text)))
