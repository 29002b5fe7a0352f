"""Values: traced arrays where Python or NumPy needs a number"""

from tests.errors.wrong_program import WrongProgram

CONCRETE = "Abstract tracer value encountered where concrete value is expected"
INDEX = "The __index__() method was called on traced array with shape i32[]"
ARRAY = "The numpy.ndarray conversion method __array__() was called on traced array with shape "

PROGRAMS = [
    WrongProgram(
        "int_of_an_argument",
        """
        @xtrace.jit
        def whole(x):
            return int(x) + 1

        whole(2.5)
        """,
        error="ConcretizationTypeError",
        says=[CONCRETE, "The problem arose with the `int` function.", "value of the argument x."],
        underlined="int(x)",
        fix="x.astype(int)",
        right="""
        @xtrace.jit
        def whole(x):
            return jnp.asarray(x).astype(int) + 1

        whole(2.5)
        """,
    ),
    WrongProgram(
        "float_of_a_loss",
        """
        @xtrace.jit
        def step(w):
            loss = jnp.mean(w ** 2)
            history = [float(loss)]
            return w - 0.1, history

        step(jnp.ones(3))
        """,
        error="ConcretizationTypeError",
        says=[CONCRETE, "The problem arose with the `float` function.", "value of the argument w."],
        underlined="float(loss)",
        fix="loss.astype(float)",
        right="""
        @xtrace.jit
        def step(w):
            loss = jnp.mean(w ** 2)
            return w - 0.1, loss

        w, loss = step(jnp.ones(3))
        history = [float(loss)]
        """,
    ),
    WrongProgram(
        "complex_of_an_argument",
        """
        @xtrace.jit
        def turn(x):
            return complex(x) * 1j

        turn(2.0)
        """,
        error="ConcretizationTypeError",
        says=[CONCRETE, "The problem arose with the `complex` function."],
        underlined="complex(x)",
        fix="x.astype(complex)",
        right="""
        @xtrace.jit
        def turn(x):
            return x.astype(complex) * 1j

        turn(2.0)
        """,
    ),
    WrongProgram(
        "item_of_a_loss",
        """
        @xtrace.jit
        def loss(w):
            return (w ** 2).mean().item()

        loss(jnp.ones(3))
        """,
        error="ConcretizationTypeError",
        says=[CONCRETE, "The problem arose with the `item` function.", "value of the argument w."],
        underlined="(w ** 2).mean().item()",
        fix="leave out .item(): (w ** 2).mean() can be used as it is",
        right="""
        @xtrace.jit
        def loss(w):
            return (w ** 2).mean()

        loss(jnp.ones(3))
        """,
    ),
    WrongProgram(
        "list_of_an_array",
        """
        @xtrace.jit
        def first(x):
            return x.tolist()[0]

        first(jnp.arange(3))
        """,
        error="ConcretizationTypeError",
        says=[CONCRETE, "The problem arose with the `tolist` function."],
        underlined="x.tolist()",
        fix="leave out .tolist()",
        right="""
        @xtrace.jit
        def first(x):
            return x[0]

        first(jnp.arange(3))
        """,
    ),
    WrongProgram(
        "square_root_of_math",
        """
        import math

        @xtrace.jit
        def norm(x):
            return math.sqrt(jnp.sum(x ** 2))

        norm(jnp.ones(3))
        """,
        error="ConcretizationTypeError",
        says=[CONCRETE, "The problem arose with the `float` function."],
        underlined="math.sqrt(jnp.sum(x ** 2))",
        fix="jnp.sqrt(jnp.sum(x ** 2))",
        right="""
        @xtrace.jit
        def norm(x):
            return jnp.sqrt(jnp.sum(x ** 2))

        norm(jnp.ones(3))
        """,
    ),
    WrongProgram(
        "sine_of_numpy",
        """
        @xtrace.jit
        def wave(x):
            return np.sin(x) * 2

        wave(jnp.arange(3.0))
        """,
        error="TracerArrayConversionError",
        says=[ARRAY + "f32[3]", "value of the argument x."],
        underlined="np.sin(x)",
        fix="jnp.sin(x)",
        right="""
        @xtrace.jit
        def wave(x):
            return jnp.sin(x) * 2

        wave(jnp.arange(3.0))
        """,
    ),
    WrongProgram(
        "numpy_under_grad",
        """
        @xtrace.grad
        def sum_sin(x):
            return np.sin(x).sum()

        sum_sin(jnp.ones((2, 2)))
        """,
        error="TracerArrayConversionError",
        says=[ARRAY + "f32[2,2]", "the function sum_sin at"],
        underlined="np.sin(x)",
        fix="jnp.sin(x)",
        right="""
        @xtrace.grad
        def sum_sin(x):
            return jnp.sin(x).sum()

        sum_sin(jnp.ones((2, 2)))
        """,
    ),
    WrongProgram(
        "norm_of_numpy",
        """
        @xtrace.jit
        def unit(x):
            return x / np.linalg.norm(x, axis=-1)

        unit(jnp.ones(3))
        """,
        error="TracerArrayConversionError",
        says=[ARRAY + "f32[3]"],
        underlined="np.linalg.norm(x, axis=-1)",
        fix="jnp.linalg.norm(x, axis=-1)",
        right="""
        @xtrace.jit
        def unit(x):
            return x / jnp.linalg.norm(x, axis=-1)

        unit(jnp.ones(3))
        """,
    ),
    WrongProgram(
        "numpy_array_of_an_argument",
        """
        @xtrace.jit
        def double(x):
            values = np.asarray(x)
            return 2 * values

        double(jnp.ones(3))
        """,
        error="TracerArrayConversionError",
        says=[ARRAY + "f32[3]"],
        underlined="np.asarray(x)",
        fix="jnp.asarray(x)",
        right="""
        @xtrace.jit
        def double(x):
            values = jnp.asarray(x)
            return 2 * values

        double(jnp.ones(3))
        """,
    ),
    WrongProgram(
        "numpy_table_at_a_traced_index",
        """
        table = np.array([10, 20, 30])

        @xtrace.jit
        def look_up(i):
            return table[i]

        look_up(1)
        """,
        error="TracerArrayConversionError",
        says=["value of the argument i."],
        underlined="table[i]",
        fix="jnp.asarray(table)[i]",
        right="""
        table = np.array([10, 20, 30])

        @xtrace.jit
        def look_up(i):
            return jnp.asarray(table)[i]

        look_up(1)
        """,
    ),
    WrongProgram(
        "range_of_an_argument",
        """
        @xtrace.jit
        def total(x, n):
            for i in range(n):
                x = x + i
            return x

        total(1.0, 3)
        """,
        error="TracerIntegerConversionError",
        says=[INDEX, "value of the argument n."],
        underlined="range(n)",
        fix="lax.fori_loop(0, n, lambda i, x: x + i, x)",
        right="""
        @xtrace.jit
        def total(x, n):
            return lax.fori_loop(0, n, lambda i, x: x + i, x)

        total(1.0, 3)
        """,
    ),
    WrongProgram(
        "list_at_a_traced_index",
        """
        rates = [0.1, 0.01, 0.001]

        @xtrace.jit
        def rate(step):
            return rates[step]

        rate(1)
        """,
        error="TracerIntegerConversionError",
        says=[INDEX, "value of the argument step."],
        underlined="rates[step]",
        fix="jnp.array(rates)[step]",
        right="""
        rates = [0.1, 0.01, 0.001]

        @xtrace.jit
        def rate(step):
            return jnp.array(rates)[step]

        rate(1)
        """,
    ),
    WrongProgram(
        "list_of_functions_at_a_traced_index",
        """
        activations = [jnp.sin, jnp.tanh]

        @xtrace.jit
        def activate(kind, x):
            return activations[kind](x)

        activate(1, 2.0)
        """,
        error="TracerIntegerConversionError",
        says=[INDEX, "value of the argument kind."],
        underlined="activations[kind]",
        fix="lax.switch(kind, activations, ",
        right="""
        activations = [jnp.sin, jnp.tanh]

        @xtrace.jit
        def activate(kind, x):
            return lax.switch(kind, activations, x)

        activate(1, 2.0)
        """,
    ),
    WrongProgram(
        "dictionary_with_a_traced_key",
        """
        costs = {0: 1.0, 1: 2.5}

        @xtrace.jit
        def cost(kind):
            return costs[kind]

        cost(1)
        """,
        error="TypeError",
        says=["unhashable type", "value of the argument kind."],
        underlined="costs[kind]",
        fix="jnp.array(list(costs.values()))[kind]",
        right="""
        costs = {0: 1.0, 1: 2.5}

        @xtrace.jit
        def cost(kind):
            return jnp.array(list(costs.values()))[kind]

        cost(1)
        """,
    ),
    WrongProgram(
        "number_in_an_f_string",
        """
        @xtrace.jit
        def step(loss):
            print(f"loss: {loss:.3f}")
            return loss

        step(1.0)
        """,
        error="TypeError",
        says=["the format '.3f' needs a value", "value of the argument loss."],
        underlined='f"loss: {loss:.3f}"',
        fix='xtrace.debug.print("loss: {:.3f}", loss)',
        right="""
        @xtrace.jit
        def step(loss):
            xtrace.debug.print("loss: {:.3f}", loss)
            return loss

        step(1.0)
        """,
    ),
    WrongProgram(
        "number_in_a_percent_format",
        """
        @xtrace.jit
        def step(i):
            print("step %d" % i)
            return i

        step(1)
        """,
        error="TypeError",
        says=["%d format: a real number is required, not"],
        underlined='"step %d" % i',
        fix="a real number is required",
        in_message=False,
        right="""
        @xtrace.jit
        def step(i):
            xtrace.debug.print("step {}", i)
            return i

        step(1)
        """,
    ),
    WrongProgram(
        "length_of_a_number",
        """
        @xtrace.jit
        def mean(x):
            return x / len(x)

        mean(3.0)
        """,
        error="TypeError",
        says=["len() of an unsized (rank 0) array"],
        underlined="len(x)",
        fix="x.size",
        in_message=False,
        right="""
        @xtrace.jit
        def mean(x):
            return x / jnp.size(x)

        mean(3.0)
        """,
    ),
    WrongProgram(
        "array_added_to_a_list",
        """
        @xtrace.jit
        def extended(x):
            return [1.0, 2.0] + x

        extended(jnp.ones(2))
        """,
        error="TypeError",
        says=["unsupported operand for +", "[1.0, 2.0]", "list"],
        underlined="[1.0, 2.0] + x",
        fix="Convert it with xtrace.numpy.asarray first",
        in_message=False,
        right="""
        @xtrace.jit
        def extended(x):
            return jnp.asarray([1.0, 2.0]) + x

        extended(jnp.ones(2))
        """,
    ),
    WrongProgram(
        "axis_that_is_an_argument",
        """
        @xtrace.jit
        def smallest(x, axis):
            return x.min(axis)

        smallest(jnp.arange(4), 0)
        """,
        error="ConcretizationTypeError",
        says=["value of the argument axis."],
        underlined="x.min(axis)",
        fix='xtrace.jit(smallest, static_argnames=["axis"])',
        right="""
        def smallest(x, axis):
            return x.min(axis)

        xtrace.jit(smallest, static_argnames=["axis"])(jnp.arange(4), 0)
        """,
    ),
    WrongProgram(
        "count_of_an_enclosing_function",
        """
        @xtrace.jit
        def outer(n):
            def step(i, x):
                return x + sum(range(n))

            return lax.fori_loop(0, 3, step, 0)

        outer(4)
        """,
        error="TracerIntegerConversionError",
        says=[INDEX, "value of the argument n", "the function outer at"],
        underlined="range(n)",
        fix='xtrace.jit(outer, static_argnames=["n"])',
        right="""
        def outer(n):
            def step(i, x):
                return x + sum(range(n))

            return lax.fori_loop(0, 3, step, 0)

        xtrace.jit(outer, static_argnames=["n"])(4)
        """,
    ),
    WrongProgram(
        "numpy_method_given_a_traced_value",
        """
        weights = np.ones(3)

        @xtrace.jit
        def score(x):
            return weights.dot(x)

        score(jnp.ones(3))
        """,
        error="TracerArrayConversionError",
        says=[ARRAY + "f32[3]"],
        underlined="weights.dot(x)",
        fix="jnp.asarray(weights).dot(x)",
        right="""
        weights = np.ones(3)

        @xtrace.jit
        def score(x):
            return jnp.asarray(weights).dot(x)

        score(jnp.ones(3))
        """,
    ),
    WrongProgram(
        "float_of_numpy",
        """
        @xtrace.jit
        def scale(x):
            return np.float32(x) * 2

        scale(2.0)
        """,
        error="TracerArrayConversionError",
        says=["value of the argument x."],
        underlined="np.float32(x)",
        fix="x.astype(jnp.float32)",
        right="""
        @xtrace.jit
        def scale(x):
            return x.astype(jnp.float32) * 2

        scale(2.0)
        """,
    ),
    WrongProgram(
        "item_of_a_numpy_array_set_to_a_traced_value",
        """
        @xtrace.jit
        def squares(x):
            out = np.zeros(3)
            for i in range(3):
                out[i] = x ** i
            return out

        squares(2.0)
        """,
        error="ValueError",
        says=["setting an array element with a sequence", "value of the argument x."],
        underlined="out[i]",
        fix="out = jnp.asarray(out).at[i].set(x ** i)",
        right="""
        @xtrace.jit
        def squares(x):
            out = jnp.zeros(3)
            for i in range(3):
                out = out.at[i].set(x ** i)
            return out

        squares(2.0)
        """,
    ),
    WrongProgram(
        "number_in_a_format",
        """
        @xtrace.jit
        def step(loss):
            print("loss: {:.3f}".format(loss))
            return loss

        step(1.0)
        """,
        error="TypeError",
        says=["the format '.3f' needs a value"],
        underlined='"loss: {:.3f}".format(loss)',
        fix='xtrace.debug.print("loss: {:.3f}", loss)',
        right="""
        @xtrace.jit
        def step(loss):
            xtrace.debug.print("loss: {:.3f}", loss)
            return loss

        step(1.0)
        """,
    ),
    WrongProgram(
        "iteration_over_a_number",
        """
        @xtrace.jit
        def total(values):
            return sum(v for v in values)

        total(3.0)
        """,
        error="TypeError",
        says=["iteration over a 0-d array"],
        underlined="values",
        nth=1,
        fix="an array of one element with jnp.atleast_1d",
        right="""
        @xtrace.jit
        def total(values):
            return sum(v for v in jnp.atleast_1d(values))

        total(3.0)
        """,
    ),
    WrongProgram(
        "loop_over_a_number",
        """
        for value in jnp.array(1.5):
            print(value)
        """,
        error="TypeError",
        says=["iteration over a 0-d array"],
        underlined="jnp.array(1.5)",
        fix="an array of one element with jnp.atleast_1d",
        right="""
        for value in jnp.atleast_1d(jnp.array(1.5)):
            print(value)
        """,
    ),
]
