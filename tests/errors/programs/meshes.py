"""Meshes and shardings: the devices that arrays and programs are on"""

from tests.errors.wrong_program import WrongProgram

PROGRAMS = [
    WrongProgram(
        "dimension_that_does_not_divide",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        xtrace.device_put(jnp.ones((6, 3)), NamedSharding(mesh, P("data")))
        """,
        error="IndivisibleError",
        says=["array axis 0", "dimension size is 6", "'data' of size 4"],
        underlined='xtrace.device_put(jnp.ones((6, 3)), NamedSharding(mesh, P("data")))',
        fix="Pad it to 8",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        xtrace.device_put(jnp.ones((8, 3)), NamedSharding(mesh, P("data")))
        """,
    ),
    WrongProgram(
        "leaf_that_does_not_divide",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        xtrace.device_put({"w": jnp.ones((8, 3)), "b": jnp.ones(3)}, NamedSharding(mesh, P("data")))
        """,
        error="IndivisibleError",
        says=["x['b']", "dimension size is 3"],
        underlined='xtrace.device_put({"w": jnp.ones((8, 3)), "b": jnp.ones(3)}, NamedSharding(mesh, P("data")))',
        fix="leave it whole with None",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        s = NamedSharding(mesh, P("data"))
        xtrace.device_put({"w": jnp.ones((8, 3)), "b": jnp.ones(3)}, {"w": s, "b": NamedSharding(mesh, P(None))})
        """,
    ),
    WrongProgram(
        "argument_that_does_not_divide",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.jit(lambda params: params["w"].sum(), in_shardings=NamedSharding(mesh, P("data")))
        f({"w": np.ones((6, 3))})
        """,
        error="IndivisibleError",
        says=["arguments with pytree key path params['w']", "dimension size is 6", "'data' of size 4"],
        underlined='f({"w": np.ones((6, 3))})',
        fix="Pad it to 8",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.jit(lambda params: params["w"].sum(), in_shardings=NamedSharding(mesh, P("data")))
        f({"w": np.ones((8, 3))})
        """,
    ),
    WrongProgram(
        "result_that_does_not_divide",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.jit(lambda x: {"y": x}, out_shardings=NamedSharding(mesh, P("data")))
        f(np.ones((6, 3)))
        """,
        error="IndivisibleError",
        says=["result['y']", "dimension size is 6"],
        underlined="f(np.ones((6, 3)))",
        fix="leave it whole with None",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.jit(lambda x: {"y": x}, out_shardings=NamedSharding(mesh, P(None)))
        f(np.ones((6, 3)))
        """,
    ),
    WrongProgram(
        "mesh_axis_misspelt",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        NamedSharding(mesh, P("date", "model"))
        """,
        error="ValueError",
        says=["date", "('data', 'model')"],
        underlined='NamedSharding(mesh, P("date", "model"))',
        fix="write 'data'",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        NamedSharding(mesh, P("data", "model"))
        """,
    ),
    WrongProgram(
        "mesh_axis_used_twice",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        NamedSharding(mesh, P("data", "data"))
        """,
        error="DuplicateSpecError",
        says=["dimensions 0 and 1"],
        underlined='NamedSharding(mesh, P("data", "data"))',
        fix="Write None for dimension 1",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        NamedSharding(mesh, P("data", None))
        """,
    ),
    WrongProgram(
        "spec_longer_than_the_rank",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        xtrace.device_put(jnp.ones(8), NamedSharding(mesh, P("data", "model")))
        """,
        error="ValueError",
        says=["rank at least 2", "shape (8,)"],
        underlined='xtrace.device_put(jnp.ones(8), NamedSharding(mesh, P("data", "model")))',
        fix="Write P('data',)",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        xtrace.device_put(jnp.ones(8), NamedSharding(mesh, P("data")))
        """,
    ),
    WrongProgram(
        "argument_of_too_few_dimensions",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.jit(lambda params: params["b"], in_shardings=NamedSharding(mesh, P("data", "model")))
        f({"b": jnp.ones(8)})
        """,
        error="ValueError",
        says=["params['b']", "rank at least 2"],
        underlined='f({"b": jnp.ones(8)})',
        fix="Write P('data',)",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.jit(lambda params: params["b"], in_shardings=NamedSharding(mesh, P("data")))
        f({"b": jnp.ones(8)})
        """,
    ),
    WrongProgram(
        "scalar_result_with_a_spec",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.jit(lambda x: {"loss": x.sum()}, out_shardings=NamedSharding(mesh, P("data")))
        f(np.ones((8, 3)))
        """,
        error="ValueError",
        says=["result['loss']", "rank 0"],
        underlined="f(np.ones((8, 3)))",
        fix="Write P()",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.jit(lambda x: {"loss": x.sum()}, out_shardings=NamedSharding(mesh, P()))
        f(np.ones((8, 3)))
        """,
    ),
    WrongProgram(
        "spec_that_is_a_tuple",
        """
        from xtrace.sharding import AxisType, NamedSharding
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        NamedSharding(mesh, ("data", "model"))
        """,
        error="TypeError",
        says=["spec must be a PartitionSpec"],
        underlined='NamedSharding(mesh, ("data", "model"))',
        fix="write xtrace.P('data', 'model')",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        NamedSharding(mesh, P("data", "model"))
        """,
        jax="AttributeError",
        why="jax looks for an attribute of the tuple",
    ),
    WrongProgram(
        "spec_that_is_none",
        """
        from xtrace.sharding import AxisType, NamedSharding
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        NamedSharding(mesh, None)
        """,
        error="TypeError",
        says=["spec must be a PartitionSpec"],
        underlined="NamedSharding(mesh, None)",
        fix="write xtrace.P()",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        NamedSharding(mesh, P())
        """,
    ),
    WrongProgram(
        "devices_in_place_of_a_mesh",
        """
        from xtrace.sharding import NamedSharding, PartitionSpec as P

        NamedSharding(xtrace.devices(), P("data"))
        """,
        error="TypeError",
        says=["mesh must be a Mesh"],
        underlined='NamedSharding(xtrace.devices(), P("data"))',
        fix="such as make_mesh returns",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        NamedSharding(mesh, P("data"))
        """,
        jax="AttributeError",
        why="jax looks for an attribute of the list",
    ),
    WrongProgram(
        "spec_without_a_mesh",
        """
        from xtrace.sharding import PartitionSpec as P

        xtrace.device_put(jnp.ones(8), P("data"))
        """,
        error="NoMeshError",
        says=["device_put requires a non-empty mesh"],
        underlined='xtrace.device_put(jnp.ones(8), P("data"))',
        fix="Write with xtrace.set_mesh(mesh):",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        with xtrace.set_mesh(mesh):
            xtrace.device_put(jnp.ones(8), P("data"))
        """,
    ),
    WrongProgram(
        "constraint_without_a_mesh",
        """
        from xtrace.sharding import PartitionSpec as P

        xtrace.jit(lambda x: lax.with_sharding_constraint(x, P("data")))(jnp.ones(8))
        """,
        error="NoMeshError",
        says=["with_sharding_constraint requires a non-empty mesh"],
        underlined='lax.with_sharding_constraint(x, P("data"))',
        fix="Write with xtrace.set_mesh(mesh):",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        with xtrace.set_mesh(mesh):
            xtrace.jit(lambda x: lax.with_sharding_constraint(x, P("data")))(jnp.ones(8))
        """,
    ),
    WrongProgram(
        "array_put_to_a_mesh",
        """
        from xtrace.sharding import AxisType
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        xtrace.device_put(jnp.ones(8), mesh)
        """,
        error="ValueError",
        says=["device must be a device", "Mesh("],
        underlined="xtrace.device_put(jnp.ones(8), mesh)",
        fix="a sharding",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        xtrace.device_put(jnp.ones(8), NamedSharding(mesh, P()))
        """,
    ),
    WrongProgram(
        "shardings_of_another_structure",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        s = NamedSharding(mesh, P("data"))
        xtrace.device_put({"w": jnp.ones(8), "b": jnp.ones(8)}, {"w": s})
        """,
        error="ValueError",
        says=["keys ['w'] against one with ['b']"],
        underlined='xtrace.device_put({"w": jnp.ones(8), "b": jnp.ones(8)}, {"w": s})',
        fix="a tree of these like x",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        s = NamedSharding(mesh, P("data"))
        xtrace.device_put({"w": jnp.ones(8), "b": jnp.ones(8)}, {"w": s, "b": s})
        """,
    ),
    WrongProgram(
        "arguments_on_two_meshes",
        """
        from xtrace.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        other = Mesh(xtrace.devices()[:4], "data")
        params = {"w": xtrace.device_put(jnp.ones(8), NamedSharding(mesh, P("data")))}
        x = xtrace.device_put(jnp.ones(8), NamedSharding(other, P("data")))
        @xtrace.jit
        def f(params, x):
            return params["w"] + x
        f(params, x)
        """,
        error="ValueError",
        says=["argument params['w'] of f", "argument x of f", "[0, 1, 2, 3]"],
        underlined="f(params, x)",
        fix="use one mesh for both",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        s = NamedSharding(mesh, P("data"))
        params = {"w": xtrace.device_put(jnp.ones(8), s)}
        x = xtrace.device_put(jnp.ones(8), s)
        @xtrace.jit
        def f(params, x):
            return params["w"] + x
        f(params, x)
        """,
        nth=1,
    ),
    WrongProgram(
        "mesh_and_one_device",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        x = xtrace.device_put(jnp.ones(8), NamedSharding(mesh, P("data")))
        y = xtrace.device_put(jnp.ones(8), xtrace.devices()[0])
        x + y
        """,
        error="ValueError",
        says=["on cpu:0", "[0, 1, 2, 3, 4, 5, 6, 7]"],
        underlined="x + y",
        fix="use one mesh for both",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        x = xtrace.device_put(jnp.ones(8), NamedSharding(mesh, P("data")))
        y = xtrace.device_put(jnp.ones(8), NamedSharding(mesh, P()))
        x + y
        """,
    ),
    WrongProgram(
        "constraint_on_another_mesh",
        """
        from xtrace.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        other = Mesh(xtrace.devices()[:4], "data")
        x = xtrace.device_put(jnp.ones(8), NamedSharding(mesh, P("data")))
        f = xtrace.jit(lambda x: lax.with_sharding_constraint(x, NamedSharding(other, P("data"))))
        f(x)
        """,
        error="ValueError",
        says=["argument x of <lambda>", "the function's mesh"],
        underlined="f(x)",
        fix="use one mesh for both",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        x = xtrace.device_put(jnp.ones(8), NamedSharding(mesh, P("data")))
        f = xtrace.jit(lambda x: lax.with_sharding_constraint(x, NamedSharding(mesh, P("model"))))
        f(x)
        """,
    ),
    WrongProgram(
        "misspelt_axis_of_the_mesh_in_force",
        """
        from xtrace.sharding import PartitionSpec as P

        other = xtrace.make_mesh((8,), ("batch",))
        with xtrace.set_mesh(other):
            xtrace.jit(lambda x: x, in_shardings=P("bacth"))(jnp.ones(8))
        """,
        error="ValueError",
        says=["bacth", "('batch',)"],
        underlined='xtrace.jit(lambda x: x, in_shardings=P("bacth"))(jnp.ones(8))',
        fix="write 'batch'",
        in_message=False,
        right="""
        from xtrace.sharding import PartitionSpec as P

        other = xtrace.make_mesh((8,), ("batch",))
        with xtrace.set_mesh(other):
            xtrace.jit(lambda x: x, in_shardings=P("batch"))(np.ones(8))
        """,
    ),
    WrongProgram(
        "set_mesh_in_a_jitted_function",
        """
        from xtrace.sharding import AxisType
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        @xtrace.jit
        def f(x):
            with xtrace.set_mesh(mesh):
                return x
        f(jnp.ones(8))
        """,
        error="ValueError",
        says=["a function is being traced"],
        underlined="xtrace.set_mesh(mesh)",
        fix="Call set_mesh outside of it",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        @xtrace.jit
        def f(x):
            return x
        with xtrace.set_mesh(mesh):
            f(jnp.ones(8))
        """,
    ),
    WrongProgram(
        "mesh_larger_than_the_machine",
        """
        xtrace.make_mesh((4, 4), ("a", "b"))
        """,
        error="ValueError",
        says=["Number of devices 8", "(4, 4), 16"],
        underlined='xtrace.make_mesh((4, 4), ("a", "b"))',
        fix="XTRACE_NUM_CPU_DEVICES=16",
        in_message=False,
        right="""
        xtrace.make_mesh((4, 2), ("a", "b"))
        """,
    ),
    WrongProgram(
        "mesh_with_too_few_names",
        """
        xtrace.make_mesh((4, 2), ("data",))
        """,
        error="ValueError",
        says=["('data',)", "(4, 2)"],
        underlined='xtrace.make_mesh((4, 2), ("data",))',
        fix="a name for each axis",
        in_message=False,
        right="""
        xtrace.make_mesh((4, 2), ("data", "model"))
        """,
    ),
    WrongProgram(
        "mesh_size_without_a_tuple",
        """
        xtrace.make_mesh(8, "data")
        """,
        error="TypeError",
        says=["axis_shapes must be a sequence of integers"],
        underlined='xtrace.make_mesh(8, "data")',
        fix="write (8,)",
        in_message=False,
        right="""
        xtrace.make_mesh((8,), "data")
        """,
    ),
    WrongProgram(
        "devices_that_are_no_grid",
        """
        from xtrace.sharding import Mesh

        Mesh(xtrace.devices(), ("data", "model"))
        """,
        error="ValueError",
        says=["Mesh requires the ndim", "of shape (8,)", "('data', 'model')"],
        underlined='Mesh(xtrace.devices(), ("data", "model"))',
        fix="xtrace.make_mesh(sizes, ('data', 'model'))",
        in_message=False,
        right="""
        xtrace.make_mesh((4, 2), ("data", "model"))
        """,
    ),
    WrongProgram(
        "device_twice_in_a_mesh",
        """
        from xtrace.sharding import Mesh, NamedSharding, PartitionSpec as P

        d = xtrace.devices()
        m = Mesh([d[0], d[0]], "data")
        xtrace.device_put(jnp.ones(8), NamedSharding(m, P("data")))
        """,
        error="ValueError",
        says=["cpu:0 is at (0,) and at (1,)"],
        underlined='Mesh([d[0], d[0]], "data")',
        fix="give each device once",
        in_message=False,
        right="""
        from xtrace.sharding import Mesh, NamedSharding, PartitionSpec as P

        m = Mesh(xtrace.devices()[:2], "data")
        xtrace.device_put(jnp.ones(8), NamedSharding(m, P("data")))
        """,
        jax="AssertionError",
        why="jax asserts when the mesh is used",
    ),
    WrongProgram(
        "mesh_of_numbers",
        """
        from xtrace.sharding import Mesh, NamedSharding, PartitionSpec as P

        m = Mesh([0, 1, 2, 3], "data")
        xtrace.device_put(jnp.ones(8), NamedSharding(m, P("data")))
        """,
        error="TypeError",
        says=["devices must be devices"],
        underlined='Mesh([0, 1, 2, 3], "data")',
        fix="xtrace.make_mesh(sizes, axis_names)",
        in_message=False,
        right="""
        from xtrace.sharding import NamedSharding, PartitionSpec as P

        m = xtrace.make_mesh((4,), "data")
        xtrace.device_put(jnp.ones(8), NamedSharding(m, P("data")))
        """,
        jax="AttributeError",
        why="jax looks for an attribute of the number",
    ),
    WrongProgram(
        "axis_types_of_another_number",
        """
        from xtrace.sharding import AxisType

        xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,))
        """,
        error="ValueError",
        says=["match the number of axis_types", "(Auto,) for ('data', 'model')"],
        underlined='xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,))',
        fix="a type for each axis name",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType

        xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
        """,
    ),
    WrongProgram(
        "axis_types_as_text",
        """
        xtrace.make_mesh((4, 2), ("data", "model"), axis_types=("auto", "auto"))
        """,
        error="TypeError",
        says=["axis_types passed to Mesh must be of type", "Got 'auto'"],
        underlined='xtrace.make_mesh((4, 2), ("data", "model"), axis_types=("auto", "auto"))',
        fix="xtrace.sharding.AxisType.Auto",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType

        xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
        """,
    ),
    WrongProgram(
        "in_shardings_of_another_length",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        s = NamedSharding(mesh, P("data"))
        xtrace.jit(lambda x, y: x + y, in_shardings=(s, s, s))(jnp.ones(8), jnp.ones(8))
        """,
        error="ValueError",
        says=["tuple of length 3 against tuple of length 2"],
        underlined="xtrace.jit(lambda x, y: x + y, in_shardings=(s, s, s))(jnp.ones(8), jnp.ones(8))",
        fix="Give one sharding for all",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        s = NamedSharding(mesh, P("data"))
        xtrace.jit(lambda x, y: x + y, in_shardings=(s, s))(jnp.ones(8), jnp.ones(8))
        """,
    ),
    WrongProgram(
        "in_shardings_without_the_tuple",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        s = NamedSharding(mesh, P("data"))
        xtrace.jit(lambda params: params["w"], in_shardings={"w": s})({"w": jnp.ones(8)})
        """,
        error="ValueError",
        says=["dict with keys ['w'] against tuple of length 1"],
        underlined='xtrace.jit(lambda params: params["w"], in_shardings={"w": s})({"w": jnp.ones(8)})',
        fix="a tree like the positional arguments tuple",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        s = NamedSharding(mesh, P("data"))
        xtrace.jit(lambda params: params["w"], in_shardings=({"w": s},))({"w": jnp.ones(8)})
        """,
    ),
    WrongProgram(
        "out_shardings_with_another_key",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        s = NamedSharding(mesh, P("data"))
        xtrace.jit(lambda x: {"loss": x}, out_shardings={"los": s})(jnp.ones(8))
        """,
        error="ValueError",
        says=["['los']", "['loss']"],
        underlined='xtrace.jit(lambda x: {"loss": x}, out_shardings={"los": s})(jnp.ones(8))',
        fix="a tree like the result",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        s = NamedSharding(mesh, P("data"))
        xtrace.jit(lambda x: {"loss": x}, out_shardings={"loss": s})(jnp.ones(8))
        """,
    ),
    WrongProgram(
        "in_shardings_as_text",
        """
        xtrace.jit(lambda x: x, in_shardings="data")(jnp.ones(8))
        """,
        error="TypeError",
        says=["in_shardings leaf", "'data'"],
        underlined='xtrace.jit(lambda x: x, in_shardings="data")',
        fix="xtrace.NamedSharding(mesh, xtrace.P('x'))",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        xtrace.jit(lambda x: x, in_shardings=NamedSharding(mesh, P("data")))(jnp.ones(8))
        """,
    ),
    WrongProgram(
        "in_shardings_and_keyword_arguments",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        s = NamedSharding(mesh, P("data"))
        xtrace.jit(lambda x, y: x + y, in_shardings=(s, s))(jnp.ones(8), y=jnp.ones(8))
        """,
        error="ValueError",
        says=["keyword arguments y"],
        underlined="xtrace.jit(lambda x, y: x + y, in_shardings=(s, s))(jnp.ones(8), y=jnp.ones(8))",
        fix="Pass these by position",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        s = NamedSharding(mesh, P("data"))
        xtrace.jit(lambda x, y: x + y, in_shardings=(s, s))(jnp.ones(8), jnp.ones(8))
        """,
    ),
    WrongProgram(
        "argument_with_another_sharding",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.jit(lambda params: params["w"], in_shardings=({"w": NamedSharding(mesh, P("data"))},))
        f({"w": xtrace.device_put(jnp.ones(8), NamedSharding(mesh, P("model")))})
        """,
        error="ValueError",
        says=["argument params['w']", "P('model',)", "P('data',)"],
        underlined='f({"w": xtrace.device_put(jnp.ones(8), NamedSharding(mesh, P("model")))})',
        fix="Move it with xtrace.device_put(x, sharding) first",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        s = NamedSharding(mesh, P("data"))
        f = xtrace.jit(lambda params: params["w"], in_shardings=({"w": s},))
        f({"w": xtrace.device_put(jnp.ones(8), s)})
        """,
    ),
    WrongProgram(
        "shardings_on_two_meshes",
        """
        from xtrace.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        other = Mesh(xtrace.devices()[:4], "data")
        here, there = NamedSharding(mesh, P("data")), NamedSharding(other, P("data"))
        xtrace.jit(lambda x: x, in_shardings=here, out_shardings=there)(jnp.ones(8))
        """,
        error="ValueError",
        says=["in_shardings on the devices", "out_shardings on the devices"],
        underlined="xtrace.jit(lambda x: x, in_shardings=here, out_shardings=there)(jnp.ones(8))",
        fix="use one mesh for both",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        here, there = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
        xtrace.jit(lambda x: x, in_shardings=here, out_shardings=there)(jnp.ones(8))
        """,
    ),
    WrongProgram(
        "compiled_for_another_sharding",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        s = NamedSharding(mesh, P("data"))
        x = xtrace.device_put(jnp.ones(8), s)
        c = xtrace.jit(lambda x: x * 2).lower(x).compile()
        c(xtrace.device_put(jnp.ones(8), NamedSharding(mesh, P("model"))))
        """,
        error="ValueError",
        says=["argument x", "P('model',)"],
        underlined='c(xtrace.device_put(jnp.ones(8), NamedSharding(mesh, P("model"))))',
        fix="Move it with xtrace.device_put",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        s = NamedSharding(mesh, P("data"))
        x = xtrace.device_put(jnp.ones(8), s)
        c = xtrace.jit(lambda x: x * 2).lower(x).compile()
        c(xtrace.device_put(jnp.ones(8), s))
        """,
    ),
    WrongProgram(
        "sharded_array_donated",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        x = xtrace.device_put(jnp.ones(8), NamedSharding(mesh, P("data")))
        step = xtrace.jit(lambda x: x + 1, donate_argnums=0)
        step(x)
        x + 1
        """,
        error="RuntimeError",
        says=["Array has been deleted"],
        underlined="x + 1",
        fix="keep a copy (x.copy())",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        x = xtrace.device_put(jnp.ones(8), NamedSharding(mesh, P("data")))
        step = xtrace.jit(lambda x: x + 1, donate_argnums=0)
        x = step(x)
        x + 1
        """,
        nth=1,
    ),
    WrongProgram(
        "sharded_array_deleted",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        x = xtrace.device_put(jnp.ones(8), NamedSharding(mesh, P("data")))
        x.delete()
        np.asarray(x)
        """,
        error="RuntimeError",
        says=["Array has been deleted"],
        underlined="np.asarray(x)",
        fix="keep a copy (x.copy())",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        x = xtrace.device_put(jnp.ones(8), NamedSharding(mesh, P("data")))
        np.asarray(x)
        """,
    ),
    WrongProgram(
        "memory_that_the_device_has_not",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        xtrace.jit(lambda x: x, out_shardings=NamedSharding(mesh, P("data"), memory_kind="vram"))(jnp.ones(8))
        """,
        error="ValueError",
        says=["'vram'", "pinned_host"],
        underlined='NamedSharding(mesh, P("data"), memory_kind="vram")',
        fix="memory_kind=None is its default",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        xtrace.jit(lambda x: x, out_shardings=NamedSharding(mesh, P("data")))(jnp.ones(8))
        """,
    ),
    WrongProgram(
        "in_specs_of_another_length",
        """
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.shard_map(lambda x, y: x + y, mesh=mesh, in_specs=(P("data"),), out_specs=P("data"))
        f(jnp.ones(8), jnp.ones(8))
        """,
        error="ValueError",
        says=["tuple of length 1 against tuple of length 2"],
        underlined="f(jnp.ones(8), jnp.ones(8))",
        fix="a tuple with one for each argument",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.shard_map(lambda x, y: x + y, mesh=mesh, in_specs=(P("data"), P("data")), out_specs=P("data"))
        f(jnp.ones(8), jnp.ones(8))
        """,
    ),
    WrongProgram(
        "in_specs_as_text",
        """
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.shard_map(lambda x: x, mesh=mesh, in_specs="data", out_specs=P("data"))
        f(jnp.ones(8))
        """,
        error="TypeError",
        says=["in_specs argument must be a pytree of `xtrace.sharding.PartitionSpec` instances"],
        underlined='xtrace.shard_map(lambda x: x, mesh=mesh, in_specs="data", out_specs=P("data"))',
        fix="xtrace.P('x')",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.shard_map(lambda x: x, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
        f(jnp.ones(8))
        """,
    ),
    WrongProgram(
        "out_specs_of_another_length",
        """
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.shard_map(lambda x: (x, x), mesh=mesh, in_specs=P("data"), out_specs=(P("data"),) * 3)
        f(jnp.ones(8))
        """,
        error="ValueError",
        says=["tuple of length 3 against tuple of length 2"],
        underlined="f(jnp.ones(8))",
        fix="a tree like the result",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.shard_map(lambda x: (x, x), mesh=mesh, in_specs=P("data"), out_specs=(P("data"),) * 2)
        f(jnp.ones(8))
        """,
    ),
    WrongProgram(
        "in_specs_longer_than_the_rank",
        """
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.shard_map(lambda params: params["b"], mesh=mesh, in_specs=P("data", "model"), out_specs=P("data"))
        f({"b": jnp.ones(8)})
        """,
        error="ValueError",
        says=["argument params['b']", "shape (8,)"],
        underlined='f({"b": jnp.ones(8)})',
        fix="Write P('data',)",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.shard_map(lambda params: params["b"], mesh=mesh, in_specs=P("data"), out_specs=P("data"))
        f({"b": jnp.ones(8)})
        """,
    ),
    WrongProgram(
        "out_specs_of_a_scalar",
        """
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.shard_map(lambda x: x.sum(), mesh=mesh, in_specs=P("data"), out_specs=P("data"))
        f(jnp.ones(8))
        """,
        error="ValueError",
        says=["too long to be compatible with result: P('data',)", "shape ()"],
        underlined="f(jnp.ones(8))",
        fix="x[None]",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.shard_map(lambda x: x.sum()[None], mesh=mesh, in_specs=P("data"), out_specs=P("data"))
        f(jnp.ones(8))
        """,
    ),
    WrongProgram(
        "shard_map_argument_that_does_not_divide",
        """
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.shard_map(lambda params: params["w"], mesh=mesh, in_specs=P("data"), out_specs=P("data"))
        f({"w": jnp.ones((6, 3))})
        """,
        error="ValueError",
        says=["argument params['w']", "array axis 0 (of size 6)", "('data',) (of total size 4)"],
        underlined='f({"w": jnp.ones((6, 3))})',
        fix="Pad it to 8",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.shard_map(lambda params: params["w"], mesh=mesh, in_specs=P("data"), out_specs=P("data"))
        f({"w": jnp.ones((8, 3))})
        """,
    ),
    WrongProgram(
        "result_that_varies",
        """
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.shard_map(lambda x: x.sum(), mesh=mesh, in_specs=P("data"), out_specs=P())
        f(jnp.ones(8))
        """,
        error="ValueError",
        says=["can't be statically inferred", "'data'"],
        underlined="f(jnp.ones(8))",
        fix="Return lax.psum(x, 'data')",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.shard_map(lambda x: lax.psum(x.sum(), "data"), mesh=mesh, in_specs=P("data"), out_specs=P())
        f(jnp.ones(8))
        """,
    ),
    WrongProgram(
        "collective_axis_misspelt",
        """
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.shard_map(lambda x: lax.psum(x, "dta"), mesh=mesh, in_specs=P("data"), out_specs=P())
        f(jnp.ones(8))
        """,
        error="NameError",
        says=["unbound axis name: dta"],
        underlined='lax.psum(x, "dta")',
        fix="write 'data'",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.shard_map(lambda x: lax.psum(x, "data"), mesh=mesh, in_specs=P("data"), out_specs=P())
        f(jnp.ones(8))
        """,
        jax="AssertionError",
        why="jax asserts without a message",
    ),
    WrongProgram(
        "axis_index_outside_of_shard_map",
        """
        from xtrace.sharding import AxisType
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        with xtrace.set_mesh(mesh):
            xtrace.jit(lambda: lax.axis_index("data"))()
        """,
        error="NameError",
        says=["unbound axis name: data"],
        underlined='lax.axis_index("data")',
        fix="call it in shard_map",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        with xtrace.set_mesh(mesh):
            xtrace.shard_map(lambda: lax.axis_index("data")[None], in_specs=(), out_specs=P("data"))()
        """,
    ),
    WrongProgram(
        "axis_names_not_in_the_mesh",
        """
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.shard_map(lambda x: x, mesh=mesh, in_specs=P("data"), out_specs=P("data"), axis_names={"dat"})
        f(jnp.ones(8))
        """,
        error="ValueError",
        says=["['dat']"],
        underlined="f(jnp.ones(8))",
        fix="for 'dat' write 'data'",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        spec = P("data")
        f = xtrace.shard_map(lambda x: x, mesh=mesh, in_specs=spec, out_specs=spec, axis_names={"data"})
        f(jnp.ones(8))
        """,
    ),
    WrongProgram(
        "in_specs_axis_misspelt",
        """
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.shard_map(lambda x: x, mesh=mesh, in_specs=P("dada"), out_specs=P("data"))
        f(jnp.ones(8))
        """,
        error="ValueError",
        says=["['data', 'model']", "'dada'"],
        underlined="f(jnp.ones(8))",
        fix="write 'data'",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.shard_map(lambda x: x, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
        f(jnp.ones(8))
        """,
    ),
    WrongProgram(
        "shard_map_nested_over_the_same_axes",
        """
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        def inner(x):
            return x
        def outer(x):
            return xtrace.shard_map(inner, mesh=mesh, in_specs=P("data"), out_specs=P("data"))(x)
        xtrace.shard_map(outer, mesh=mesh, in_specs=P("data"), out_specs=P("data"))(jnp.ones(16))
        """,
        error="ValueError",
        says=["['data', 'model'] of inner are manual already"],
        underlined='xtrace.shard_map(inner, mesh=mesh, in_specs=P("data"), out_specs=P("data"))(x)',
        fix="give axis_names= with others",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        def outer(x):
            return x + 1
        xtrace.shard_map(outer, mesh=mesh, in_specs=P("data"), out_specs=P("data"))(jnp.ones(16))
        """,
    ),
    WrongProgram(
        "shard_map_without_a_mesh",
        """
        from xtrace.sharding import PartitionSpec as P

        f = xtrace.shard_map(lambda x: x, in_specs=P("data"), out_specs=P("data"))
        f(jnp.ones(8))
        """,
        error="ValueError",
        says=["The context mesh cannot be empty"],
        underlined="f(jnp.ones(8))",
        fix="Give mesh=",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.shard_map(lambda x: x, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
        f(jnp.ones(8))
        """,
    ),
    WrongProgram(
        "shard_map_with_keyword_arguments",
        """
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.shard_map(lambda x: x, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
        f(x=jnp.ones(8))
        """,
        error="TypeError",
        says=["by position, got x by name"],
        underlined="f(x=jnp.ones(8))",
        fix="functools.partial",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        f = xtrace.shard_map(lambda x: x, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
        f(jnp.ones(8))
        """,
    ),
    WrongProgram(
        "explicit_array_closed_over",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)

        w = xtrace.device_put(jnp.ones(8), NamedSharding(mesh, P("data")))
        xtrace.shard_map(lambda x: x + w.sum(), mesh=mesh, in_specs=P("data"), out_specs=P("data"))(w)
        """,
        error="NotImplementedError",
        says=["float32[8@data]"],
        underlined='xtrace.shard_map(lambda x: x + w.sum(), mesh=mesh, in_specs=P("data"), out_specs=P("data"))(w)',
        fix="Make it an argument",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)

        w = xtrace.device_put(jnp.ones(8), NamedSharding(mesh, P("data")))
        xtrace.shard_map(lambda w: w + 1, mesh=mesh, in_specs=P("data"), out_specs=P("data"))(w)
        """,
    ),
    WrongProgram(
        "operands_with_different_shardings",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)

        x = xtrace.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P("data")))
        y = xtrace.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P("model")))
        x + y
        """,
        error="ShardingTypeError",
        says=["float32[8@data,8]", "float32[8@model,8]", "axis 0"],
        underlined="x + y",
        fix="xtrace.reshard(x, xtrace.P(...))",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)

        x = xtrace.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P("data")))
        y = xtrace.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P("model")))
        x + xtrace.sharding.reshard(y, P("data"))
        """,
    ),
    WrongProgram(
        "product_over_a_sharded_dimension",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)

        x = xtrace.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P(None, "data")))
        y = xtrace.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P("data")))
        x @ y
        """,
        error="ShardingTypeError",
        says=["Contracting dimensions are sharded", "float32[8,8@data]"],
        underlined="x @ y",
        fix="out_sharding=",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)

        x = xtrace.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P(None, "data")))
        y = xtrace.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P("data")))
        with xtrace.set_mesh(mesh):
            jnp.matmul(x, y, out_sharding=P(None, None))
        """,
    ),
    WrongProgram(
        "reshape_of_a_sharded_dimension",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)

        x = xtrace.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P(None, "data")))
        x.reshape(64)
        """,
        error="ShardingTypeError",
        says=["float32[8,8@data]", "(64,)"],
        underlined="x.reshape(64)",
        fix="out_sharding=",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)

        x = xtrace.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P(None, "data")))
        with xtrace.set_mesh(mesh):
            jnp.reshape(x, 64, out_sharding=P("data"))
        """,
    ),
    WrongProgram(
        "rows_of_a_sharded_array",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)

        x = xtrace.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P("data")))
        x[jnp.array([0, 1, 2])]
        """,
        error="ShardingTypeError",
        says=["float32[8@data,8]", "axis 0"],
        underlined="x[jnp.array([0, 1, 2])]",
        fix=".at[...].get(out_sharding=)",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)

        x = xtrace.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P("data")))
        with xtrace.set_mesh(mesh):
            x.at[jnp.array([0, 1, 2])].get(out_sharding=P(None, None))
        """,
    ),
    WrongProgram(
        "concatenation_of_different_shardings",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)

        x = xtrace.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P("data")))
        y = xtrace.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P("model")))
        jnp.concatenate([x, y])
        """,
        error="ShardingTypeError",
        says=["float32[8@data,8], float32[8@model,8]"],
        underlined="jnp.concatenate([x, y])",
        fix="xtrace.reshard",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)

        x = xtrace.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P("data")))
        jnp.concatenate([x, x])
        """,
    ),
    WrongProgram(
        "sort_along_a_sharded_dimension",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)

        x = xtrace.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P("data")))
        jnp.sort(x, axis=0)
        """,
        error="ShardingTypeError",
        says=["axis 0"],
        underlined="jnp.sort(x, axis=0)",
        fix="xtrace.reshard",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)

        x = xtrace.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P("data")))
        jnp.sort(x, axis=1)
        """,
    ),
    WrongProgram(
        "reshard_that_does_not_divide",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)

        xtrace.sharding.reshard({"w": jnp.ones(6)}, NamedSharding(mesh, P("data")))
        """,
        error="IndivisibleError",
        says=["xs['w']", "dimension size is 6"],
        underlined='xtrace.sharding.reshard({"w": jnp.ones(6)}, NamedSharding(mesh, P("data")))',
        fix="Pad it to 8",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)

        xtrace.sharding.reshard({"w": jnp.ones(8)}, NamedSharding(mesh, P("data")))
        """,
    ),
    WrongProgram(
        "pmap_over_more_than_the_devices",
        """
        xtrace.pmap(lambda x: x)(jnp.ones((9, 2)))
        """,
        error="ValueError",
        says=["size 9", "8 devices"],
        underlined="xtrace.pmap(lambda x: x)(jnp.ones((9, 2)))",
        fix="XTRACE_NUM_CPU_DEVICES=9",
        in_message=False,
        right="""
        xtrace.pmap(lambda x: x)(jnp.ones((8, 2)))
        """,
    ),
    WrongProgram(
        "pmap_in_axes_of_another_length",
        """
        xtrace.pmap(lambda x, y: x, in_axes=(0,))(jnp.ones((8, 2)), jnp.ones((8, 2)))
        """,
        error="ValueError",
        says=["2 arguments by position, got (0,)"],
        underlined="xtrace.pmap(lambda x, y: x, in_axes=(0,))(jnp.ones((8, 2)), jnp.ones((8, 2)))",
        fix="an entry for each",
        in_message=False,
        right="""
        xtrace.pmap(lambda x, y: x, in_axes=(0, 0))(jnp.ones((8, 2)), jnp.ones((8, 2)))
        """,
    ),
    WrongProgram(
        "pmap_out_axes_out_of_range",
        """
        xtrace.pmap(lambda x: x, out_axes=5)(jnp.ones((8, 2)))
        """,
        error="ValueError",
        says=["out_axes 5"],
        underlined="xtrace.pmap(lambda x: x, out_axes=5)(jnp.ones((8, 2)))",
        fix="Write a number from 0 to 1",
        in_message=False,
        right="""
        xtrace.pmap(lambda x: x, out_axes=1)(jnp.ones((8, 2)))
        """,
    ),
    WrongProgram(
        "pmap_of_an_unhashable_value",
        """
        xtrace.pmap(lambda x, names: x, static_broadcasted_argnums=1)(jnp.ones((8, 2)), ["a"])
        """,
        error="ValueError",
        says=["argument 1 of <lambda>", "['a']"],
        underlined='xtrace.pmap(lambda x, names: x, static_broadcasted_argnums=1)(jnp.ones((8, 2)), ["a"])',
        fix="a tuple for a list",
        in_message=False,
        right="""
        xtrace.pmap(lambda x, names: x, static_broadcasted_argnums=1)(jnp.ones((8, 2)), ("a",))
        """,
    ),
    WrongProgram(
        "number_of_devices_set_too_late",
        """
        jnp.ones(3)
        xtrace.config.update("jax_num_cpu_devices", 4)
        """,
        error="RuntimeError",
        says=["that has happened"],
        underlined='xtrace.config.update("jax_num_cpu_devices", 4)',
        fix="set it before the first computation",
        in_message=False,
        right="""
        jnp.ones(3)
        """,
    ),
    WrongProgram(
        "pieces_of_another_shape",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        s = NamedSharding(mesh, P("data"))
        pieces = [xtrace.device_put(jnp.ones(3), d) for d in xtrace.devices()]
        xtrace.make_array_from_single_device_arrays((8,), s, pieces)
        """,
        error="ValueError",
        says=["array shape (3,) of arrays[0]", "an array of shape (8,)"],
        underlined="xtrace.make_array_from_single_device_arrays((8,), s, pieces)",
        fix="Expected shard shape (2,)",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        s = NamedSharding(mesh, P("data"))
        pieces = [xtrace.device_put(jnp.ones(2), d) for d in mesh.devices.flat]
        xtrace.make_array_from_single_device_arrays((8,), s, pieces)
        """,
    ),
    WrongProgram(
        "callback_of_another_shape",
        """
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        s = NamedSharding(mesh, P("data"))
        xtrace.make_array_from_callback((8,), s, lambda index: np.ones(3))
        """,
        error="ValueError",
        says=["array shape (3,) of data_callback((slice(0, 2, None),))"],
        underlined="xtrace.make_array_from_callback((8,), s, lambda index: np.ones(3))",
        fix="Expected shard shape (2,)",
        in_message=False,
        right="""
        from xtrace.sharding import AxisType, NamedSharding, PartitionSpec as P
        mesh = xtrace.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

        s = NamedSharding(mesh, P("data"))
        xtrace.make_array_from_callback((8,), s, lambda index: np.ones(8)[index])
        """,
    ),
]
