"""Operations of lax, random numbers and keys"""

from tests.errors.wrong_program import WrongProgram

PROGRAMS = [
    WrongProgram(
        "addition_of_mixed_dtypes",
        """
        lax.add(jnp.float32(1), jnp.int32(1))
        """,
        error="TypeError",
        says=["add", "float32", "int32"],
        underlined="lax.add(jnp.float32(1), jnp.int32(1))",
        fix="numpy.add",
        in_message=False,
        right="""
        jnp.add(jnp.float32(1), jnp.int32(1))
        """,
    ),
    WrongProgram(
        "addition_of_python_numbers_of_two_kinds",
        """
        lax.add(1, 1.0)
        """,
        error="TypeError",
        says=["add", "float32", "int32"],
        underlined="lax.add(1, 1.0)",
        fix="numpy.add",
        in_message=False,
        right="""
        jnp.add(1, 1.0)
        """,
    ),
    WrongProgram(
        "sine_of_an_integer",
        """
        lax.sin(jnp.arange(3))
        """,
        error="TypeError",
        says=["sin", "int32"],
        underlined="lax.sin(jnp.arange(3))",
        fix="Convert with x.astype(...) first",
        in_message=False,
        right="""
        jnp.sin(jnp.arange(3))
        """,
    ),
    WrongProgram(
        "select_of_other_dtypes",
        """
        x = jnp.arange(3)
        lax.select(x > 1, x, jnp.zeros(3))
        """,
        error="TypeError",
        says=["select", "int32", "float32"],
        underlined="lax.select(x > 1, x, jnp.zeros(3))",
        fix="where",
        in_message=False,
        right="""
        x = jnp.arange(3)
        jnp.where(x > 1, x, jnp.zeros(3))
        """,
    ),
    WrongProgram(
        "shapes_of_lax_are_not_broadcast",
        """
        lax.add(jnp.ones((2, 3)), jnp.ones(3))
        """,
        error="TypeError",
        says=["add", "(2, 3)", "(3,)"],
        underlined="lax.add(jnp.ones((2, 3)), jnp.ones(3))",
        fix="xtrace.numpy's functions broadcast ranks",
        in_message=False,
        right="""
        jnp.add(jnp.ones((2, 3)), jnp.ones(3))
        """,
    ),
    WrongProgram(
        "contracted_sizes_that_differ",
        """
        lax.dot_general(jnp.ones((2, 3)), jnp.ones((2, 3)), (((1,), (0,)), ((), ())))
        """,
        error="TypeError",
        says=["dot_general", "3", "2"],
        underlined="lax.dot_general(jnp.ones((2, 3)), jnp.ones((2, 3)), (((1,), (0,)), ((), ())))",
        fix="lhs has shape (2, 3), rhs (2, 3)",
        in_message=False,
        right="""
        lax.dot_general(jnp.ones((2, 3)), jnp.ones((2, 3)), (((1,), (1,)), ((), ())))
        """,
    ),
    WrongProgram(
        "convolution_of_other_channels",
        """
        images, kernel = jnp.ones((1, 3, 8, 8)), jnp.ones((4, 1, 3, 3))
        lax.conv_general_dilated(images, kernel, (1, 1), "SAME")
        """,
        error="ValueError",
        says=["conv_general_dilated", "3", "1"],
        underlined='lax.conv_general_dilated(images, kernel, (1, 1), "SAME")',
        fix="feature_group_count",
        in_message=False,
        right="""
        images, kernel = jnp.ones((1, 3, 8, 8)), jnp.ones((4, 3, 3, 3))
        lax.conv_general_dilated(images, kernel, (1, 1), "SAME")
        """,
    ),
    WrongProgram(
        "dimension_numbers_of_another_rank",
        """
        images, kernel = jnp.ones((1, 8, 8, 3)), jnp.ones((3, 3, 3, 4))
        lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))
        """,
        error="TypeError",
        says=["conv", "NWC"],
        underlined='lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=("NWC", "WIO", "NWC"))',
        fix="must have len equal to the ndim of lhs and rhs",
        in_message=False,
        right="""
        images, kernel = jnp.ones((1, 8, 8, 3)), jnp.ones((3, 3, 3, 4))
        lax.conv_general_dilated(images, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        """,
    ),
    WrongProgram(
        "slice_larger_than_the_array",
        """
        lax.dynamic_slice(jnp.arange(4), (0,), (5,))
        """,
        error="TypeError",
        says=["dynamic_slice", "(5,)", "(4,)"],
        underlined="lax.dynamic_slice(jnp.arange(4), (0,), (5,))",
        fix="from 0 to its size",
        in_message=False,
        right="""
        lax.dynamic_slice(jnp.arange(4), (0,), (4,))
        """,
    ),
    WrongProgram(
        "starts_for_other_axes",
        """
        lax.dynamic_slice(jnp.ones((4, 4)), (0,), (2, 2))
        """,
        error="ValueError",
        says=["dynamic_slice"],
        underlined="lax.dynamic_slice(jnp.ones((4, 4)), (0,), (2, 2))",
        fix="one entry for each of the operand's 2 axes",
        in_message=False,
        right="""
        lax.dynamic_slice(jnp.ones((4, 4)), (0, 0), (2, 2))
        """,
    ),
    WrongProgram(
        "update_larger_than_the_array",
        """
        lax.dynamic_update_slice(jnp.zeros(3), jnp.ones(4), (0,))
        """,
        error="TypeError",
        says=["dynamic_update_slice", "(4,)", "(3,)"],
        underlined="lax.dynamic_update_slice(jnp.zeros(3), jnp.ones(4), (0,))",
        fix="does not fit into the operand",
        in_message=False,
        right="""
        lax.dynamic_update_slice(jnp.zeros(3), jnp.ones(2), (0,))
        """,
    ),
    WrongProgram(
        "reshape_of_lax_guesses_no_size",
        """
        lax.reshape(jnp.arange(6), (-1, 2))
        """,
        error="TypeError",
        says=["reshape", "-1"],
        underlined="lax.reshape(jnp.arange(6), (-1, 2))",
        fix="xtrace.numpy.reshape works out one size given as -1",
        in_message=False,
        right="""
        jnp.reshape(jnp.arange(6), (-1, 2))
        """,
    ),
    WrongProgram(
        "list_given_to_lax",
        """
        lax.sin([0.0, 1.0])
        """,
        error="TypeError",
        says=["sin", "list", "not a valid JAX type"],
        underlined="lax.sin([0.0, 1.0])",
        fix="make an array of it with xtrace.numpy.array",
        in_message=False,
        right="""
        lax.sin(jnp.array([0.0, 1.0]))
        """,
    ),
    WrongProgram(
        "seed_in_place_of_a_key",
        """
        random.normal(0, (3,))
        """,
        error="TypeError",
        says=["key"],
        underlined="random.normal(0, (3,))",
        fix="random.key(",
        in_message=False,
        right="""
        random.normal(random.key(0), (3,))
        """,
    ),
    WrongProgram(
        "shape_in_place_of_a_key",
        """
        random.normal((3,))
        """,
        error="TypeError",
        says=["key"],
        underlined="random.normal((3,))",
        fix="random.key(",
        in_message=False,
        right="""
        random.normal(random.key(0), (3,))
        """,
    ),
    WrongProgram(
        "several_keys_at_once",
        """
        keys = random.split(random.key(0), 3)
        random.normal(keys)
        """,
        error="ValueError",
        says=["normal", "single key", "(3,)"],
        underlined="random.normal(keys)",
        fix="vmap",
        in_message=False,
        right="""
        keys = random.split(random.key(0), 3)
        xtrace.vmap(random.normal)(keys)
        """,
    ),
    WrongProgram(
        "key_used_twice",
        """
        with xtrace.debug_key_reuse(True):
            key = random.key(0)
            x = random.normal(key)
            y = random.uniform(key)
        """,
        error="KeyReuseError",
        says=["key"],
        underlined="random.uniform(key)",
        fix="split",
        in_message=False,
        right="""
        with xtrace.debug_key_reuse(True):
            key, other = random.split(random.key(0))
            x = random.normal(key)
            y = random.uniform(other)
        """,
    ),
    WrongProgram(
        "key_used_twice_in_a_jitted_function",
        """
        @xtrace.jit
        def noise(key):
            return random.normal(key) + random.normal(key)

        with xtrace.debug_key_reuse(True):
            noise(random.key(0))
        """,
        error="KeyReuseError",
        says=["key", "noise"],
        underlined="noise(random.key(0))",
        fix="split",
        in_message=False,
        right="""
        @xtrace.jit
        def noise(key):
            first, second = random.split(key)
            return random.normal(first) + random.normal(second)

        with xtrace.debug_key_reuse(True):
            noise(random.key(0))
        """,
    ),
    WrongProgram(
        "arithmetic_with_a_key",
        """
        key = random.key(0)
        random.normal(key + 1)
        """,
        error="ExtendedPromotionError",
        says=["key<fry>"],
        underlined="key + 1",
        fix="fold_in(key, n)",
        in_message=False,
        right="""
        key = random.key(0)
        random.normal(random.fold_in(key, 1))
        """,
    ),
    WrongProgram(
        "choice_of_more_than_there_are",
        """
        random.choice(random.key(0), jnp.arange(3), (4,), replace=False)
        """,
        error="ValueError",
        says=["choice", "larger", "3"],
        underlined="random.choice(random.key(0), jnp.arange(3), (4,), replace=False)",
        fix="replace",
        in_message=False,
        right="""
        random.choice(random.key(0), jnp.arange(3), (4,), replace=True)
        """,
    ),
    WrongProgram(
        "shape_that_does_not_hold_the_parameters",
        """
        random.poisson(random.key(0), jnp.ones(3), (2,))
        """,
        error="ValueError",
        says=["poisson", "(2,)", "(3,)"],
        underlined="random.poisson(random.key(0), jnp.ones(3), (2,))",
        fix="lam (3,), shape (2,)",
        in_message=False,
        right="""
        random.poisson(random.key(0), jnp.ones(3), (2, 3))
        """,
    ),
    WrongProgram(
        "integers_of_a_float_dtype",
        """
        random.randint(random.key(0), (3,), 0, 10, dtype=float)
        """,
        error="TypeError",
        says=["randint", "float32"],
        underlined="random.randint(random.key(0), (3,), 0, 10, dtype=float)",
        fix="must be an int dtype",
        in_message=False,
        right="""
        random.randint(random.key(0), (3,), 0, 10, dtype=int)
        """,
    ),
    WrongProgram(
        "seed_that_is_a_float",
        """
        random.key(0.5)
        """,
        error="TypeError",
        says=["integer", "float"],
        underlined="random.key(0.5)",
        fix="integer",
        in_message=False,
        right="""
        random.key(5)
        """,
    ),
]
