"""Shapes: sizes and selections that depend on values"""

from tests.errors.wrong_program import WrongProgram

SHAPES = "Shapes must be 1D sequences of concrete values of integer type, got "
MASK = "Array boolean indices must be concrete; got ShapedArray(bool["

PROGRAMS = [
    WrongProgram(
        "zeros_of_an_argument",
        """
        @xtrace.jit
        def empty(n):
            return jnp.zeros(n)

        empty(3)
        """,
        error="TypeError",
        says=[SHAPES, "value of the argument n."],
        underlined="jnp.zeros(n)",
        fix='xtrace.jit(empty, static_argnames=["n"])',
        right="""
        def empty(n):
            return jnp.zeros(n)

        xtrace.jit(empty, static_argnames=["n"])(3)
        """,
    ),
    WrongProgram(
        "full_of_two_sizes",
        """
        @xtrace.jit
        def table(n, value):
            return jnp.full((n, 2), value)

        table(3, 1.0)
        """,
        error="TypeError",
        says=[SHAPES, "value of the argument n."],
        underlined="jnp.full((n, 2), value)",
        fix='xtrace.jit(table, static_argnames=["n"])',
        right="""
        def table(n, value):
            return jnp.full((n, 2), value)

        xtrace.jit(table, static_argnames=["n"])(3, 1.0)
        """,
    ),
    WrongProgram(
        "range_array_of_an_argument",
        """
        @xtrace.jit
        def positions(n):
            return jnp.arange(n)

        positions(4)
        """,
        error="ConcretizationTypeError",
        says=["Abstract tracer value encountered where concrete value is expected", "value of the argument n."],
        underlined="jnp.arange(n)",
        fix='xtrace.jit(positions, static_argnames=["n"])',
        right="""
        def positions(n):
            return jnp.arange(n)

        xtrace.jit(positions, static_argnames=["n"])(4)
        """,
    ),
    WrongProgram(
        "grid_of_a_traced_number_of_points",
        """
        @xtrace.jit
        def grid(n):
            return jnp.linspace(0, 1, n)

        grid(5)
        """,
        error="ConcretizationTypeError",
        says=["Abstract tracer value encountered where concrete value is expected", "value of the argument n."],
        underlined="jnp.linspace(0, 1, n)",
        fix='xtrace.jit(grid, static_argnames=["n"])',
        right="""
        def grid(n):
            return jnp.linspace(0, 1, n)

        xtrace.jit(grid, static_argnames=["n"])(5)
        """,
    ),
    WrongProgram(
        "flatten_by_a_product_of_the_shape",
        """
        @xtrace.jit
        def flat(x):
            return x.reshape(jnp.array(x.shape).prod())

        flat(jnp.ones((2, 3)))
        """,
        error="TypeError",
        says=[
            SHAPES + "[JitTracer(int32[])",
            "If using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions.",
            "This value became a tracer due to xtrace operations on these lines:",
        ],
        underlined="x.reshape(jnp.array(x.shape).prod())",
        fix="x.reshape(np.prod(x.shape))",
        right="""
        @xtrace.jit
        def flat(x):
            return x.reshape(np.prod(x.shape))

        flat(jnp.ones((2, 3)))
        """,
    ),
    WrongProgram(
        "half_of_the_length",
        """
        @xtrace.jit
        def halves(x):
            half = jnp.floor_divide(x.shape[0], 2)
            return x.reshape(2, half)

        halves(jnp.arange(6))
        """,
        error="TypeError",
        says=[SHAPES, "jnp.floor_divide(x.shape[0], 2)"],
        underlined="x.reshape(2, half)",
        fix="numpy",
        right="""
        @xtrace.jit
        def halves(x):
            half = x.shape[0] // 2
            return x.reshape(2, half)

        halves(jnp.arange(6))
        """,
    ),
    WrongProgram(
        "broadcast_to_an_argument",
        """
        @xtrace.jit
        def rows(x, n):
            return jnp.broadcast_to(x, (n, 3))

        rows(jnp.ones(3), 2)
        """,
        error="TypeError",
        says=[SHAPES, "value of the argument n."],
        underlined="jnp.broadcast_to(x, (n, 3))",
        fix='xtrace.jit(rows, static_argnames=["n"])',
        right="""
        def rows(x, n):
            return jnp.broadcast_to(x, (n, 3))

        xtrace.jit(rows, static_argnames=["n"])(jnp.ones(3), 2)
        """,
    ),
    WrongProgram(
        "elements_below_zero",
        """
        @xtrace.jit
        def get_negatives(x):
            return x[x < 0]

        get_negatives(jnp.arange(10.0))
        """,
        error="NonConcreteBooleanIndexError",
        says=[MASK + "10])", "value of the argument x."],
        underlined="x[x < 0]",
        fix="jnp.where(x < 0, x, fill)",
        right="""
        @xtrace.jit
        def get_negatives(x):
            return jnp.where(x < 0, x, jnp.nan)

        get_negatives(jnp.arange(10.0))
        """,
    ),
    WrongProgram(
        "sum_of_the_selected",
        """
        @xtrace.jit
        def loss(x, valid):
            return x[valid].mean()

        loss(jnp.ones(3), jnp.array([True, False, True]))
        """,
        error="NonConcreteBooleanIndexError",
        says=[MASK + "3])", "value of the argument valid."],
        underlined="x[valid]",
        fix="jnp.mean(x, where=valid)",
        right="""
        @xtrace.jit
        def loss(x, valid):
            return jnp.mean(x, where=valid)

        loss(jnp.ones(3), jnp.array([True, False, True]))
        """,
    ),
    WrongProgram(
        "mask_written_with_values_of_its_size",
        """
        @xtrace.jit
        def fill(x, mask, values):
            return x.at[mask].set(values)

        fill(jnp.zeros(3), jnp.array([True, False, True]), jnp.ones(2))
        """,
        error="NonConcreteBooleanIndexError",
        says=[MASK + "3])", "value of the argument mask."],
        underlined="x.at[mask].set(values)",
        fix="jnp.where(mask, ",
        right="""
        @xtrace.jit
        def fill(x, mask, values):
            position = jnp.cumsum(mask) - 1
            return jnp.where(mask, values[position], x)

        fill(jnp.zeros(3), jnp.array([True, False, True]), jnp.ones(2))
        """,
    ),
    WrongProgram(
        "nonzero_without_a_size",
        """
        @xtrace.jit
        def hits(x):
            return jnp.nonzero(x > 0)[0]

        hits(jnp.array([1.0, -1.0, 2.0]))
        """,
        error="ConcretizationTypeError",
        says=["Abstract tracer value encountered where concrete value is expected", "value of the argument x."],
        underlined="jnp.nonzero(x > 0)",
        fix="jnp.nonzero(x > 0, size=N)",
        right="""
        @xtrace.jit
        def hits(x):
            return jnp.nonzero(x > 0, size=3, fill_value=-1)[0]

        hits(jnp.array([1.0, -1.0, 2.0]))
        """,
    ),
    WrongProgram(
        "where_with_one_argument",
        """
        @xtrace.jit
        def hits(x):
            return jnp.where(x > 0)

        hits(jnp.arange(4))
        """,
        error="ConcretizationTypeError",
        says=["Abstract tracer value encountered where concrete value is expected", "value of the argument x."],
        underlined="jnp.where(x > 0)",
        fix="jnp.where(x > 0, size=N)",
        right="""
        @xtrace.jit
        def hits(x):
            return jnp.where(x > 0, size=4)

        hits(jnp.arange(4))
        """,
    ),
    WrongProgram(
        "unique_without_a_size",
        """
        @xtrace.jit
        def labels(x):
            return jnp.unique(x)

        labels(jnp.array([1, 1, 2]))
        """,
        error="ConcretizationTypeError",
        says=["Abstract tracer value encountered where concrete value is expected", "value of the argument x."],
        underlined="jnp.unique(x)",
        fix="jnp.unique(x, size=N)",
        right="""
        @xtrace.jit
        def labels(x):
            return jnp.unique(x, size=2)

        labels(jnp.array([1, 1, 2]))
        """,
    ),
    WrongProgram(
        "repeat_without_a_total_length",
        """
        @xtrace.jit
        def expand(x, counts):
            return jnp.repeat(x, counts)

        expand(jnp.arange(2), jnp.array([1, 2]))
        """,
        error="ConcretizationTypeError",
        says=["Abstract tracer value encountered where concrete value is expected", "value of the argument counts."],
        underlined="jnp.repeat(x, counts)",
        fix="jnp.repeat(x, counts, total_repeat_length=N)",
        right="""
        @xtrace.jit
        def expand(x, counts):
            return jnp.repeat(x, counts, total_repeat_length=3)

        expand(jnp.arange(2), jnp.array([1, 2]))
        """,
    ),
    WrongProgram(
        "counts_without_a_length",
        """
        @xtrace.jit
        def histogram(x):
            return jnp.bincount(x)

        histogram(jnp.array([0, 1, 1]))
        """,
        error="ConcretizationTypeError",
        says=["Abstract tracer value encountered where concrete value is expected", "value of the argument x."],
        underlined="jnp.bincount(x)",
        fix="jnp.bincount(x, length=N)",
        right="""
        @xtrace.jit
        def histogram(x):
            return jnp.bincount(x, length=2)

        histogram(jnp.array([0, 1, 1]))
        """,
    ),
    WrongProgram(
        "window_with_a_traced_start",
        """
        @xtrace.jit
        def window(x, i):
            return x[i:i + 2]

        window(jnp.arange(5), 1)
        """,
        error="IndexError",
        says=["static integers", "value of the argument i."],
        underlined="x[i:i + 2]",
        fix="lax.dynamic_slice_in_dim(x, i, 2)",
        right="""
        @xtrace.jit
        def window(x, i):
            return lax.dynamic_slice_in_dim(x, i, 2)

        window(jnp.arange(5), 1)
        """,
    ),
    WrongProgram(
        "first_elements",
        """
        @xtrace.jit
        def total(x, n):
            return x[:n].sum()

        total(jnp.arange(5), 2)
        """,
        error="IndexError",
        says=["static integers", "value of the argument n."],
        underlined="x[:n]",
        fix="jnp.where(jnp.arange(len(x)) < n, x, 0)",
        right="""
        @xtrace.jit
        def total(x, n):
            return jnp.where(jnp.arange(len(x)) < n, x, 0).sum()

        total(jnp.arange(5), 2)
        """,
    ),
    WrongProgram(
        "dynamic_slice_of_a_traced_size",
        """
        @xtrace.jit
        def window(x, i, n):
            return lax.dynamic_slice(x, (i,), (n,))

        window(jnp.arange(5), 1, 2)
        """,
        error="TypeError",
        says=[SHAPES, "value of the argument n."],
        underlined="lax.dynamic_slice(x, (i,), (n,))",
        fix='xtrace.jit(window, static_argnames=["n"])',
        right="""
        def window(x, i, n):
            return lax.dynamic_slice(x, (i,), (n,))

        xtrace.jit(window, static_argnames=["n"])(jnp.arange(5), 1, 2)
        """,
    ),
    WrongProgram(
        "one_hot_of_a_traced_number_of_classes",
        """
        @xtrace.jit
        def encode(label, classes):
            return xtrace.nn.one_hot(label, classes)

        encode(1, 3)
        """,
        error="ConcretizationTypeError",
        says=["Abstract tracer value encountered where concrete value is expected", "value of the argument classes."],
        underlined="xtrace.nn.one_hot(label, classes)",
        fix='xtrace.jit(encode, static_argnames=["classes"])',
        right="""
        def encode(label, classes):
            return xtrace.nn.one_hot(label, classes)

        xtrace.jit(encode, static_argnames=["classes"])(1, 3)
        """,
    ),
    WrongProgram(
        "random_numbers_of_a_traced_shape",
        """
        @xtrace.jit
        def noise(key, n):
            return random.normal(key, (n,))

        noise(random.key(0), 3)
        """,
        error="TypeError",
        says=[SHAPES, "value of the argument n."],
        underlined="random.normal(key, (n,))",
        fix='xtrace.jit(noise, static_argnames=["n"])',
        right="""
        def noise(key, n):
            return random.normal(key, (n,))

        xtrace.jit(noise, static_argnames=["n"])(random.key(0), 3)
        """,
    ),
    WrongProgram(
        "split_into_a_traced_number_of_keys",
        """
        @xtrace.jit
        def keys(key, n):
            return random.split(key, n)

        keys(random.key(0), 3)
        """,
        error="TracerIntegerConversionError",
        says=["value of the argument n."],
        underlined="random.split(key, n)",
        fix='xtrace.jit(keys, static_argnames=["n"])',
        right="""
        def keys(key, n):
            return random.split(key, n)

        xtrace.jit(keys, static_argnames=["n"])(random.key(0), 3)
        """,
    ),
    WrongProgram(
        "split_at_traced_positions",
        """
        @xtrace.jit
        def parts(x, at):
            return jnp.split(x, [at])

        parts(jnp.arange(5), 2)
        """,
        error="ConcretizationTypeError",
        says=["Abstract tracer value encountered where concrete value is expected", "value of the argument at."],
        underlined="jnp.split(x, [at])",
        fix='xtrace.jit(parts, static_argnames=["at"])',
        right="""
        def parts(x, at):
            return jnp.split(x, [at])

        xtrace.jit(parts, static_argnames=["at"])(jnp.arange(5), 2)
        """,
    ),
    WrongProgram(
        "mask_and_slice",
        """
        @xtrace.jit
        def chosen(x, rows):
            return x[rows, :]

        chosen(jnp.ones((2, 3)), jnp.array([True, False]))
        """,
        error="NonConcreteBooleanIndexError",
        says=[MASK + "2])", "value of the argument rows."],
        underlined="x[rows, :]",
        fix="x[jnp.nonzero(rows, size=N)[0], :]",
        right="""
        @xtrace.jit
        def chosen(x, rows):
            return x[jnp.nonzero(rows, size=1)[0], :]

        chosen(jnp.ones((2, 3)), jnp.array([True, False]))
        """,
    ),
    WrongProgram(
        "slice_written_at_a_traced_start",
        """
        @xtrace.jit
        def put(x, values, i):
            return x.at[i:i + 2].set(values)

        put(jnp.zeros(5), jnp.ones(2), 1)
        """,
        error="IndexError",
        says=["static integers", "value of the argument i."],
        underlined="x.at[i:i + 2].set(values)",
        fix="lax.dynamic_update_slice_in_dim(x, values, i, axis=0)",
        right="""
        @xtrace.jit
        def put(x, values, i):
            return lax.dynamic_update_slice_in_dim(x, values, i, axis=0)

        put(jnp.zeros(5), jnp.ones(2), 1)
        """,
    ),
]
