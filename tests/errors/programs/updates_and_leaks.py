"""Updates and leaks: arrays that do not change, traced values that outlive their function"""

from tests.errors.wrong_program import WrongProgram

IMMUTABLE = "object does not support item assignment. Arrays are immutable."
LEAK = "Encountered an unexpected tracer. A traced value of type "

PROGRAMS = [
    WrongProgram(
        "item_set_in_place",
        """
        x = jnp.arange(10)
        x[0] = 10
        """,
        error="TypeError",
        says=[IMMUTABLE, "Instead of ``x[idx] = y``, use ``x = x.at[idx].set(y)`` or another .at[] method"],
        underlined="x[0]",
        fix="x = x.at[0].set(10)",
        right="""
        x = jnp.arange(10)
        x = x.at[0].set(10)
        """,
    ),
    WrongProgram(
        "item_set_in_a_jitted_loop",
        """
        @xtrace.jit
        def squares(x):
            for i in range(3):
                x[i] = x[i] ** 2
            return x

        squares(jnp.arange(3.0))
        """,
        error="TypeError",
        says=[IMMUTABLE],
        underlined="x[i]",
        fix="x = x.at[i].set(x[i] ** 2)",
        right="""
        @xtrace.jit
        def squares(x):
            for i in range(3):
                x = x.at[i].set(x[i] ** 2)
            return x

        squares(jnp.arange(3.0))
        """,
    ),
    WrongProgram(
        "item_added_to_in_place",
        """
        counts = jnp.zeros(3)
        counts[1] += 1
        """,
        error="TypeError",
        says=[IMMUTABLE],
        underlined="counts[1]",
        fix="counts = counts.at[1].add(1)",
        right="""
        counts = jnp.zeros(3)
        counts = counts.at[1].add(1)
        """,
    ),
    WrongProgram(
        "column_set_in_place",
        """
        def standardize(table):
            table[:, 0] = (table[:, 0] - table[:, 0].mean()) / 2
            return table

        standardize(jnp.ones((4, 2)))
        """,
        error="TypeError",
        says=[IMMUTABLE],
        underlined="table[:, 0]",
        fix="table = table.at[:, 0].set((table[:, 0] - table[:, 0].mean()) / 2)",
        right="""
        def standardize(table):
            return table.at[:, 0].set((table[:, 0] - table[:, 0].mean()) / 2)

        standardize(jnp.ones((4, 2)))
        """,
    ),
    WrongProgram(
        "masked_set_in_place",
        """
        x = jnp.arange(4.0)
        x[x < 2] = 0
        """,
        error="TypeError",
        says=[IMMUTABLE],
        underlined="x[x < 2]",
        fix="x = x.at[x < 2].set(0)",
        right="""
        x = jnp.arange(4.0)
        x = x.at[x < 2].set(0)
        """,
    ),
    WrongProgram(
        "item_deleted",
        """
        x = jnp.arange(4)
        del x[0]
        """,
        error="TypeError",
        says=["object does not support item deletion", "immutable"],
        underlined="x[0]",
        fix="xtrace.numpy.delete(x, idx)",
        in_message=False,
        jax="AttributeError",
        why="jax has no __delitem__",
        right="""
        x = jnp.arange(4)
        x = jnp.delete(x, 0)
        """,
    ),
    WrongProgram(
        "result_written_into_out",
        """
        x = jnp.ones(3)
        total = jnp.zeros(3)
        jnp.add(x, x, out=total)
        """,
        error="NotImplementedError",
        says=["add", "out"],
        underlined="jnp.add(x, x, out=total)",
        fix="leave it at None and use the result",
        in_message=False,
        right="""
        x = jnp.ones(3)
        total = jnp.add(x, x)
        """,
    ),
    WrongProgram(
        "update_without_an_operation",
        """
        x = jnp.zeros(3)
        x.at[0] = 1
        """,
        error="TypeError",
        says=["does not support item assignment"],
        underlined="x.at[0]",
        fix="x = x.at[idx].set(y)",
        in_message=False,
        right="""
        x = jnp.zeros(3)
        x = x.at[0].set(1)
        """,
    ),
    WrongProgram(
        "list_outside_the_function",
        """
        history = []

        @xtrace.jit
        def step(x):
            y = jnp.sin(x)
            history.append(y)
            return y

        step(1.0)
        print(history[0] + 1)
        """,
        error="UnexpectedTracerError",
        says=[LEAK, "made on line list_outside_the_function.py:10 (step)", "print(history[0] + 1)"],
        underlined="jnp.sin(x)",
        fix="return the value from step instead of storing it",
        in_message=True,
        right="""
        @xtrace.jit
        def step(x):
            y = jnp.sin(x)
            return y, y

        result, kept = step(1.0)
        print(kept + 1)
        """,
    ),
    WrongProgram(
        "global_variable",
        """
        last = 0.0

        @xtrace.jit
        def update(x):
            global last
            last = last + x
            return last

        update(1.0)
        update(jnp.ones(2))
        """,
        error="UnexpectedTracerError",
        says=[LEAK, "made on line global_variable.py:11 (update)", "It was used here"],
        underlined="last + x",
        fix="return the value from update instead of storing it",
        in_message=True,
        right="""
        @xtrace.jit
        def update(last, x):
            return last + x

        last = update(0.0, 1.0)
        last = update(last, jnp.ones(2))
        """,
    ),
    WrongProgram(
        "attribute_of_an_object",
        """
        class Counter:
            def __init__(self):
                self.count = jnp.zeros(())

            def add(self, x):
                self.count = self.count + x
                return self.count

        counter = Counter()
        xtrace.jit(counter.add)(1.0)
        print(jnp.sqrt(counter.count))
        """,
        error="UnexpectedTracerError",
        says=[LEAK, "the function add at", "jnp.sqrt(counter.count)"],
        underlined="self.count + x",
        fix="return the value from add instead of storing it",
        in_message=True,
        right="""
        class Counter:
            def __init__(self):
                self.count = jnp.zeros(())

        @xtrace.jit
        def add(count, x):
            return count + x

        counter = Counter()
        counter.count = add(counter.count, 1.0)
        print(jnp.sqrt(counter.count))
        """,
    ),
    WrongProgram(
        "value_caught_in_a_closure",
        """
        saved = {}

        def outer(x):
            saved["square"] = x * x
            return x

        xtrace.jit(outer)(2.0)

        @xtrace.jit
        def later(y):
            return y + saved["square"]

        later(1.0)
        """,
        error="UnexpectedTracerError",
        says=[LEAK, "the function outer at", "y + saved"],
        underlined="x * x",
        fix="return the value from outer instead of storing it",
        in_message=True,
        right="""
        @xtrace.jit
        def outer(x):
            return x, x * x

        _, square = outer(2.0)

        @xtrace.jit
        def later(y):
            return y + square

        later(1.0)
        """,
    ),
    WrongProgram(
        "value_of_a_loop_kept_by_its_body",
        """
        seen = []

        def body(i, x):
            seen.append(x)
            return x + i

        lax.fori_loop(0, 3, body, 0)
        jnp.stack(seen)
        """,
        error="UnexpectedTracerError",
        says=[LEAK, "the argument x", "for fori_loop had ended"],
        underlined="jnp.stack(seen)",
        fix="return the value from body instead of storing it",
        in_message=True,
        right="""
        def body(x, i):
            return x + i, x

        final, seen = lax.scan(body, 0, jnp.arange(3))
        """,
    ),
    WrongProgram(
        "leak_found_where_it_happens",
        """
        history = []

        @xtrace.jit
        def step(x):
            history.append(x * 2)
            return x

        with xtrace.checking_leaks():
            step(1.0)
        """,
        error="UnexpectedTracerError",
        says=["f32[]", "is still held after the trace", "it is item 0 of a list, the global history"],
        underlined="x * 2",
        fix="return the value from step instead of storing it",
        jax="Exception",
        why="jax raises a plain Exception",
        in_message=True,
        right="""
        @xtrace.jit
        def step(x):
            return x, x * 2

        with xtrace.checking_leaks():
            x, doubled = step(1.0)
        """,
    ),
    WrongProgram(
        "leak_through_a_default_cache",
        """
        import functools

        @functools.lru_cache
        def table():
            return jnp.arange(3) * 2

        @xtrace.jit
        def f(x):
            return x + table()

        f(1.0)
        table() + 1
        """,
        error="UnexpectedTracerError",
        says=[LEAK, "the function f at", "table() + 1"],
        underlined="jnp.arange(3) * 2",
        fix="return the value from table instead of storing it",
        in_message=True,
        nth=0,
        right="""
        import functools

        @functools.lru_cache
        def table():
            return np.arange(3) * 2

        @xtrace.jit
        def f(x):
            return x + table()

        f(1.0)
        table() + 1
        """,
    ),
    WrongProgram(
        "leak_out_of_grad",
        """
        kept = []

        def loss(w):
            kept.append(w * 2)
            return w ** 2

        xtrace.grad(loss)(3.0)
        kept[0] + 1
        """,
        error="UnexpectedTracerError",
        says=[LEAK, "for grad had ended", "kept[0] + 1"],
        underlined="w * 2",
        fix="return the value from loss instead of storing it",
        in_message=True,
        right="""
        def loss(w):
            return w ** 2, w * 2

        slope, kept = xtrace.grad(loss, has_aux=True)(3.0)
        kept + 1
        """,
    ),
]
