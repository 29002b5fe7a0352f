"""Conditions: traced values where Python needs to know whether they are true"""

from tests.errors.wrong_program import WrongProgram

BOOL = "Attempted boolean conversion of traced array with shape bool[]"

PROGRAMS = [
    WrongProgram(
        "if_on_an_argument",
        """
        @xtrace.jit
        def f(x):
            if x > 0:
                return x
            else:
                return 2 * x

        f(10)
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "the function f at", "for jit", "depends on the value of the argument x."],
        underlined="x > 0",
        fix="jnp.where(x > 0, x, 2 * x)",
        right="""
        @xtrace.jit
        def f(x):
            return jnp.where(x > 0, x, 2 * x)

        f(10)
        """,
    ),
    WrongProgram(
        "while_on_two_arguments",
        """
        @xtrace.jit
        def g(x, n):
            i = 0
            while i < n:
                i += 1
            return x + i

        g(10, 20)
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "the function g at", "depends on the value of the argument n."],
        underlined="i < n",
        fix="lax.while_loop(lambda i: i < n, lambda i: i + 1, i)",
        right="""
        @xtrace.jit
        def g(x, n):
            i = lax.while_loop(lambda i: i < n, lambda i: i + 1, 0)
            return x + i

        g(10, 20)
        """,
    ),
    WrongProgram(
        "else_if_chain",
        """
        @xtrace.jit
        def f(x):
            if x < 3:
                return 3. * x ** 2
            elif x < 10:
                return -4 * x
            return 0. * x

        f(2.)
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "depends on the value of the argument x."],
        underlined="x < 3",
        fix="lax.cond(x < 3, ",
        right="""
        @xtrace.jit
        def f(x):
            return jnp.where(x < 3, 3. * x ** 2, jnp.where(x < 10, -4 * x, 0. * x))

        f(2.)
        """,
    ),
    WrongProgram(
        "conditional_expression",
        """
        @xtrace.jit
        def relu(x):
            return x if x > 0 else 0.0

        relu(3.0)
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "depends on the value of the argument x."],
        underlined="x > 0",
        fix="jnp.where(x > 0, x, 0.0)",
        right="""
        @xtrace.jit
        def relu(x):
            return jnp.where(x > 0, x, 0.0)

        relu(3.0)
        """,
    ),
    WrongProgram(
        "condition_on_sums",
        """
        @xtrace.jit
        def larger(x, y):
            return x if x.sum() < y.sum() else y

        larger(jnp.ones(4), jnp.zeros(4))
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "depends on the values of the arguments x and y."],
        underlined="x.sum() < y.sum()",
        fix="jnp.where(x.sum() < y.sum(), x, y)",
        right="""
        @xtrace.jit
        def larger(x, y):
            return jnp.where(x.sum() < y.sum(), x, y)

        larger(jnp.ones(4), jnp.zeros(4))
        """,
    ),
    WrongProgram(
        "both_conditions",
        """
        @xtrace.jit
        def inside(x):
            if x > 0 and x < 1:
                return x
            return 0.0

        inside(0.5)
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "depends on the value of the argument x."],
        underlined="x > 0",
        fix="jnp.logical_and(x > 0, x < 1)",
        right="""
        @xtrace.jit
        def inside(x):
            return jnp.where(jnp.logical_and(x > 0, x < 1), x, 0.0)

        inside(0.5)
        """,
    ),
    WrongProgram(
        "chained_comparison",
        """
        @xtrace.jit
        def inside(x):
            return jnp.where(0 < x < 1, x, 0.0)

        inside(0.5)
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "depends on the value of the argument x."],
        underlined="0 < x < 1",
        fix="jnp.logical_and(0 < x, x < 1)",
        right="""
        @xtrace.jit
        def inside(x):
            return jnp.where(jnp.logical_and(0 < x, x < 1), x, 0.0)

        inside(0.5)
        """,
    ),
    WrongProgram(
        "either_of_two",
        """
        @xtrace.jit
        def first_or(x, default):
            return x or default

        first_or(0, 5)
        """,
        error="TracerBoolConversionError",
        says=["Attempted boolean conversion of traced array with shape i32[]", "value of the argument x."],
        underlined="x",
        nth=2,
        fix="jnp.logical_or(x, default)",
        right="""
        @xtrace.jit
        def first_or(x, default):
            return jnp.where(x != 0, x, default)

        first_or(0, 5)
        """,
    ),
    WrongProgram(
        "not_of_a_condition",
        """
        @xtrace.jit
        def stopped(running, x):
            return jnp.where(not running, x, 0.0)

        stopped(True, 1.0)
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "value of the argument running."],
        underlined="running",
        nth=1,
        fix="jnp.logical_not(running)",
        right="""
        @xtrace.jit
        def stopped(running, x):
            return jnp.where(jnp.logical_not(running), x, 0.0)

        stopped(True, 1.0)
        """,
    ),
    WrongProgram(
        "assertion",
        """
        @xtrace.jit
        def root(x):
            assert x >= 0, "negative"
            return jnp.sqrt(x)

        root(4.0)
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "value of the argument x."],
        underlined="x >= 0",
        fix='xtrace.experimental.checkify.check(x >= 0, "negative',
        right="""
        from xtrace.experimental import checkify

        def root(x):
            checkify.check(x >= 0, "negative")
            return jnp.sqrt(x)

        error, result = xtrace.jit(checkify.checkify(root))(4.0)
        error.throw()
        """,
    ),
    WrongProgram(
        "raise_if_wrong",
        """
        @xtrace.jit
        def mean(x):
            if jnp.isnan(x).any():
                raise ValueError("nan")
            return x.mean()

        mean(jnp.ones(3))
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "value of the argument x."],
        underlined="jnp.isnan(x).any()",
        fix="xtrace.experimental.checkify.check(jnp.logical_not(jnp.isnan(x).any()), ",
        right="""
        from xtrace.experimental import checkify

        def mean(x):
            checkify.check(jnp.logical_not(jnp.isnan(x).any()), "nan")
            return x.mean()

        error, result = checkify.checkify(mean)(jnp.ones(3))
        error.throw()
        """,
    ),
    WrongProgram(
        "bool_of_a_comparison",
        """
        @xtrace.jit
        def positive(x):
            return bool(x > 0)

        positive(1.0)
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "value of the argument x."],
        underlined="bool(x > 0)",
        fix="(x > 0).astype(bool)",
        right="""
        @xtrace.jit
        def positive(x):
            return x > 0

        positive(1.0)
        """,
    ),
    WrongProgram(
        "flag_that_should_be_static",
        """
        @xtrace.jit
        def layer(x, training):
            if training:
                x = x * 2
            return x

        layer(jnp.ones(3), training=True)
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "value of the argument training."],
        underlined="training",
        nth=1,
        fix='xtrace.jit(layer, static_argnames=["training"])',
        right="""
        def layer(x, training):
            if training:
                x = x * 2
            return x

        xtrace.jit(layer, static_argnames=["training"])(jnp.ones(3), training=True)
        """,
    ),
    WrongProgram(
        "loop_until_converged",
        """
        @xtrace.jit
        def newton(a):
            x = a
            while jnp.abs(x * x - a) > 1e-3:
                x = (x + a / x) / 2
            return x

        newton(2.0)
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "value of the argument a."],
        underlined="jnp.abs(x * x - a) > 1e-3",
        fix="lax.while_loop(lambda x: jnp.abs(x * x - a) > 1e-3, lambda x: (x + a / x) / 2, x)",
        right="""
        @xtrace.jit
        def newton(a):
            return lax.while_loop(lambda x: jnp.abs(x * x - a) > 1e-3, lambda x: (x + a / x) / 2, a)

        newton(2.0)
        """,
    ),
    WrongProgram(
        "break_out_of_a_loop",
        """
        @xtrace.jit
        def count(x):
            n = 0
            for i in range(10):
                if x > 100:
                    break
                x, n = 2 * x, n + 1
            return n

        count(3)
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "value of the argument x."],
        underlined="x > 100",
        fix="write the loop with lax.while_loop, whose condition is jnp.logical_not(x > 100)",
        right="""
        @xtrace.jit
        def count(x):
            def going(state):
                x, n = state
                return jnp.logical_and(n < 10, jnp.logical_not(x > 100))

            return lax.while_loop(going, lambda state: (2 * state[0], state[1] + 1), (x, 0))[1]

        count(3)
        """,
    ),
    WrongProgram(
        "max_of_python",
        """
        @xtrace.jit
        def clip(x):
            return max(x, 0.0)

        clip(-1.0)
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "value of the argument x."],
        underlined="max(x, 0.0)",
        fix="jnp.maximum(x, 0.0)",
        right="""
        @xtrace.jit
        def clip(x):
            return jnp.maximum(x, 0.0)

        clip(-1.0)
        """,
    ),
    WrongProgram(
        "any_of_python",
        """
        @xtrace.jit
        def some(x):
            return any(x > 1)

        some(jnp.arange(3))
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "value of the argument x."],
        underlined="any(x > 1)",
        fix="jnp.any(",
        right="""
        @xtrace.jit
        def some(x):
            return jnp.any(x > 1)

        some(jnp.arange(3))
        """,
    ),
    WrongProgram(
        "sorted_of_python",
        """
        @xtrace.jit
        def median(x):
            return sorted(x)[1]

        median(jnp.array([3, 1, 2]))
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "value of the argument x."],
        underlined="sorted(x)",
        fix="jnp.sort(x)",
        right="""
        @xtrace.jit
        def median(x):
            return jnp.sort(x)[1]

        median(jnp.array([3, 1, 2]))
        """,
    ),
    WrongProgram(
        "filter_in_a_comprehension",
        """
        @xtrace.jit
        def total(x):
            return sum(v for v in (x[0], x[1]) if v > 0)

        total(jnp.array([1, -2, 3]))
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "value of the argument x."],
        underlined="v > 0",
        fix="jnp.where(v > 0, item, 0)",
        right="""
        @xtrace.jit
        def total(x):
            return jnp.sum(jnp.where(x > 0, x, 0))

        total(jnp.array([1, -2, 3]))
        """,
    ),
    WrongProgram(
        "member_of_an_array",
        """
        @xtrace.jit
        def has_two(x):
            return 2 in x

        has_two(jnp.arange(3))
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "value of the argument x."],
        underlined="2 in x",
        fix="jnp.isin(2, ",
        right="""
        @xtrace.jit
        def has_two(x):
            return jnp.any(x == 2)

        has_two(jnp.arange(3))
        """,
    ),
    WrongProgram(
        "truth_of_a_whole_array",
        """
        x = jnp.arange(3)
        if x > 1:
            print("large")
        """,
        error="ValueError",
        says=["The truth value of an array of shape (3,) is ambiguous"],
        underlined="x > 1",
        fix="x.any()",
        in_message=False,
        right="""
        x = jnp.arange(3)
        if (x > 1).any():
            print("large")
        """,
    ),
    WrongProgram(
        "condition_under_vmap",
        """
        def f(x):
            if x > 0:
                return x
            return -x

        xtrace.vmap(f)(jnp.array([1.0, -2.0]))
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "the function f at", "vmap", "argument x"],
        underlined="x > 0",
        fix="jnp.where(x > 0, x, -x)",
        right="""
        def f(x):
            return jnp.where(x > 0, x, -x)

        xtrace.vmap(f)(jnp.array([1.0, -2.0]))
        """,
    ),
    WrongProgram(
        "condition_on_a_leaf_of_the_parameters",
        """
        @xtrace.jit
        def step(params, x):
            if params["weights"][0].sum() > 1:
                return x / 2
            return x

        step({"weights": [jnp.ones(3)]}, 1.0)
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "value of the argument params['weights'][0]."],
        underlined='params["weights"][0].sum() > 1',
        fix='jnp.where(params["weights"][0].sum() > 1, x / 2, x)',
        right="""
        @xtrace.jit
        def step(params, x):
            return jnp.where(params["weights"][0].sum() > 1, x / 2, x)

        step({"weights": [jnp.ones(3)]}, 1.0)
        """,
    ),
    WrongProgram(
        "condition_far_from_the_argument",
        """
        @xtrace.jit
        def f(x, y):
            a = jnp.sin(x)
            b = a * 2
            if b > 1:
                y = y + 1
            return y

        f(1.0, 2.0)
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "value of the argument x.", "jnp.sin(x)", "a * 2", "sin x"],
        underlined="b > 1",
        fix="jnp.where(b > 1, y + 1, y)",
        right="""
        @xtrace.jit
        def f(x, y):
            a = jnp.sin(x)
            b = a * 2
            return jnp.where(b > 1, y + 1, y)

        f(1.0, 2.0)
        """,
    ),
    WrongProgram(
        "condition_in_the_body_of_a_scan",
        """
        def step(total, x):
            if x > total:
                total = x
            return total, x

        lax.scan(step, 0.0, jnp.arange(3.0))
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "the function step at", "for scan", "total"],
        underlined="x > total",
        fix="jnp.where(x > total, x, total)",
        right="""
        def step(total, x):
            total = jnp.where(x > total, x, total)
            return total, x

        lax.scan(step, 0.0, jnp.arange(3.0))
        """,
    ),
    WrongProgram(
        "gradient_of_a_jitted_function_that_branches",
        """
        @xtrace.grad
        @xtrace.jit
        def f(x):
            if x < 3:
                return 3. * x ** 2
            return -4 * x

        f(2.)
        """,
        error="TracerBoolConversionError",
        says=[BOOL, "for jit", "value of the argument x."],
        underlined="x < 3",
        fix="jnp.where(x < 3, 3.0 * x ** 2, -4 * x)",
        right="""
        @xtrace.grad
        def f(x):
            if x < 3:
                return 3. * x ** 2
            return -4 * x

        f(2.)
        """,
    ),
]
