"""Messages in the wire format of protocol buffers are read, and wrong ones are errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xtrace._src.xla.hlo.hlo_programs import read_program
from xtrace._src.xla.hlo.protobuf import fields, integers


def test_fields_of_every_kind():
    message = b"\x08\x96\x01" + b"\x12\x03abc" + b"\x19" + bytes(8) + b"\x25" + bytes(4) + b"\x32\x03\x01\x80\x01"
    assert list(fields(message)) == [(1, 150), (2, b"abc"), (3, bytes(8)), (4, bytes(4)), (6, b"\x01\x80\x01")]
    assert integers(150) == [150] and integers(b"\x01\x80\x01") == [1, 128]


@pytest.mark.parametrize("message", [b"\x08", b"\x08\x80", b"\x12\x03ab", b"\x19\x00", b"\x0b", b"\x80" * 11 + b"\x01"])
def test_what_is_no_message_is_an_error(message):
    with pytest.raises(ValueError, match="protocol buffer"):
        list(fields(message))


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_end_in_fields_or_in_an_error(message):
    try:
        assert all(number >= 0 for number, _ in fields(message))
    except ValueError as error:
        assert "protocol buffer" in str(error)


def test_an_empty_message_is_a_program_of_nothing():
    program = read_program(b"")
    assert (program.name, program.computations, program.donated) == ("", {}, {})
