"""Batching: vmap, named axes and what they map over"""

from tests.errors.wrong_program import WrongProgram

PROGRAMS = [
    WrongProgram(
        "sizes_that_differ",
        """
        xtrace.vmap(jnp.dot)(jnp.ones((3, 2)), jnp.ones((4, 2)))
        """,
        error="ValueError",
        says=["inconsistent sizes for array axes to be mapped", "argument a has size 3", "argument b has size 4"],
        underlined="xtrace.vmap(jnp.dot)(jnp.ones((3, 2)), jnp.ones((4, 2)))",
        fix="in_axes=(None, 0)",
        in_message=False,
        right="""
        xtrace.vmap(jnp.dot)(jnp.ones((3, 2)), jnp.ones((3, 2)))
        """,
    ),
    WrongProgram(
        "matrix_that_should_not_be_mapped",
        """
        def apply(matrix, v):
            return matrix @ v

        xtrace.vmap(apply)(jnp.ones((4, 5)), jnp.ones((3, 5)))
        """,
        error="ValueError",
        says=["vmap got inconsistent sizes", "argument matrix has size 4 along axis 0", "argument v has size 3"],
        underlined="xtrace.vmap(apply)(jnp.ones((4, 5)), jnp.ones((3, 5)))",
        fix="in_axes=(None, 0)",
        in_message=False,
        right="""
        def apply(matrix, v):
            return matrix @ v

        xtrace.vmap(apply, in_axes=(None, 0))(jnp.ones((4, 5)), jnp.ones((3, 5)))
        """,
    ),
    WrongProgram(
        "number_mapped",
        """
        xtrace.vmap(lambda x, y: x + y)(jnp.ones(3), 2.0)
        """,
        error="ValueError",
        says=["vmap", "rank", "argument y of <lambda>"],
        underlined="xtrace.vmap(lambda x, y: x + y)(jnp.ones(3), 2.0)",
        fix="None in the place of this argument in in_axes",
        in_message=False,
        right="""
        xtrace.vmap(lambda x, y: x + y, in_axes=(0, None))(jnp.ones(3), 2.0)
        """,
    ),
    WrongProgram(
        "axis_out_of_range",
        """
        xtrace.vmap(jnp.sum, in_axes=2)(jnp.ones((3, 2)))
        """,
        error="ValueError",
        says=["vmap", "axis", "2"],
        underlined="xtrace.vmap(jnp.sum, in_axes=2)(jnp.ones((3, 2)))",
        fix="has only 2 axes",
        in_message=False,
        right="""
        xtrace.vmap(jnp.sum, in_axes=1)(jnp.ones((3, 2)))
        """,
    ),
    WrongProgram(
        "axes_of_another_structure",
        """
        xtrace.vmap(lambda x, y: x + y, in_axes=(0, 0, None))(jnp.ones(3), jnp.ones(3))
        """,
        error="ValueError",
        says=["vmap in_axes", "2", "3"],
        underlined="xtrace.vmap(lambda x, y: x + y, in_axes=(0, 0, None))(jnp.ones(3), jnp.ones(3))",
        fix="a tuple of entries corresponding to the positional arguments",
        in_message=False,
        right="""
        xtrace.vmap(lambda x, y: x + y, in_axes=(0, 0))(jnp.ones(3), jnp.ones(3))
        """,
    ),
    WrongProgram(
        "nothing_is_mapped",
        """
        xtrace.vmap(jnp.sin, in_axes=None)(jnp.ones(3))
        """,
        error="ValueError",
        says=["vmap must have at least one non-None value in in_axes"],
        underlined="xtrace.vmap(jnp.sin, in_axes=None)(jnp.ones(3))",
        fix="at least one non-None value in in_axes",
        in_message=False,
        right="""
        xtrace.vmap(jnp.sin, in_axes=0)(jnp.ones(3))
        """,
    ),
    WrongProgram(
        "batched_result_said_not_to_be",
        """
        xtrace.vmap(lambda x: 2 * x, out_axes=None)(jnp.ones(3))
        """,
        error="ValueError",
        says=["vmap", "out_axes", "None"],
        underlined="xtrace.vmap(lambda x: 2 * x, out_axes=None)(jnp.ones(3))",
        fix="Give the axis it is to have in the result",
        in_message=False,
        right="""
        xtrace.vmap(lambda x: 2 * x, out_axes=0)(jnp.ones(3))
        """,
    ),
    WrongProgram(
        "no_arguments_to_map",
        """
        xtrace.vmap(lambda: 1.0)()
        """,
        error="ValueError",
        says=["vmap", "at least one"],
        underlined="xtrace.vmap(lambda: 1.0)()",
        fix="axis_size",
        in_message=False,
        right="""
        xtrace.vmap(lambda: 1.0, axis_size=3, out_axes=None)()
        """,
    ),
    WrongProgram(
        "name_of_no_axis",
        """
        @xtrace.vmap
        def normalize(x):
            return x / lax.psum(x, "batch")

        normalize(jnp.ones(3))
        """,
        error="NameError",
        says=["batch"],
        underlined='lax.psum(x, "batch")',
        fix="axis_name",
        in_message=False,
        right="""
        def normalize(x):
            return x / lax.psum(x, "batch")

        xtrace.vmap(normalize, axis_name="batch")(jnp.ones(3))
        """,
    ),
    WrongProgram(
        "list_of_examples",
        """
        xtrace.vmap(jnp.sin)([1.0, 2.0, 3.0])
        """,
        error="ValueError",
        says=["vmap", "rank"],
        underlined="xtrace.vmap(jnp.sin)([1.0, 2.0, 3.0])",
        fix="stacked with xtrace.numpy.array first",
        in_message=False,
        right="""
        xtrace.vmap(jnp.sin)(jnp.array([1.0, 2.0, 3.0]))
        """,
    ),
    WrongProgram(
        "string_result_of_an_example",
        """
        xtrace.vmap(lambda x: "large")(jnp.ones(3))
        """,
        error="TypeError",
        says=["vmap", "str"],
        underlined='xtrace.vmap(lambda x: "large")(jnp.ones(3))',
        fix="return arrays or numbers",
        in_message=False,
        right="""
        ["large" for x in jnp.ones(3)]
        """,
    ),
    WrongProgram(
        "signature_of_vectorize",
        """
        dot = jnp.vectorize(jnp.dot, signature="(n),(n)->()")
        dot(jnp.ones(3), jnp.ones(2))
        """,
        error="ValueError",
        says=["'n'", "3", "2"],
        underlined="dot(jnp.ones(3), jnp.ones(2))",
        fix="inconsistent size for core dimension 'n': 2 vs 3",
        in_message=False,
        right="""
        dot = jnp.vectorize(jnp.dot, signature="(n),(n)->()")
        dot(jnp.ones(3), jnp.ones(3))
        """,
    ),
]
