"""Arrays and programs over the devices of several processes."""

import socket

from tests.distributed.processes import run


def test_two_processes_sum_an_array_over_both():
    """A jitted sum of an array with pieces in both processes is the same number in each."""
    codes, outputs = run(
        """
        assert xtrace.distributed.is_initialized()
        assert (xtrace.process_index(), xtrace.process_count()) == (process, 2)
        assert len(xtrace.devices()) == 4 and len(xtrace.local_devices()) == 2
        x = xtrace.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(mesh, P("data")))
        assert not x.is_fully_addressable and len(x.addressable_shards) == 2
        assert str(x) == repr(x) == "Array(shape=(8,), dtype=float32)"
        total = xtrace.jit(lambda x: (x * 2).sum())(x)
        assert "jax" not in sys.modules
        print("total", float(total))
        xtrace.distributed.shutdown()
        """
    )
    assert codes == [0, 0], outputs
    assert all("total 56.0" in text for text in outputs)


def test_different_programs_are_an_error_that_names_both():
    """Two processes that run different functions on an array over both get an error each, and do not hang."""
    codes, outputs = run(
        """
        x = xtrace.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(mesh, P("data")))

        def total(x):
            return x.sum()

        def largest(x):
            return x.max()

        try:
            xtrace.jit(total if process == 0 else largest)(x)
        except RuntimeError as error:
            print("error:", error)
        xtrace.distributed.shutdown()
        """
    )
    assert codes == [0, 0], outputs
    assert all("total" in text and "largest" in text and "part at a program" in text for text in outputs)


def test_processes_exchange_data():
    """Gathering, broadcasting, comparing and converting between local and global arrays give the same in each."""
    codes, outputs = run(
        """
        from xtrace.experimental import multihost_utils as together
        own = {"a": np.arange(3) + 10 * process, "b": jnp.float32(process)}
        gathered = together.process_allgather(own)
        assert gathered["a"].tolist() == [[0, 1, 2], [10, 11, 12]] and gathered["b"].tolist() == [0, 1]
        assert together.process_allgather(own["a"], tiled=True).tolist() == [0, 1, 2, 10, 11, 12]
        assert together.broadcast_one_to_all(own)["a"].tolist() == [0, 1, 2]
        assert together.broadcast_one_to_all(own, is_source=process == 1)["a"].tolist() == [10, 11, 12]
        x = xtrace.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(mesh, P("data")))
        assert together.process_allgather(x).tolist() == list(range(8))
        together.sync_global_devices("here")
        together.assert_equal(7)
        try:
            together.assert_equal({"step": process}, "steps differ")
        except AssertionError as error:
            print("unequal:", error)
        whole = together.host_local_array_to_global_array(np.arange(4) * (process + 1), mesh, P("data"))
        assert whole.shape == (8,)
        assert together.process_allgather(whole).tolist() == [0, 1, 2, 3, 0, 2, 4, 6]
        local = together.global_array_to_host_local_array(whole, mesh, P("data"))
        assert np.asarray(local).tolist() == [n * (process + 1) for n in range(4)]
        copies = together.host_local_array_to_global_array(np.arange(4), mesh, P())
        assert copies.shape == (4,) and np.asarray(copies).tolist() == [0, 1, 2, 3]
        with together.live_devices(xtrace.devices()) as devices:
            assert devices == xtrace.devices()
        try:
            np.asarray(x)
        except RuntimeError as error:
            print("read:", error)
        try:
            together.sync_global_devices(f"here {process}")
        except AssertionError as error:
            print("parted:", error)
        assert "jax" not in sys.modules
        xtrace.distributed.shutdown()
        """
    )
    assert codes == [0, 0], outputs
    for text in outputs:
        assert "unequal: steps differ" in text and "process_allgather" in text and "parted:" in text


def test_a_coordinator_that_is_not_there_is_an_error():
    """A process that waits for a process 0 that was never started gets an error after the stated time."""
    codes, outputs = run("", timeout=3, limit=30, started=[1])
    assert codes == [1], outputs
    assert "process 1 of 2 has not met process 0 at 127.0.0.1" in outputs[0]


