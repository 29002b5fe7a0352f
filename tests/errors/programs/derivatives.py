"""Derivatives: grad, jvp, vjp and custom rules"""

from tests.errors.wrong_program import WrongProgram

PROGRAMS = [
    WrongProgram(
        "gradient_at_an_integer",
        """
        xtrace.grad(lambda x: x ** 2)(3)
        """,
        error="TypeError",
        says=["grad requires real- or complex-valued inputs", "i32[]"],
        underlined="xtrace.grad(lambda x: x ** 2)(3)",
        fix="write the number with a point, 2.0",
        in_message=False,
        right="""
        xtrace.grad(lambda x: x ** 2)(3.0)
        """,
    ),
    WrongProgram(
        "gradient_with_respect_to_integers_among_parameters",
        """
        def loss(params):
            return params["w"] * params["step"]

        xtrace.grad(loss)({"w": 1.0, "step": 3})
        """,
        error="TypeError",
        says=["grad requires real- or complex-valued inputs", "i32[]", "params['step']"],
        underlined='xtrace.grad(loss)({"w": 1.0, "step": 3})',
        fix="allow_int",
        in_message=False,
        right="""
        def loss(params, step):
            return params["w"] * step

        xtrace.grad(loss)({"w": 1.0}, 3)
        """,
    ),
    WrongProgram(
        "gradient_of_a_vector",
        """
        def squares(x):
            return x ** 2

        xtrace.grad(squares)(jnp.arange(3.0))
        """,
        error="TypeError",
        says=["Gradient only defined for scalar-output functions", "(3,)"],
        underlined="xtrace.grad(squares)(jnp.arange(3.0))",
        fix="jacrev",
        in_message=False,
        right="""
        def squares(x):
            return x ** 2

        xtrace.jacrev(squares)(jnp.arange(3.0))
        """,
    ),
    WrongProgram(
        "gradient_of_two_results",
        """
        def loss(x):
            return x ** 2, x

        xtrace.grad(loss)(1.0)
        """,
        error="TypeError",
        says=["Gradient only defined for scalar-output functions", "('f32[]', 'f32[]')"],
        underlined="xtrace.grad(loss)(1.0)",
        fix="with has_aux=True",
        in_message=False,
        right="""
        def loss(x):
            return x ** 2, x

        xtrace.grad(loss, has_aux=True)(1.0)
        """,
    ),
    WrongProgram(
        "auxiliary_data_that_is_not_returned",
        """
        xtrace.value_and_grad(lambda x: x ** 2, has_aux=True)(1.0)
        """,
        error="TypeError",
        says=["has_aux", "it returned a single array"],
        underlined="xtrace.value_and_grad(lambda x: x ** 2, has_aux=True)(1.0)",
        fix="must return a pair (result, auxiliary data)",
        in_message=False,
        right="""
        xtrace.value_and_grad(lambda x: (x ** 2, x), has_aux=True)(1.0)
        """,
    ),
    WrongProgram(
        "gradient_of_a_boolean",
        """
        xtrace.grad(lambda x: x > 0)(1.0)
        """,
        error="TypeError",
        says=["grad requires real-valued outputs", "bool"],
        underlined="xtrace.grad(lambda x: x > 0)(1.0)",
        fix="return a float, such as where(condition, x, y)",
        in_message=False,
        right="""
        xtrace.grad(lambda x: jnp.where(x > 0, x, 0.0))(1.0)
        """,
    ),
    WrongProgram(
        "gradient_of_nothing",
        """
        def loss(x):
            x ** 2

        xtrace.grad(loss)(1.0)
        """,
        error="TypeError",
        says=["Gradient only defined for scalar-output functions", "None"],
        underlined="xtrace.grad(loss)(1.0)",
        fix="Return one number",
        in_message=False,
        right="""
        def loss(x):
            return x ** 2

        xtrace.grad(loss)(1.0)
        """,
    ),
    WrongProgram(
        "complex_loss",
        """
        xtrace.grad(lambda z: z * (1 + 2j))(1.0)
        """,
        error="TypeError",
        says=["grad requires real-valued outputs", "complex64"],
        underlined="xtrace.grad(lambda z: z * (1 + 2j))(1.0)",
        fix="Return its real part or abs of it",
        in_message=False,
        right="""
        xtrace.grad(lambda z: jnp.abs(z * (1 + 2j)))(1.0)
        """,
    ),
    WrongProgram(
        "argument_number_out_of_range",
        """
        def loss(w, x):
            return w * x

        xtrace.grad(loss, argnums=2)(1.0, 2.0)
        """,
        error="TypeError",
        says=["argnums", "2"],
        underlined="xtrace.grad(loss, argnums=2)(1.0, 2.0)",
        fix="requires at least 3 positional arguments",
        in_message=False,
        right="""
        def loss(w, x):
            return w * x

        xtrace.grad(loss, argnums=1)(1.0, 2.0)
        """,
    ),
    WrongProgram(
        "argument_given_by_keyword",
        """
        def loss(w, x):
            return w * x

        xtrace.grad(loss)(w=1.0, x=2.0)
        """,
        error="TypeError",
        says=["argnums", "0"],
        underlined="xtrace.grad(loss)(w=1.0, x=2.0)",
        fix="requires at least 1 positional arguments",
        in_message=False,
        right="""
        def loss(w, x):
            return w * x

        xtrace.grad(loss)(1.0, x=2.0)
        """,
    ),
    WrongProgram(
        "tangent_of_another_dtype",
        """
        xtrace.jvp(jnp.sin, (1.0,), (1,))
        """,
        error="TypeError",
        says=["jvp", "argument x of sin", "got i32[]"],
        underlined="xtrace.jvp(jnp.sin, (1.0,), (1,))",
        fix="must be f32[]",
        in_message=False,
        right="""
        xtrace.jvp(jnp.sin, (1.0,), (1.0,))
        """,
    ),
    WrongProgram(
        "tangent_of_another_shape",
        """
        xtrace.jvp(jnp.sin, (jnp.ones(3),), (jnp.ones(2),))
        """,
        error="ValueError",
        says=["jvp", "argument x of sin", "got f32[2]"],
        underlined="xtrace.jvp(jnp.sin, (jnp.ones(3),), (jnp.ones(2),))",
        fix="must be f32[3]",
        in_message=False,
        right="""
        xtrace.jvp(jnp.sin, (jnp.ones(3),), (jnp.ones(3),))
        """,
    ),
    WrongProgram(
        "primals_that_are_no_tuple",
        """
        xtrace.jvp(jnp.sin, 1.0, 1.0)
        """,
        error="TypeError",
        says=["jvp", "tuple"],
        underlined="xtrace.jvp(jnp.sin, 1.0, 1.0)",
        fix="tuples or lists",
        in_message=False,
        right="""
        xtrace.jvp(jnp.sin, (1.0,), (1.0,))
        """,
    ),
    WrongProgram(
        "cotangent_of_another_structure",
        """
        y, pull_back = xtrace.vjp(lambda x: (x, 2 * x), 1.0)
        pull_back(1.0)
        """,
        error="ValueError",
        says=["vjp", "got PyTreeDef(*)"],
        underlined="pull_back(1.0)",
        fix="must have the structure of the result of <lambda>, PyTreeDef((*, *))",
        in_message=False,
        right="""
        y, pull_back = xtrace.vjp(lambda x: (x, 2 * x), 1.0)
        pull_back((1.0, 1.0))
        """,
    ),
    WrongProgram(
        "cotangent_of_another_shape",
        """
        y, pull_back = xtrace.vjp(jnp.sin, jnp.ones(3))
        pull_back(jnp.ones(2))
        """,
        error="ValueError",
        says=["vjp", "got f32[2]"],
        underlined="pull_back(jnp.ones(2))",
        fix="must have the type of the result of sin, f32[3]",
        in_message=False,
        right="""
        y, pull_back = xtrace.vjp(jnp.sin, jnp.ones(3))
        pull_back(jnp.ones(3))
        """,
    ),
    WrongProgram(
        "custom_vjp_without_rules",
        """
        @xtrace.custom_vjp
        def f(x):
            return x ** 2

        xtrace.grad(f)(1.0)
        """,
        error="AttributeError",
        says=["No VJP defined for custom_vjp function f", "defvjp"],
        underlined="xtrace.grad(f)(1.0)",
        fix="defvjp",
        in_message=False,
        right="""
        @xtrace.custom_vjp
        def f(x):
            return x ** 2

        f.defvjp(lambda x: (f(x), x), lambda x, g: (2 * x * g,))
        xtrace.grad(f)(1.0)
        """,
    ),
    WrongProgram(
        "backward_rule_without_a_tuple",
        """
        @xtrace.custom_vjp
        def f(x):
            return x ** 2

        def backward(x, g):
            return 2 * x * g

        f.defvjp(lambda x: (f(x), x), backward)
        xtrace.grad(f)(1.0)
        """,
        error="TypeError",
        says=["backward", "tuple", "f"],
        underlined="xtrace.grad(f)(1.0)",
        fix="tuple",
        in_message=False,
        right="""
        @xtrace.custom_vjp
        def f(x):
            return x ** 2

        def backward(x, g):
            return (2 * x * g,)

        f.defvjp(lambda x: (f(x), x), backward)
        xtrace.grad(f)(1.0)
        """,
    ),
    WrongProgram(
        "backward_rule_with_one_result_too_many",
        """
        @xtrace.custom_vjp
        def f(x, y):
            return x * y

        f.defvjp(lambda x, y: (x * y, (x, y)), lambda kept, g: (g, g, g))
        xtrace.grad(f)(1.0, 2.0)
        """,
        error="TypeError",
        says=["Custom VJP bwd rule <lambda> of f", "PyTreeDef((*, *, *))", "PyTreeDef((*, *))"],
        underlined="xtrace.grad(f)(1.0, 2.0)",
        fix="must produce a tuple of length equal to the number of arguments to the primal function",
        in_message=False,
        right="""
        @xtrace.custom_vjp
        def f(x, y):
            return x * y

        f.defvjp(lambda x, y: (x * y, (x, y)), lambda kept, g: (kept[1] * g, kept[0] * g))
        xtrace.grad(f)(1.0, 2.0)
        """,
    ),
    WrongProgram(
        "backward_rule_with_another_shape",
        """
        @xtrace.custom_vjp
        def total(x):
            return x.sum()

        total.defvjp(lambda x: (x.sum(), None), lambda _, g: (g,))
        xtrace.grad(total)(jnp.ones(3))
        """,
        error="ValueError",
        says=["Custom VJP bwd rule <lambda> of total", "the shapes do not match"],
        underlined="xtrace.grad(total)(jnp.ones(3))",
        fix="an output of type f32[] corresponding to an input of type f32[3]",
        in_message=False,
        right="""
        @xtrace.custom_vjp
        def total(x):
            return x.sum()

        total.defvjp(lambda x: (x.sum(), x), lambda x, g: (jnp.full_like(x, g),))
        xtrace.grad(total)(jnp.ones(3))
        """,
    ),
    WrongProgram(
        "forward_rule_without_a_pair",
        """
        @xtrace.custom_vjp
        def f(x):
            return x ** 2

        f.defvjp(lambda x: x ** 2, lambda x, g: (2 * x * g,))
        xtrace.grad(f)(1.0)
        """,
        error="TypeError",
        says=["forward", "pair", "f"],
        underlined="xtrace.grad(f)(1.0)",
        fix="pair",
        in_message=False,
        right="""
        @xtrace.custom_vjp
        def f(x):
            return x ** 2

        f.defvjp(lambda x: (x ** 2, x), lambda x, g: (2 * x * g,))
        xtrace.grad(f)(1.0)
        """,
    ),
    WrongProgram(
        "jvp_rule_without_a_pair",
        """
        @xtrace.custom_jvp
        def f(x):
            return x ** 2

        f.defjvp(lambda primals, tangents: 2 * primals[0] * tangents[0])
        xtrace.grad(f)(1.0)
        """,
        error="TypeError",
        says=["Custom JVP rule <lambda> for function f"],
        underlined="xtrace.grad(f)(1.0)",
        fix="must produce a pair",
        in_message=False,
        right="""
        @xtrace.custom_jvp
        def f(x):
            return x ** 2

        f.defjvp(lambda primals, tangents: (f(*primals), 2 * primals[0] * tangents[0]))
        xtrace.grad(f)(1.0)
        """,
    ),
    WrongProgram(
        "forward_mode_of_a_custom_vjp",
        """
        @xtrace.custom_vjp
        def f(x):
            return x ** 2

        f.defvjp(lambda x: (x ** 2, x), lambda x, g: (2 * x * g,))
        xtrace.jacfwd(f)(1.0)
        """,
        error="TypeError",
        says=["custom_vjp", "forward"],
        underlined="xtrace.jacfwd(f)(1.0)",
        fix="custom_jvp",
        in_message=False,
        right="""
        @xtrace.custom_jvp
        def f(x):
            return x ** 2

        f.defjvp(lambda primals, tangents: (f(*primals), 2 * primals[0] * tangents[0]))
        xtrace.jacfwd(f)(1.0)
        """,
    ),
    WrongProgram(
        "gradient_through_a_callback",
        """
        def outside(x):
            return xtrace.pure_callback(np.sin, xtrace.ShapeDtypeStruct((), np.float32), x)

        xtrace.grad(outside)(1.0)
        """,
        error="ValueError",
        says=["callback", "custom_jvp"],
        underlined="xtrace.pure_callback(np.sin, xtrace.ShapeDtypeStruct((), np.float32), x)",
        fix="Use custom_jvp or custom_vjp",
        in_message=False,
        right="""
        @xtrace.custom_jvp
        def outside(x):
            return xtrace.pure_callback(np.sin, xtrace.ShapeDtypeStruct((), np.float32), x)

        outside.defjvp(lambda primals, tangents: (outside(*primals), jnp.cos(primals[0]) * tangents[0]))
        xtrace.grad(outside)(1.0)
        """,
    ),
    WrongProgram(
        "hessian_of_an_integer",
        """
        xtrace.hessian(lambda x: x @ x)(jnp.arange(3))
        """,
        error="TypeError",
        says=["i32[3]"],
        underlined="xtrace.hessian(lambda x: x @ x)(jnp.arange(3))",
        fix="requires inputs of floating dtype",
        in_message=False,
        right="""
        xtrace.hessian(lambda x: x @ x)(jnp.arange(3.0))
        """,
    ),
    WrongProgram(
        "pullback_of_two_results_called_with_two_arguments",
        """
        values, pullback = xtrace.vjp(lambda x: (jnp.sin(x), jnp.cos(x)), 1.0)
        pullback(1.0, 0.0)
        """,
        error="TypeError",
        says=["function of cotangents of <lambda>", "got 2 by position"],
        underlined="pullback(1.0, 0.0)",
        fix="Several cotangents are given as one tuple",
        in_message=False,
        right="""
        values, pullback = xtrace.vjp(lambda x: (jnp.sin(x), jnp.cos(x)), 1.0)
        pullback((1.0, 0.0))
        """,
    ),
]
