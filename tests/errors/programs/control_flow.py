"""Control flow: branches and loops of lax"""

from tests.errors.wrong_program import WrongProgram

PROGRAMS = [
    WrongProgram(
        "branches_of_different_dtypes",
        """
        lax.cond(True, lambda x: x, lambda x: x.astype(int), jnp.ones(3))
        """,
        error="TypeError",
        says=["cond", "float32[3]", "int32[3]", "the dtypes do not match", "branches_of_different_dtypes.py:6"],
        underlined="lax.cond(True, lambda x: x, lambda x: x.astype(int), jnp.ones(3))",
        fix="Revise true_fun and/or false_fun so that all output types match",
        in_message=False,
        right="""
        lax.cond(True, lambda x: x, lambda x: x.astype(int).astype(x.dtype), jnp.ones(3))
        """,
    ),
    WrongProgram(
        "branches_of_different_shapes",
        """
        lax.cond(True, lambda x: x, lambda x: x.sum(), jnp.ones(3))
        """,
        error="TypeError",
        says=["cond", "float32[3]", "float32[]", "the shapes do not match", "branches_of_different_shapes.py:6"],
        underlined="lax.cond(True, lambda x: x, lambda x: x.sum(), jnp.ones(3))",
        fix="Revise true_fun and/or false_fun so that all output types match",
        in_message=False,
        right="""
        lax.cond(True, lambda x: x, lambda x: jnp.full_like(x, x.sum()), jnp.ones(3))
        """,
    ),
    WrongProgram(
        "branches_of_different_structures",
        """
        lax.cond(True, lambda x: (x, x), lambda x: x, 1.0)
        """,
        error="TypeError",
        says=["cond", "tuple"],
        underlined="lax.cond(True, lambda x: (x, x), lambda x: x, 1.0)",
        fix="Revise true_fun and/or false_fun so that they have the same pytree structure",
        in_message=False,
        right="""
        lax.cond(True, lambda x: (x, x), lambda x: (x, 0.0), 1.0)
        """,
    ),
    WrongProgram(
        "predicate_that_is_an_array",
        """
        x = jnp.arange(3)
        lax.cond(x > 1, lambda: 1, lambda: 0)
        """,
        error="TypeError",
        says=["cond", "scalar", "shape (3,)"],
        underlined="lax.cond(x > 1, lambda: 1, lambda: 0)",
        fix="xtrace.numpy.where",
        in_message=False,
        right="""
        x = jnp.arange(3)
        jnp.where(x > 1, 1, 0)
        """,
    ),
    WrongProgram(
        "map_of_a_function_of_two_arguments",
        """
        lax.map(lambda x, y: x * y, (jnp.ones(2), jnp.ones(2)))
        """,
        error="TypeError",
        says=["missing 1 required positional argument: 'y'"],
        underlined="lax.map(lambda x, y: x * y, (jnp.ones(2), jnp.ones(2)))",
        fix="map calls its function with one argument, a row of xs",
        in_message=False,
        right="""
        lax.map(lambda pair: pair[0] * pair[1], (jnp.ones(2), jnp.ones(2)))
        """,
    ),
    WrongProgram(
        "body_of_a_loop_that_takes_the_value_only",
        """
        lax.fori_loop(0, 3, lambda x: 2 * x, 1.0)
        """,
        error="TypeError",
        says=["takes 1 positional argument but 2 were given"],
        underlined="lax.fori_loop(0, 3, lambda x: 2 * x, 1.0)",
        fix="fori_loop calls body_fun with the number of the step and the value",
        in_message=False,
        right="""
        lax.fori_loop(0, 3, lambda i, x: 2 * x, 1.0)
        """,
    ),
    WrongProgram(
        "operands_missing_in_a_branch",
        """
        lax.cond(True, lambda x: x, lambda: 0.0, 1.0)
        """,
        error="TypeError",
        says=["takes 0 positional arguments but 1 was given"],
        underlined="lax.cond(True, lambda x: x, lambda: 0.0, 1.0)",
        fix="cond calls each of its functions with the operands",
        in_message=False,
        right="""
        lax.cond(True, lambda x: x, lambda x: 0.0, 1.0)
        """,
    ),
    WrongProgram(
        "values_in_place_of_branches",
        """
        lax.cond(True, 1.0, 2.0)
        """,
        error="TypeError",
        says=["cond", "callable"],
        underlined="lax.cond(True, 1.0, 2.0)",
        fix="true_fun and false_fun must be callable",
        in_message=False,
        right="""
        jnp.where(True, 1.0, 2.0)
        """,
    ),
    WrongProgram(
        "switch_by_a_float",
        """
        lax.switch(1.0, [jnp.sin, jnp.cos], 2.0)
        """,
        error="TypeError",
        says=["switch", "integer", "float"],
        underlined="lax.switch(1.0, [jnp.sin, jnp.cos], 2.0)",
        fix="Index type must be an integer",
        in_message=False,
        right="""
        lax.switch(1, [jnp.sin, jnp.cos], 2.0)
        """,
    ),
    WrongProgram(
        "switch_without_branches",
        """
        lax.switch(0, [])
        """,
        error="ValueError",
        says=["switch", "branch"],
        underlined="lax.switch(0, [])",
        fix="at least one",
        in_message=False,
        right="""
        lax.switch(0, [lambda: 0])
        """,
    ),
    WrongProgram(
        "carry_becomes_a_float",
        """
        def step(total, x):
            return total + x, None

        lax.scan(step, jnp.zeros((), int), jnp.ones(3))
        """,
        error="TypeError",
        says=["scan", "carry", "int32[]", "float32[]"],
        underlined="lax.scan(step, jnp.zeros((), int), jnp.ones(3))",
        fix="convert a dtype with astype",
        in_message=False,
        right="""
        def step(total, x):
            return total + x, None

        lax.scan(step, jnp.zeros(()), jnp.ones(3))
        """,
    ),
    WrongProgram(
        "carry_grows",
        """
        def step(seen, x):
            return jnp.append(seen, x), None

        lax.scan(step, jnp.zeros(1), jnp.ones(3))
        """,
        error="TypeError",
        says=["scan", "carry", "float32[1]", "float32[2]"],
        underlined="lax.scan(step, jnp.zeros(1), jnp.ones(3))",
        fix="Revise the function so that all output types match the corresponding input types",
        in_message=False,
        right="""
        def step(seen, x):
            return seen, x

        lax.scan(step, jnp.zeros(1), jnp.ones(3))
        """,
    ),
    WrongProgram(
        "carry_with_another_structure",
        """
        def step(state, x):
            return {"total": state["total"] + x, "last": x}, None

        lax.scan(step, {"total": 0.0}, jnp.ones(3))
        """,
        error="TypeError",
        says=["scan", "carry", "last"],
        underlined='lax.scan(step, {"total": 0.0}, jnp.ones(3))',
        fix="has the structure of the carry input state",
        in_message=False,
        right="""
        def step(state, x):
            return {"total": state["total"] + x, "last": x}, None

        lax.scan(step, {"total": 0.0, "last": 0.0}, jnp.ones(3))
        """,
    ),
    WrongProgram(
        "body_of_a_scan_returns_one_value",
        """
        def step(total, x):
            return total + x

        lax.scan(step, 0.0, jnp.ones(3))
        """,
        error="TypeError",
        says=["scan", "pair"],
        underlined="lax.scan(step, 0.0, jnp.ones(3))",
        fix="(carry, ",
        in_message=False,
        right="""
        def step(total, x):
            return total + x, None

        lax.scan(step, 0.0, jnp.ones(3))
        """,
    ),
    WrongProgram(
        "sequences_of_different_lengths",
        """
        lax.scan(lambda c, xs: (c, xs[0] + xs[1]), 0.0, (jnp.ones(3), jnp.ones(4)))
        """,
        error="ValueError",
        says=["scan", "3", "4"],
        underlined="lax.scan(lambda c, xs: (c, xs[0] + xs[1]), 0.0, (jnp.ones(3), jnp.ones(4)))",
        fix="Cut or pad them to one length",
        in_message=False,
        right="""
        lax.scan(lambda c, xs: (c, xs[0] + xs[1]), 0.0, (jnp.ones(3), jnp.ones(3)))
        """,
    ),
    WrongProgram(
        "scan_over_a_range",
        """
        lax.scan(lambda c, i: (c + i, None), 0, range(3))
        """,
        error="TypeError",
        says=["scan", "range"],
        underlined="lax.scan(lambda c, i: (c + i, None), 0, range(3))",
        fix="xtrace.numpy.arange",
        in_message=False,
        right="""
        lax.scan(lambda c, i: (c + i, None), 0, jnp.arange(3))
        """,
    ),
    WrongProgram(
        "scan_without_a_length",
        """
        lax.scan(lambda c, _: (c + 1, None), 0)
        """,
        error="ValueError",
        says=["scan", "length"],
        underlined="lax.scan(lambda c, _: (c + 1, None), 0)",
        fix="length=",
        in_message=False,
        right="""
        lax.scan(lambda c, _: (c + 1, None), 0, length=3)
        """,
    ),
    WrongProgram(
        "condition_of_a_loop_is_an_array",
        """
        lax.while_loop(lambda x: x < 3, lambda x: x + 1, jnp.zeros(2))
        """,
        error="TypeError",
        says=["while_loop", "bool[2]"],
        underlined="lax.while_loop(lambda x: x < 3, lambda x: x + 1, jnp.zeros(2))",
        fix="Reduce it with any() or all()",
        in_message=False,
        right="""
        lax.while_loop(lambda x: jnp.all(x < 3), lambda x: x + 1, jnp.zeros(2))
        """,
    ),
    WrongProgram(
        "loop_body_changes_the_dtype",
        """
        lax.while_loop(lambda x: x < 3, lambda x: x + 0.5, jnp.zeros((), int))
        """,
        error="TypeError",
        says=["while_loop", "int32[]", "float32[]"],
        underlined="lax.while_loop(lambda x: x < 3, lambda x: x + 0.5, jnp.zeros((), int))",
        fix="convert a dtype with astype",
        in_message=False,
        right="""
        lax.while_loop(lambda x: x < 3, lambda x: x + 0.5, 0.0)
        """,
    ),
    WrongProgram(
        "loop_body_with_one_parameter",
        """
        lax.fori_loop(0, 3, lambda x: x + 1, 0)
        """,
        error="TypeError",
        says=["takes 1 positional argument but 2 were given"],
        underlined="lax.fori_loop(0, 3, lambda x: x + 1, 0)",
        fix="takes 1 positional argument",
        in_message=False,
        right="""
        lax.fori_loop(0, 3, lambda i, x: x + 1, 0)
        """,
    ),
    WrongProgram(
        "loop_with_a_float_bound",
        """
        lax.fori_loop(0, 3.0, lambda i, x: x + i, 0)
        """,
        error="TypeError",
        says=["fori_loop", "int32 and float32"],
        underlined="lax.fori_loop(0, 3.0, lambda i, x: x + i, 0)",
        fix="give both as integers",
        in_message=False,
        right="""
        lax.fori_loop(0, 3, lambda i, x: x + i, 0)
        """,
    ),
    WrongProgram(
        "gradient_of_a_while_loop",
        """
        def f(x):
            return lax.while_loop(lambda s: s < 10, lambda s: s * 2, x)

        xtrace.grad(f)(1.0)
        """,
        error="ValueError",
        says=["Reverse-mode differentiation", "while_loop", "gradient_of_a_while_loop.py:7"],
        underlined="xtrace.grad(f)(1.0)",
        fix="Try using lax.scan",
        in_message=False,
        right="""
        def f(x):
            return lax.fori_loop(0, 4, lambda i, s: jnp.where(s < 10, s * 2, s), x)

        xtrace.grad(f)(1.0)
        """,
    ),
    WrongProgram(
        "gradient_of_a_loop_with_a_traced_bound",
        """
        def f(x, n):
            return lax.fori_loop(0, n, lambda i, s: s * 2, x)

        xtrace.jit(xtrace.grad(f))(1.0, 3)
        """,
        error="ValueError",
        says=["Reverse-mode differentiation", "fori_loop"],
        underlined="xtrace.jit(xtrace.grad(f))(1.0, 3)",
        fix="using fori_loop with static start/stop",
        in_message=False,
        right="""
        def f(x, n):
            return lax.fori_loop(0, n, lambda i, s: s * 2, x)

        xtrace.jit(xtrace.grad(f), static_argnums=1)(1.0, 3)
        """,
    ),
    WrongProgram(
        "map_over_a_list_of_shapes",
        """
        lax.map(lambda x: x.sum(), [jnp.ones(3), jnp.ones(2)])
        """,
        error="ValueError",
        says=["3", "2"],
        underlined="lax.map(lambda x: x.sum(), [jnp.ones(3), jnp.ones(2)])",
        fix="Cut or pad them to one length",
        in_message=False,
        right="""
        [x.sum() for x in [jnp.ones(3), jnp.ones(2)]]
        """,
    ),
]
