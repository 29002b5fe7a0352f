"""Collectives are read from the text of HLO: kinds, bytes, groups, loops around them, and the user's lines."""

import numpy as np
import pytest

from xtrace._src.xla.hlo.hlo_collectives import read_collectives

HEAD = """HloModule jit_f, is_scheduled=true

FileNames
1 "/home/me/model.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=2 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}


"""


def one(line, devices=8):
    (found,) = read_collectives(f"{HEAD}ENTRY %main (x: f32[4]) -> f32[4] {{\n  {line}\n}}\n", devices)
    return found


ROWS = [[0, 1], [2, 3], [4, 5], [6, 7]]
COLUMNS = [[0, 2, 4, 6], [1, 3, 5, 7]]
GROUPS = {
    "{{0,1},{2,3},{4,5},{6,7}}": ROWS, "[4,2]<=[8]": ROWS, "[2,4]<=[4,2]T(1,0)": COLUMNS,
    "mesh['x'=4,'y'=2] {'y'}": ROWS, "mesh['x'=4,'y'=2] {'x'}": COLUMNS,
    "mesh['x'=4,'y'=2] {'x','y'}": [list(range(8))], "mesh['x'=8] {'x':(4)2}": ROWS, "mesh['x'=8]{'x':(1)4}": COLUMNS,
    "{}": [list(range(8))],
}


@pytest.mark.parametrize("text", GROUPS)
def test_groups(text):
    found = one(f"ROOT %r.1 = f32[4]{{0}} all-reduce(%x), channel_id=1, replica_groups={text}, to_apply=%add")
    assert [list(group) for group in found.groups] == GROUPS[text]


SIZES = {
    "%r = f32[4,8]{1,0} all-reduce(%x), replica_groups={{0,1}}": 128,
    "%r = (f32[4]{0}, bf16[8]{0:T(8,128)(2,1)S(1)}) all-reduce(%x, %y), replica_groups={{0,1}}": 32,
    "%r = f32[8,4]{1,0} all-gather(%x), replica_groups={{0,1}}, dimensions={0}": 128,
    "%r = (f32[4,4]{1,0}, f32[8,4]{1,0}) all-gather-start(%x), replica_groups={{0,1}}, dimensions={0}": 128,
    "%r = f32[2,4]{1,0} reduce-scatter(%x), replica_groups=[2,4]<=[8], dimensions={0}": 128,
    "%r = pred[16]{0} collective-permute(%x), source_target_pairs={{0,1},{1,0}}": 16,
    "%r = f8e4m3fn[16]{0} all-to-all(%x), replica_groups={{0,1}}, dimensions={0}": 16,
    "%r = s4[16]{0} ragged-all-to-all(%x), replica_groups={{0,1}}": 8,
    "%r = f32[] all-reduce(%x), replica_groups={}": 4,
}


@pytest.mark.parametrize("line", SIZES)
def test_bytes_of_the_larger_side(line):
    assert one(line).size == SIZES[line]


def test_other_operations_are_none():
    lines = "  %a = f32[4]{0} add(%x, %x)\n  %d = f32[8,4]{1,0} all-gather-done(%s)\n"
    assert read_collectives(f"{HEAD}ENTRY %main (x: f32[4]) -> f32[4] {{\n{lines}}}\n", 8) == []


def test_lines_of_the_user():
    assert one("%r = f32[] all-reduce(%x), metadata={stack_frame_id=1}")[5:] == ("/home/me/model.py", 7)
    assert one('%r = f32[] all-reduce(%x), metadata={source_file="a.py" source_line=3}')[5:] == ("a.py", 3)
    assert one("%r = f32[] all-reduce(%x), metadata={stack_frame_id=9}")[5:] == (None, None)
    assert one("%r = f32[] all-reduce(%x)")[5:] == (None, None)


LOOP = """
%step (p: (s32[], f32[4])) -> (s32[], f32[4]) {{
  %r = f32[4]{{0}} all-reduce(%g), replica_groups={{}}
}}

%holds (p: (s32[], f32[4])) -> pred[] {{
  %c = s32[]{{:T(128)}} constant(5)
  ROOT %lt = pred[] compare(%g, %c), direction={direction}
}}

%outer (p: f32[4]) -> f32[4] {{
  %w = (s32[], f32[4]) while(%t), condition=%holds, body=%step{config}
}}

ENTRY %main (x: f32[4]) -> f32[4] {{
  %a = f32[4] fusion(%x), kind=kLoop, calls=%outer
  %b = f32[4] fusion(%x), kind=kLoop, calls=%outer
}}
"""


@pytest.mark.parametrize(("direction", "config", "times", "at_least"), [
    ("LT", ', backend_config={"known_trip_count":{"n":"3"}}', 6, False), ("LT", "", 10, False), ("GE", "", 2, True),
])
def test_numbers_of_runs(direction, config, times, at_least):
    (found,) = read_collectives(HEAD + LOOP.format(direction=direction, config=config), 8)
    assert (found.times, found.at_least) == (times, at_least)


def test_grids_of_three_axes():
    found = one("%r = f32[] all-reduce(%x), replica_groups=[4,2]<=[2,2,2]T(0,2,1)")
    assert np.array(found.groups).tolist() == np.arange(8).reshape(2, 2, 2).transpose(0, 2, 1).reshape(4, 2).tolist()
