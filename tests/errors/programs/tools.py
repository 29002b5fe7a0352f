"""Tools: NaN checks, callbacks, printing, checkify, settings and devices"""

from tests.errors.wrong_program import WrongProgram

PROGRAMS = [
    WrongProgram(
        "nan_in_a_calculation",
        """
        with xtrace.debug_nans(True):
            jnp.log(jnp.array(-1.0))
        """,
        error="FloatingPointError",
        says=["log", "nan"],
        underlined="jnp.log(jnp.array(-1.0))",
        fix="its operands have none, they are (-1.0)",
        in_message=True,
        right="""
        with xtrace.debug_nans(True):
            jnp.log(jnp.array(1.0))
        """,
    ),
    WrongProgram(
        "nan_in_a_jitted_function",
        """
        @xtrace.jit
        def f(x):
            y = x - 1
            return jnp.log(y) + 1

        with xtrace.debug_nans(True):
            f(0.0)
        """,
        error="FloatingPointError",
        says=["log", "nan"],
        underlined="jnp.log(y)",
        fix="its operands have none, they are (-1.0)",
        right="""
        @xtrace.jit
        def f(x):
            y = jnp.maximum(x - 1, 1e-6)
            return jnp.log(y) + 1

        with xtrace.debug_nans(True):
            f(0.0)
        """,
    ),
    WrongProgram(
        "division_by_zero",
        """
        with xtrace.debug_infs(True):
            jnp.array(1.0) / 0.0
        """,
        error="FloatingPointError",
        says=["div", "inf"],
        underlined="jnp.array(1.0) / 0.0",
        fix="its operands have none, they are (1.0, 0.0)",
        in_message=True,
        right="""
        with xtrace.debug_infs(True):
            jnp.array(1.0) / 1.0
        """,
    ),
    WrongProgram(
        "check_outside_of_checkify",
        """
        from xtrace.experimental import checkify

        @xtrace.jit
        def root(x):
            checkify.check(x >= 0, "negative")
            return jnp.sqrt(x)

        root(-1.0)
        """,
        error="ValueError",
        says=["checkify"],
        underlined="root(-1.0)",
        fix="checkify.checkify",
        in_message=False,
        right="""
        from xtrace.experimental import checkify

        @xtrace.jit
        @checkify.checkify
        def root(x):
            checkify.check(x >= 0, "negative")
            return jnp.sqrt(x)

        error, result = root(1.0)
        """,
    ),
    WrongProgram(
        "check_that_fails",
        """
        from xtrace.experimental import checkify

        def root(x):
            checkify.check(x >= 0, "{x} is negative", x=x)
            return jnp.sqrt(x)

        error, result = checkify.checkify(root)(jnp.array(-1.0))
        error.throw()
        """,
        error="JaxRuntimeError",
        says=["-1.0 is negative", "check_that_fails.py:9"],
        underlined="error.throw()",
        fix="-1.0 is negative",
        in_message=False,
        right="""
        from xtrace.experimental import checkify

        def root(x):
            checkify.check(x >= 0, "{x} is negative", x=x)
            return jnp.sqrt(x)

        error, result = checkify.checkify(root)(jnp.array(1.0))
        error.throw()
        """,
    ),
    WrongProgram(
        "check_of_an_array",
        """
        from xtrace.experimental import checkify

        def root(x):
            checkify.check(x >= 0, "negative")
            return jnp.sqrt(x)

        checkify.checkify(root)(jnp.ones(3))
        """,
        error="TypeError",
        says=["check", "scalar"],
        underlined='checkify.check(x >= 0, "negative")',
        fix="Reduce an array with xtrace.numpy.all or any",
        in_message=False,
        right="""
        from xtrace.experimental import checkify

        def root(x):
            checkify.check(jnp.all(x >= 0), "negative")
            return jnp.sqrt(x)

        checkify.checkify(root)(jnp.ones(3))
        """,
    ),
    WrongProgram(
        "index_out_of_bounds",
        """
        from xtrace.experimental import checkify

        def item(x, i):
            return x[i]

        error, result = checkify.checkify(item, errors=checkify.index_checks)(jnp.arange(3), 5)
        error.throw()
        """,
        error="JaxRuntimeError",
        says=["out-of-bounds", "5"],
        underlined="error.throw()",
        fix="index 5 is out of bounds for axis 0 with size 3",
        in_message=False,
        right="""
        from xtrace.experimental import checkify

        def item(x, i):
            return x[i]

        error, result = checkify.checkify(item, errors=checkify.index_checks)(jnp.arange(3), 2)
        error.throw()
        """,
    ),
    WrongProgram(
        "print_with_too_few_values",
        """
        @xtrace.jit
        def f(x):
            xtrace.debug.print("{} {}", x)
            return x

        f(1.0)
        """,
        error="IndexError",
        says=["{} {}"],
        underlined='xtrace.debug.print("{} {}", x)',
        fix="refers to more positional arguments than the 1 given",
        in_message=False,
        right="""
        @xtrace.jit
        def f(x):
            xtrace.debug.print("{}", x)
            return x

        f(1.0)
        """,
    ),
    WrongProgram(
        "print_with_unused_values",
        """
        @xtrace.jit
        def f(x):
            xtrace.debug.print("x =", x)
            return x

        f(1.0)
        """,
        error="ValueError",
        says=["Unused positional arguments"],
        underlined='xtrace.debug.print("x =", x)',
        fix="Give each a {} in the format",
        in_message=False,
        right="""
        @xtrace.jit
        def f(x):
            xtrace.debug.print("x = {}", x)
            return x

        f(1.0)
        """,
    ),
    WrongProgram(
        "print_of_an_f_string",
        """
        @xtrace.jit
        def f(x):
            xtrace.debug.print(f"x = {x:.2f}")
            return x

        f(1.0)
        """,
        error="TypeError",
        says=["the format '.2f' needs a value"],
        underlined='f"x = {x:.2f}"',
        fix='xtrace.debug.print("x = {:.2f}", x)',
        right="""
        @xtrace.jit
        def f(x):
            xtrace.debug.print("x = {:.2f}", x)
            return x

        f(1.0)
        """,
    ),
    WrongProgram(
        "callback_with_another_shape",
        """
        def outside(x):
            return np.zeros(3, np.float32)

        @xtrace.jit
        def f(x):
            return xtrace.pure_callback(outside, xtrace.ShapeDtypeStruct((2,), jnp.float32), x)

        f(1.0).block_until_ready()
        """,
        error="JaxRuntimeError",
        says=["outside", "float32[2]", "float32[3]"],
        underlined="f(1.0)",
        fix="Return an array of the shape in result_shape_dtypes",
        in_message=False,
        right="""
        def outside(x):
            return np.zeros(2, np.float32)

        @xtrace.jit
        def f(x):
            return xtrace.pure_callback(outside, xtrace.ShapeDtypeStruct((2,), jnp.float32), x)

        f(1.0).block_until_ready()
        """,
    ),
    WrongProgram(
        "error_in_a_callback",
        """
        def outside(x):
            raise ValueError("the file is not there")

        @xtrace.jit
        def f(x):
            return xtrace.pure_callback(outside, xtrace.ShapeDtypeStruct((), jnp.float32), x)

        f(1.0).block_until_ready()
        """,
        error="JaxRuntimeError",
        says=["the callback outside of pure_callback", "error_in_a_callback.py:11 (f)"],
        underlined="f(1.0)",
        fix="raised ValueError: the file is not there",
        in_message=False,
        right="""
        def outside(x):
            return np.float32(x)

        @xtrace.jit
        def f(x):
            return xtrace.pure_callback(outside, xtrace.ShapeDtypeStruct((), jnp.float32), x)

        f(1.0).block_until_ready()
        """,
    ),
    WrongProgram(
        "setting_that_does_not_exist",
        """
        xtrace.config.update("jax_enable_x46", True)
        """,
        error="AttributeError",
        says=["jax_enable_x46"],
        underlined='xtrace.config.update("jax_enable_x46", True)',
        fix="jax_enable_x64",
        in_message=False,
        right="""
        xtrace.config.update("jax_enable_x64", True)
        """,
    ),
    WrongProgram(
        "setting_with_a_wrong_value",
        """
        xtrace.config.update("jax_enable_x64", "yes please")
        """,
        error="ValueError",
        jax="None",
        says=["jax_enable_x64", "yes please"],
        underlined='xtrace.config.update("jax_enable_x64", "yes please")',
        fix="write true or false",
        in_message=False,
        why="jax takes every value as a truth value",
        right="""
        xtrace.config.update("jax_enable_x64", True)
        """,
    ),
    WrongProgram(
        "platform_that_is_not_there",
        """
        xtrace.devices("tpu")
        """,
        error="RuntimeError",
        says=["TPU"],
        underlined='xtrace.devices("tpu")',
        fix="pip install 'xtrace[tpu]'",
        in_message=False,
        right="""
        xtrace.devices("cpu")
        """,
    ),
    WrongProgram(
        "device_by_name",
        """
        xtrace.device_put(jnp.ones(3), "cpu")
        """,
        error="ValueError",
        says=["device_put", "cpu"],
        underlined='xtrace.device_put(jnp.ones(3), "cpu")',
        fix="xtrace.devices()",
        in_message=False,
        right="""
        xtrace.device_put(jnp.ones(3), xtrace.devices("cpu")[0])
        """,
    ),
    WrongProgram(
        "jit_disabled_and_still_traced",
        """
        def body(i, x):
            if x > 1:
                return x
            return x * 2

        lax.fori_loop(0, 3, body, 1)
        """,
        error="TracerBoolConversionError",
        says=["the function body at"],
        underlined="x > 1",
        fix="jnp.where(x > 1, x, x * 2)",
        right="""
        def body(i, x):
            if x > 1:
                return x
            return x * 2

        with xtrace.disable_jit():
            lax.fori_loop(0, 3, body, 1)
        """,
    ),
    WrongProgram(
        "mapping_of_trees_that_differ",
        """
        params, slopes = {"w": 1.0, "b": 0.0}, {"w": 0.5}
        xtrace.tree.map(lambda p, g: p - 0.1 * g, params, slopes)
        """,
        error="ValueError",
        says=["b"],
        underlined="xtrace.tree.map(lambda p, g: p - 0.1 * g, params, slopes)",
        fix="keys ['b', 'w'] against one without ['b']",
        in_message=False,
        right="""
        params, slopes = {"w": 1.0, "b": 0.0}, {"w": 0.5, "b": 0.1}
        xtrace.tree.map(lambda p, g: p - 0.1 * g, params, slopes)
        """,
    ),
    WrongProgram(
        "dictionary_with_keys_that_have_no_order",
        """
        xtrace.jit(lambda d: d["a"])({"a": 1.0, 1: 2.0})
        """,
        error="ValueError",
        says=["keys"],
        underlined='xtrace.jit(lambda d: d["a"])({"a": 1.0, 1: 2.0})',
        fix="use keys of one type",
        in_message=False,
        right="""
        xtrace.jit(lambda d: d["a"])({"a": 1.0, "1": 2.0})
        """,
    ),
]