def test_a_port_in_use_is_an_error():
    """A coordinator whose port another program has is an error that names the address, and ends nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        codes, outputs = run("", started=[0], port=server.getsockname()[1])
    assert codes == [1], outputs
    assert "process 0 cannot listen at 127.0.0.1" in outputs[0]


def test_processes_put_together_an_array_of_the_data_that_each_has():
    """Along each axis a process gives the parts of its own devices, or all of it."""
    codes, outputs = run(
        """
        M = np.arange(64.0, dtype=np.float32).reshape(8, 8)
        devices = np.array(xtrace.devices())
        grid = Mesh(devices.reshape(2, 2), ("x", "y"))
        mixed = Mesh(devices[[0, 2, 1, 3]].reshape(2, 2), ("x", "y"))

        def check(sharding, data, shape=None):
            made = xtrace.make_array_from_process_local_data(sharding, data, shape)
            assert made.shape == (8, 8), made.shape
            for shard in made.addressable_shards:
                np.testing.assert_array_equal(shard.data, M[shard.index])

        own = M[process * 4:][:4]
        for spec in (P("x"), P("x", "y"), P(("x", "y"))):
            check(NamedSharding(grid, spec), own)
            check(NamedSharding(grid, spec), own, (8, 8))
            check(NamedSharding(grid, spec), M, (8, 8))
        check(NamedSharding(grid, P()), M)
        check(NamedSharding(grid, P("y")), M)
        # A process has a part of each row, in no block of the devices.
        check(NamedSharding(mixed, P("x", "y")), M[:, process * 4:][:, :4])
        check(NamedSharding(mixed, P("x", "y")), M, (8, 8))
        check(NamedSharding(mixed, P(("x", "y"))), np.concatenate([M[process * 2:][:2], M[4 + process * 2:][:2]]))
        for data, shape, text in ((own, (8, 4), "axis 1"), (M[:3], None, "multiple of 2"), (own, (16, 8), "4 or 8")):
            try:
                xtrace.make_array_from_process_local_data(NamedSharding(grid, P(("x", "y"))), data, shape)
            except ValueError as error:
                assert text in str(error), error
            else:
                raise AssertionError(text)
        made = xtrace.make_array_from_callback((8, 8), NamedSharding(grid, P("x")), lambda index: M[index])
        assert float(xtrace.jit(lambda x: x.sum())(made)) == M.sum()
        alone = Mesh(devices[process * 2:][:2], "x")
        elsewhere = NamedSharding(Mesh(devices[2 - process * 2:][:2], "x"), P("x"))
        held = xtrace.make_array_from_single_device_arrays((8, 8), elsewhere, [], dtype=np.float32)
        assert held.shape == (8, 8) and not held.addressable_shards and len(held.global_shards) == 2
        assert "jax" not in sys.modules
        print("done")
        xtrace.distributed.shutdown()
        """
    )
    assert codes == [0, 0], outputs
    assert all("done" in text for text in outputs)


def test_examples_of_functions_for_several_processes_run():
    """The examples of docstrings that tests/documentation leaves out print what they say, in two processes."""
    before = """
    import doctest

    def run_example(function, **replaced):
        text = function.__doc__
        for old, new in replaced.items():
            old = {"address": "127.0.0.1:1234", "number": "process_id=0"}[old]
            assert old in text
            text = text.replace(old, new)
        example = doctest.DocTestParser().get_doctest(text, {"xtrace": xtrace}, function.__name__, None, None)
        assert example.examples and not doctest.DocTestRunner().run(example).failed

    run_example(xtrace.distributed.initialize, address=sys.argv[3], number=f"process_id={process}")
    """
    codes, outputs = run(
        """
        run_example(xtrace.experimental.multihost_utils.live_devices)
        run_example(xtrace.experimental.multihost_utils.reached_preemption_sync_point)
        """, before=before,
    )
    assert codes == [0, 0], outputs


def test_an_array_with_pieces_elsewhere_is_read_with_an_error_that_says_how():
    """Its text shows the type; whatever needs all elements says to read the own pieces or to gather the array."""
    codes, outputs = run(
        """
        import copy, pickle
        split = NamedSharding(mesh, P("data"))
        x = xtrace.device_put(np.arange(8.0, dtype=np.float32), split)
        keys = xtrace.jit(lambda: xtrace.random.split(xtrace.random.key(0), 8), out_shardings=split)()
        assert str(x) == repr(x) == f"{x}" == "Array(shape=(8,), dtype=float32)"
        assert str(keys) == repr(keys) == f"{keys}" == "Array(shape=(8,), dtype=key<fry>)"
        here = xtrace.local_devices()[0]
        for array in (x, keys):
            readers = [pickle.dumps, lambda a: xtrace.device_put(a, here), xtrace.jit(lambda a: a, device=here)]
            if array is x:
                readers += [np.asarray, np.array, xtrace.device_get, lambda a: a.tolist(), lambda a: a.item(0)]
            for number, read in enumerate(readers):
                try:
                    read(array)
                except RuntimeError as error:
                    assert "x.addressable_shards" in str(error) and "process_allgather(x)" in str(error), error
                else:
                    raise AssertionError(f"reader {number} of {array} has read it")
            assert repr(copy.deepcopy(array)) == repr(array)
        assert float(x[3]) == 3 and [shard.data.shape for shard in x.addressable_shards] == [(2,), (2,)]
        print("done")
        """
    )
    assert codes == [0, 0] and all("done" in text for text in outputs), outputs


def test_processes_end_while_they_say_that_they_are_alive():
    """The interpreter ends after the thread of the heartbeat, which is in jaxlib nearly all of the time here."""
    program = """
        import time
        from xtrace._src.xla.processes import distributed
        distributed.connections[0].peers._period = 0
        time.sleep(0.5)
    """
    codes, outputs = run(program, 3, devices=1)
    assert codes == [0, 0, 0], outputs
