"""Arrays: shapes, dtypes, axes and indices of numpy's functions"""

from tests.errors.wrong_program import WrongProgram

PROGRAMS = [
    WrongProgram(
        "shapes_that_do_not_broadcast",
        """
        jnp.ones((3, 4)) + jnp.ones(3)
        """,
        error="BroadcastError",
        says=["add", "(3, 4)", "(3,)"],
        underlined="jnp.ones((3, 4)) + jnp.ones(3)",
        fix="x[:, None] adds one at the end",
        in_message=False,
        right="""
        jnp.ones((3, 4)) + jnp.ones(3)[:, None]
        """,
    ),
    WrongProgram(
        "matrices_that_do_not_fit",
        """
        jnp.ones((3, 4)) @ jnp.ones((3, 4))
        """,
        error="TypeError",
        says=["(3, 4)"],
        underlined="jnp.ones((3, 4)) @ jnp.ones((3, 4))",
        fix="transposed with .T",
        in_message=False,
        right="""
        jnp.ones((3, 4)) @ jnp.ones((3, 4)).T
        """,
    ),
    WrongProgram(
        "axis_that_is_not_there",
        """
        jnp.sum(jnp.ones((2, 3)), axis=2)
        """,
        error="AxisError",
        says=["axis 2 is out of bounds for array of dimension 2"],
        underlined="jnp.sum(jnp.ones((2, 3)), axis=2)",
        fix="axis",
        in_message=False,
        right="""
        jnp.sum(jnp.ones((2, 3)), axis=1)
        """,
    ),
    WrongProgram(
        "reshape_to_another_size",
        """
        jnp.arange(6).reshape(4, 2)
        """,
        error="TypeError",
        says=["reshape", "(6,)", "(4, 2)"],
        underlined="jnp.arange(6).reshape(4, 2)",
        fix="one size may be -1",
        in_message=False,
        right="""
        jnp.arange(6).reshape(-1, 2)
        """,
    ),
    WrongProgram(
        "two_unknown_sizes",
        """
        jnp.arange(6).reshape(-1, -1)
        """,
        error="TypeError",
        says=["reshape", "-1"],
        underlined="jnp.arange(6).reshape(-1, -1)",
        fix="can only specify one unknown axis",
        in_message=False,
        right="""
        jnp.arange(6).reshape(-1, 3)
        """,
    ),
    WrongProgram(
        "float_index",
        """
        x = jnp.arange(10)
        x[len(x) / 2]
        """,
        error="TypeError",
        says=["float", "index"],
        underlined="x[len(x) / 2]",
        fix="integer",
        in_message=False,
        right="""
        x = jnp.arange(10)
        x[len(x) // 2]
        """,
    ),
    WrongProgram(
        "float_array_as_an_index",
        """
        x = jnp.arange(10)
        x[jnp.array([1.0, 2.0])]
        """,
        error="TypeError",
        says=["float32", "index"],
        underlined="x[jnp.array([1.0, 2.0])]",
        fix="integer",
        in_message=False,
        right="""
        x = jnp.arange(10)
        x[jnp.array([1, 2])]
        """,
    ),
    WrongProgram(
        "list_as_an_index",
        """
        x = jnp.arange(10)
        x[[0, 2]]
        """,
        error="TypeError",
        says=["Using a non-tuple sequence for multidimensional indexing is not allowed"],
        underlined="x[[0, 2]]",
        fix="array",
        in_message=False,
        right="""
        x = jnp.arange(10)
        x[jnp.array([0, 2])]
        """,
    ),
    WrongProgram(
        "string_as_an_index",
        """
        table = jnp.ones((3, 2))
        table["weight"]
        """,
        error="TypeError",
        says=["str", "index"],
        underlined='table["weight"]',
        fix="are valid indices",
        in_message=False,
        right="""
        table = {"weight": jnp.ones(3), "bias": jnp.ones(3)}
        table["weight"]
        """,
    ),
    WrongProgram(
        "one_index_too_many",
        """
        x = jnp.ones((2, 3))
        x[0, 1, 2]
        """,
        error="IndexError",
        says=["Too many indices", "2", "3"],
        underlined="x[0, 1, 2]",
        fix="array is 2-dimensional, but 3 were indexed",
        in_message=False,
        right="""
        x = jnp.ones((2, 3))
        x[0, 1]
        """,
    ),
    WrongProgram(
        "mask_of_another_shape",
        """
        x = jnp.arange(4)
        x[jnp.array([True, False])]
        """,
        error="IndexError",
        says=["boolean index", "4", "2"],
        underlined="x[jnp.array([True, False])]",
        fix="expected (4,)",
        in_message=False,
        right="""
        x = jnp.arange(4)
        x[jnp.array([True, False, True, False])]
        """,
    ),
    WrongProgram(
        "array_of_strings",
        """
        jnp.array(["a", "b"])
        """,
        error="TypeError",
        says=["str", "array"],
        underlined='jnp.array(["a", "b"])',
        fix="arrays hold numbers only",
        in_message=False,
        right="""
        np.array(["a", "b"])
        """,
    ),
    WrongProgram(
        "array_of_objects",
        """
        rows = np.array([[1, 2], None], dtype=object)
        jnp.asarray(rows)
        """,
        error="TypeError",
        says=["object"],
        underlined="jnp.asarray(rows)",
        fix="its NumPy dtype is object",
        in_message=False,
        right="""
        rows = np.array([[1, 2], [0, 0]])
        jnp.asarray(rows)
        """,
    ),
    WrongProgram(
        "array_with_none",
        """
        jnp.array([1.0, None])
        """,
        error="ValueError",
        says=["None"],
        underlined="jnp.array([1.0, None])",
        fix="a number that is missing is xtrace.numpy.nan",
        in_message=False,
        right="""
        jnp.array([1.0, jnp.nan])
        """,
    ),
    WrongProgram(
        "bits_of_floats",
        """
        jnp.array([1.0, 0.0]) & jnp.array([1.0, 1.0])
        """,
        error="TypeError",
        says=["and", "float32"],
        underlined="jnp.array([1.0, 0.0]) & jnp.array([1.0, 1.0])",
        fix="Convert with x.astype(...) first",
        in_message=False,
        right="""
        jnp.logical_and(jnp.array([1.0, 0.0]), jnp.array([1.0, 1.0]))
        """,
    ),
    WrongProgram(
        "comparisons_joined_without_parentheses",
        """
        x = jnp.arange(3)
        x > 0 & x < 2
        """,
        error="ValueError",
        says=["The truth value of an array", "(3,)", "ambiguous"],
        underlined="x > 0 & x < 2",
        fix="(x > 0) & (x < 1), in parentheses",
        in_message=False,
        right="""
        x = jnp.arange(3)
        (x > 0) & (x < 2)
        """,
    ),
    WrongProgram(
        "concatenated_rows_of_other_lengths",
        """
        jnp.concatenate([jnp.ones((2, 3)), jnp.ones((2, 4))])
        """,
        error="TypeError",
        says=["concatenate", "(2, 3)", "(2, 4)"],
        underlined="jnp.concatenate([jnp.ones((2, 3)), jnp.ones((2, 4))])",
        fix="Choose another axis=",
        in_message=False,
        right="""
        jnp.concatenate([jnp.ones((2, 3)), jnp.ones((2, 4))], axis=1)
        """,
    ),
    WrongProgram(
        "arrays_as_separate_arguments",
        """
        jnp.concatenate(jnp.ones(3), jnp.ones(3))
        """,
        error="ValueError",
        says=["concatenate"],
        underlined="jnp.concatenate(jnp.ones(3), jnp.ones(3))",
        fix="concatenate([a, b])",
        in_message=False,
        right="""
        jnp.concatenate([jnp.ones(3), jnp.ones(3)])
        """,
    ),
    WrongProgram(
        "stack_of_other_shapes",
        """
        jnp.stack([jnp.ones(3), jnp.ones(4)])
        """,
        error="ValueError",
        says=["stack", "(3,)", "(4,)"],
        underlined="jnp.stack([jnp.ones(3), jnp.ones(4)])",
        fix="concatenate joins arrays of different lengths",
        in_message=False,
        right="""
        jnp.concatenate([jnp.ones(3), jnp.ones(4)])
        """,
    ),
    WrongProgram(
        "stack_of_nothing",
        """
        jnp.stack([x for x in jnp.arange(0)])
        """,
        error="ValueError",
        says=["stack: Need at least one array"],
        underlined="jnp.stack([x for x in jnp.arange(0)])",
        fix="at least one array",
        in_message=False,
        right="""
        jnp.stack([x for x in jnp.arange(1)])
        """,
    ),
    WrongProgram(
        "einsum_of_other_sizes",
        """
        jnp.einsum("ij,jk->ik", jnp.ones((2, 3)), jnp.ones((4, 5)))
        """,
        error="ValueError",
        says=["'j'", "3", "4"],
        underlined='jnp.einsum("ij,jk->ik", jnp.ones((2, 3)), jnp.ones((4, 5)))',
        fix="the operands have shapes (2, 3), (4, 5)",
        in_message=False,
        right="""
        jnp.einsum("ij,jk->ik", jnp.ones((2, 3)), jnp.ones((3, 5)))
        """,
    ),
    WrongProgram(
        "einsum_of_other_ranks",
        """
        jnp.einsum("ij,j->i", jnp.ones(3), jnp.ones(3))
        """,
        error="ValueError",
        says=["ij"],
        underlined='jnp.einsum("ij,j->i", jnp.ones(3), jnp.ones(3))',
        fix="the operands have shapes (3,), (3,)",
        in_message=False,
        right="""
        jnp.einsum("ij,j->i", jnp.ones((1, 3)), jnp.ones(3))
        """,
    ),
    WrongProgram(
        "negative_size",
        """
        n = 3
        jnp.zeros(n - 4)
        """,
        error="TypeError",
        says=["-1", "shape"],
        underlined="jnp.zeros(n - 4)",
        fix="nonnegative",
        in_message=False,
        right="""
        n = 3
        jnp.zeros(max(n - 4, 0))
        """,
    ),
    WrongProgram(
        "float_size",
        """
        n = 10
        jnp.zeros(n / 2)
        """,
        error="TypeError",
        says=["zeros: shape must be an integer or a sequence of integers, got 5.0"],
        underlined="jnp.zeros(n / 2)",
        fix="divide sizes with //",
        in_message=False,
        right="""
        n = 10
        jnp.zeros(n // 2)
        """,
    ),
    WrongProgram(
        "shape_in_two_arguments",
        """
        jnp.zeros(2, 3)
        """,
        error="TypeError",
        says=["3", "dtype"],
        underlined="jnp.zeros(2, 3)",
        fix="a tuple such as (2, 3)",
        in_message=False,
        right="""
        jnp.zeros((2, 3))
        """,
    ),
    WrongProgram(
        "dtype_that_does_not_exist",
        """
        jnp.ones(3, dtype="float23")
        """,
        error="TypeError",
        says=["float23"],
        underlined='jnp.ones(3, dtype="float23")',
        fix="Accepted are bool,",
        in_message=False,
        right="""
        jnp.ones(3, dtype="float32")
        """,
    ),
    WrongProgram(
        "integer_too_large",
        """
        jnp.array(3_000_000_000)
        """,
        error="OverflowError",
        says=["3000000000", "int32"],
        underlined="jnp.array(3_000_000_000)",
        fix="jax_enable_x64",
        in_message=False,
        right="""
        jnp.array(3_000_000_000, dtype=jnp.uint32)
        """,
    ),
    WrongProgram(
        "integer_too_large_in_arithmetic",
        """
        jnp.arange(3) + 2 ** 40
        """,
        error="OverflowError",
        says=["1099511627776", "int32"],
        underlined="jnp.arange(3) + 2 ** 40",
        fix="jax_enable_x64",
        in_message=False,
        right="""
        jnp.arange(3.0) + 2.0 ** 40
        """,
    ),
    WrongProgram(
        "where_with_two_arguments",
        """
        x = jnp.arange(3)
        jnp.where(x > 1, x)
        """,
        error="TypeError",
        says=["where", "x and y"],
        underlined="jnp.where(x > 1, x)",
        fix="x and y",
        in_message=False,
        right="""
        x = jnp.arange(3)
        jnp.where(x > 1, x, 0)
        """,
    ),
    WrongProgram(
        "rows_for_a_transposition",
        """
        jnp.ones((2, 3, 4)).transpose(0, 1)
        """,
        error="TypeError",
        says=["transpose", "(0, 1)", "3"],
        underlined="jnp.ones((2, 3, 4)).transpose(0, 1)",
        fix="swapaxes exchanges two",
        in_message=False,
        right="""
        jnp.ones((2, 3, 4)).transpose(1, 0, 2)
        """,
    ),
    WrongProgram(
        "split_into_unequal_parts",
        """
        jnp.split(jnp.arange(5), 2)
        """,
        error="ValueError",
        says=["array split does not result in an equal division"],
        underlined="jnp.split(jnp.arange(5), 2)",
        fix="array_split",
        in_message=False,
        right="""
        jnp.array_split(jnp.arange(5), 2)
        """,
    ),
    WrongProgram(
        "update_of_another_shape",
        """
        jnp.zeros((3, 3)).at[0].set(jnp.ones(2))
        """,
        error="ValueError",
        says=["(2,)", "(3,)"],
        underlined="jnp.zeros((3, 3)).at[0].set(jnp.ones(2))",
        fix="sizes must be equal or 1, from the last axis on",
        in_message=False,
        right="""
        jnp.zeros((3, 3)).at[0].set(jnp.ones(3))
        """,
    ),
    WrongProgram(
        "squeeze_of_a_larger_axis",
        """
        jnp.ones((2, 3)).squeeze(0)
        """,
        error="ValueError",
        says=["axis", "size", "2"],
        underlined="jnp.ones((2, 3)).squeeze(0)",
        fix="x[0] takes one element",
        in_message=False,
        right="""
        jnp.ones((1, 3)).squeeze(0)
        """,
    ),
    WrongProgram(
        "mean_of_an_array_as_a_list",
        """
        losses = [jnp.ones(()), jnp.zeros(())]
        jnp.mean(losses)
        """,
        error="TypeError",
        says=["mean", "list"],
        underlined="jnp.mean(losses)",
        fix="make an array of it with xtrace.numpy.array",
        in_message=False,
        right="""
        losses = [jnp.ones(()), jnp.zeros(())]
        jnp.mean(jnp.array(losses))
        """,
    ),
    WrongProgram(
        "inverse_of_a_matrix_that_is_not_square",
        """
        jnp.linalg.inv(jnp.ones((2, 3)))
        """,
        error="MatrixShapeError",
        says=["inv", "(2, 3)"],
        underlined="jnp.linalg.inv(jnp.ones((2, 3)))",
        fix="must have shape [..., n, n]",
        in_message=False,
        right="""
        jnp.linalg.pinv(jnp.ones((2, 3)))
        """,
    ),
]
