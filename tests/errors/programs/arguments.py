"""Arguments: what jitted functions are called with"""

from tests.errors.wrong_program import WrongProgram

PROGRAMS = [
    WrongProgram(
        "string_argument",
        """
        @xtrace.jit
        def activate(x, kind):
            return jnp.tanh(x) if kind == "tanh" else x

        activate(1.0, "tanh")
        """,
        error="TypeError",
        says=["kind", "str", "tanh", "not a valid JAX type"],
        underlined='activate(1.0, "tanh")',
        fix='static_argnames=["kind"]',
        in_message=False,
        right="""
        def activate(x, kind):
            return jnp.tanh(x) if kind == "tanh" else x

        xtrace.jit(activate, static_argnames=["kind"])(1.0, "tanh")
        """,
    ),
    WrongProgram(
        "object_argument",
        """
        class Model:
            scale = 2.0

        @xtrace.jit
        def apply(model, x):
            return model.scale * x

        apply(Model(), 1.0)
        """,
        error="TypeError",
        says=["model", "Model", "not a valid JAX type"],
        underlined="apply(Model(), 1.0)",
        fix="register_pytree_node",
        in_message=False,
        right="""
        class Model:
            scale = 2.0

        xtrace.tree_util.register_pytree_node(Model, lambda model: ((), None), lambda _, children: Model())

        @xtrace.jit
        def apply(model, x):
            return model.scale * x

        apply(Model(), 1.0)
        """,
    ),
    WrongProgram(
        "function_argument",
        """
        @xtrace.jit
        def twice(f, x):
            return f(f(x))

        twice(jnp.sin, 1.0)
        """,
        error="TypeError",
        says=["argument f", "function", "not a valid JAX type"],
        underlined="twice(jnp.sin, 1.0)",
        fix='static_argnames=["f"]',
        in_message=False,
        right="""
        def twice(f, x):
            return f(f(x))

        xtrace.jit(twice, static_argnames=["f"])(jnp.sin, 1.0)
        """,
    ),
    WrongProgram(
        "string_in_a_dictionary",
        """
        @xtrace.jit
        def step(state):
            return {**state, "x": state["x"] + 1}

        step({"x": 1.0, "name": "run 1"})
        """,
        error="TypeError",
        says=["state['name']", "str", "not a valid JAX type"],
        underlined='step({"x": 1.0, "name": "run 1"})',
        fix="pass it on its own, marked as static",
        in_message=False,
        right="""
        @xtrace.jit
        def step(state):
            return {**state, "x": state["x"] + 1}

        step({"x": 1.0})
        """,
    ),
    WrongProgram(
        "method_of_an_object",
        """
        class Model:
            def __init__(self):
                self.scale = 2.0

            @xtrace.jit
            def apply(self, x):
                return self.scale * x

        Model().apply(1.0)
        """,
        error="TypeError",
        says=["self", "Model", "not a valid JAX type"],
        underlined="Model().apply(1.0)",
        fix='static_argnames=["self"]',
        in_message=False,
        right="""
        import functools

        class Model:
            def __init__(self):
                self.scale = 2.0

            @functools.partial(xtrace.jit, static_argnames=["self"])
            def apply(self, x):
                return self.scale * x

        Model().apply(1.0)
        """,
    ),
    WrongProgram(
        "unhashable_static_argument",
        """
        def scaled(x, factors):
            return x * factors[0]

        xtrace.jit(scaled, static_argnames=["factors"])(1.0, factors=[2, 3])
        """,
        error="ValueError",
        says=["factors", "list", "hash"],
        underlined='xtrace.jit(scaled, static_argnames=["factors"])(1.0, factors=[2, 3])',
        fix="tuple",
        in_message=False,
        right="""
        def scaled(x, factors):
            return x * factors[0]

        xtrace.jit(scaled, static_argnames=["factors"])(1.0, factors=(2, 3))
        """,
    ),
    WrongProgram(
        "array_as_a_static_argument",
        """
        def scaled(x, factors):
            return x * factors

        xtrace.jit(scaled, static_argnums=1)(1.0, jnp.ones(3))
        """,
        error="ValueError",
        says=["Static argument 1 of scaled", "hash"],
        underlined="xtrace.jit(scaled, static_argnums=1)(1.0, jnp.ones(3))",
        fix="do not mark it static, as arrays never are",
        in_message=False,
        right="""
        def scaled(x, factors):
            return x * factors

        xtrace.jit(scaled)(1.0, jnp.ones(3))
        """,
    ),
    WrongProgram(
        "static_name_that_is_not_there",
        """
        def power(x, exponent):
            return x ** exponent

        xtrace.jit(power, static_argnames=["exponnt"])
        """,
        error="ValueError",
        says=["power", "exponnt", "static_argnames"],
        underlined='xtrace.jit(power, static_argnames=["exponnt"])',
        fix="exponent",
        in_message=False,
        right="""
        def power(x, exponent):
            return x ** exponent

        xtrace.jit(power, static_argnames=["exponent"])(2.0, 3)
        """,
    ),
    WrongProgram(
        "static_number_out_of_range",
        """
        def power(x, exponent):
            return x ** exponent

        xtrace.jit(power, static_argnums=2)
        """,
        error="ValueError",
        says=["power", "static_argnums", "2"],
        underlined="xtrace.jit(power, static_argnums=2)",
        fix="only accepts 2 positional arguments: power(x, exponent)",
        in_message=False,
        right="""
        def power(x, exponent):
            return x ** exponent

        xtrace.jit(power, static_argnums=1)(2.0, 3)
        """,
    ),
    WrongProgram(
        "result_of_a_call_jitted",
        """
        def power(x):
            return x ** 2

        xtrace.jit(power(2.0))
        """,
        error="TypeError",
        says=["float"],
        underlined="xtrace.jit(power(2.0))",
        fix="callable",
        in_message=False,
        right="""
        def power(x):
            return x ** 2

        xtrace.jit(power)(2.0)
        """,
    ),
    WrongProgram(
        "argument_missing",
        """
        @xtrace.jit
        def line(x, slope, offset):
            return slope * x + offset

        line(1.0, 2.0)
        """,
        error="TypeError",
        says=["line() missing 1 required positional argument"],
        underlined="line(1.0, 2.0)",
        fix="'offset'",
        in_message=False,
        right="""
        @xtrace.jit
        def line(x, slope, offset):
            return slope * x + offset

        line(1.0, 2.0, 3.0)
        """,
    ),
    WrongProgram(
        "one_argument_too_many",
        """
        @xtrace.jit
        def double(x):
            return 2 * x

        double(1.0, 2.0)
        """,
        error="TypeError",
        says=["double() takes 1 positional argument but 2 were given"],
        underlined="double(1.0, 2.0)",
        fix="takes 1 positional argument",
        in_message=False,
        right="""
        @xtrace.jit
        def double(x):
            return 2 * x

        double(1.0)
        """,
    ),
    WrongProgram(
        "ragged_list",
        """
        jnp.array([[1, 2], [3]])
        """,
        error="ValueError",
        says=["inhomogeneous", "shape"],
        underlined="jnp.array([[1, 2], [3]])",
        fix="all rows of one length",
        in_message=False,
        right="""
        jnp.array([[1, 2], [3, 0]])
        """,
    ),
    WrongProgram(
        "list_given_to_a_function_of_arrays",
        """
        print(jnp.sum([1, 2, 3]))
        """,
        error="TypeError",
        says=["sum", "list"],
        underlined="jnp.sum([1, 2, 3])",
        fix="make an array of it with xtrace.numpy.array",
        in_message=False,
        right="""
        print(jnp.sum(jnp.array([1, 2, 3])))
        """,
    ),
    WrongProgram(
        "none_in_arithmetic",
        """
        @xtrace.jit
        def add(x, bias=None):
            return x + bias

        add(1.0)
        """,
        error="TypeError",
        says=["unsupported operand type(s) for +"],
        underlined="x + bias",
        fix="'NoneType'",
        in_message=False,
        right="""
        @xtrace.jit
        def add(x, bias=None):
            return x if bias is None else x + bias

        add(1.0)
        """,
    ),
    WrongProgram(
        "donated_array_used_again",
        """
        @xtrace.jit
        def step(x):
            return x + 1

        donating = xtrace.jit(step, donate_argnums=0)
        x = jnp.ones(3)
        y = donating(x)
        print(x + y)
        """,
        error="RuntimeError",
        says=["Array has been deleted", "float32[3]", "donat"],
        jax="RuntimeError or ValueError",
        why="jax's dispatch in C++ raises the latter, once the operation has been compiled for other arrays",
        underlined="x + y",
        fix="keep a copy (x.copy())",
        in_message=False,
        right="""
        donating = xtrace.jit(lambda x: x + 1, donate_argnums=0)
        x = jnp.ones(3)
        x = donating(x)
        print(x)
        """,
    ),
    WrongProgram(
        "string_result",
        """
        @xtrace.jit
        def describe(x):
            return {"value": x, "unit": "m"}

        describe(1.0)
        """,
        error="TypeError",
        says=["describe", "str", "'unit'"],
        underlined="describe(1.0)",
        fix="return arrays or numbers, or None for nothing",
        in_message=False,
        right="""
        @xtrace.jit
        def measure(x):
            return {"value": x}

        {**measure(1.0), "unit": "m"}
        """,
    ),
    WrongProgram(
        "generator_function",
        """
        @xtrace.jit
        def steps(x):
            for i in range(3):
                yield x + i

        list(steps(1.0))
        """,
        error="TypeError",
        says=["generator"],
        underlined="xtrace.jit",
        fix="return the values in a list",
        in_message=False,
        right="""
        @xtrace.jit
        def steps(x):
            return [x + i for i in range(3)]

        steps(1.0)
        """,
    ),
    WrongProgram(
        "other_structure_for_a_compiled_function",
        """
        compiled = xtrace.jit(lambda x: x + 1).lower(jnp.ones(3)).compile()
        compiled(jnp.ones(4))
        """,
        error="TypeError",
        says=["float32[3]", "float32[4]"],
        underlined="compiled(jnp.ones(4))",
        fix="compiled",
        in_message=False,
        right="""
        compiled = xtrace.jit(lambda x: x + 1).lower(jnp.ones(3)).compile()
        compiled(jnp.zeros(3))
        """,
    ),
]
