"""Arrays and programs over the devices of several processes."""

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
    assert all("total" in text and "largest" in text and "part at program number 0" in text for text in outputs)
