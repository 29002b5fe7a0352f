"""Functions of pytrees as functions of flat sequences (``jax.api_util``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.api.jit.argument_paths import list_argument_paths
from xtrace._src.api.jit.static_arguments import Selection, split_static
from xtrace._src.api.tracing import abstract_leaf
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.callables import make_debug_info
from xtrace._src.core.integers import integer_tuple
from xtrace._src.core.jaxprs.ir import DebugInfo
from xtrace._src.core.linear_functions import Store, WrappedFun, transformation_with_aux2
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.pytrees import pytree

__all__ = [
    "argnums_partial", "debug_info", "donation_vector", "flatten_axes", "flatten_fun", "flatten_fun_nokwargs",
    "rebase_donate_argnums", "safe_map", "shaped_abstractify",
]


def debug_info(
    traced_for: str, fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], *,
    static_argnums: Sequence[int] = (), static_argnames: Sequence[str] = (), result_paths_thunk: Any = None,
    sourceinfo: str | None = None, signature: Any = None,
) -> DebugInfo:
    """Return the names of a trace for messages.

    Args:
        traced_for: the name of the transformation.
        fun: the function.
        args, kwargs: example arguments.
        static_argnums, static_argnames: the static arguments, which have no names in `arg_names`.
        result_paths_thunk, sourceinfo, signature: not used.

    Returns:
        A `DebugInfo`; its `arg_names` are the paths of the leaves of the arguments.

    Raises:
        ValueError: a static argument is not hashable.

    Example:
        >>> info = xtrace.api_util.debug_info("my_transformation", lambda x, y: x, (1, {"a": 2}), {})
        >>> info.func_name, info.arg_names
        ('<lambda>', ('x', "y['a']"))
    """
    chosen = Selection("static", fun, tuple(static_argnums), tuple(static_argnames))
    static, args, kwargs = split_static(fun, chosen, tuple(args), kwargs)
    paths = list_argument_paths(fun, static, pytree.tree_structure((args, kwargs)))
    return make_debug_info(traced_for, fun, lambda: paths)


def shaped_abstractify(x: Any) -> ShapedArray:
    """Return the type of an array, or of an object with a shape and a dtype.

    Args:
        x: the object.

    Returns:
        A `ShapedArray`.

    Raises:
        TypeError: `x` has no shape and dtype.

    Example:
        >>> xtrace.api_util.shaped_abstractify(xtrace.ShapeDtypeStruct((2,), "float32"))
        ShapedArray(float32[2])
    """
    return abstract_leaf(x)


def argnums_partial(
    f: WrappedFun, dyn_argnums: int | Sequence[int], args: Sequence[Any], require_static_args_hashable: bool = True
) -> tuple[WrappedFun, tuple[Any, ...]]:
    """Return a function with some arguments fixed.

    Args:
        f: a `WrappedFun`.
        dyn_argnums: the positions of the remaining arguments.
        args: all arguments.
        require_static_args_hashable: whether the fixed arguments must have a hash.

    Returns:
        A `WrappedFun` of the remaining arguments, and these arguments.

    Raises:
        ValueError: a fixed argument has no hash.

    Example:
        >>> from xtrace.extend import linear_util
        >>> f, given = xtrace.api_util.argnums_partial(linear_util.wrap_init(lambda x, n: x * n), 0, (3, 2))
        >>> f.call_wrapped(*given)
        6
    """
    positions = (dyn_argnums,) if isinstance(dyn_argnums, int) else integer_tuple("dyn_argnums", dyn_argnums)
    moving = tuple([n % len(args) for n in positions])
    fixed = {i: x for i, x in enumerate(args) if i not in moving}
    if require_static_args_hashable:
        for i, x in fixed.items():
            try:
                hash(x)
            except TypeError:
                raise ValueError(
                    f"argnums_partial: argument {i}, of type {type(x).__name__}, has no hash; pass a tuple or another "
                    "hashable object"
                ) from None

    def insert(function: Callable[..., Any], *given: Any, **kwargs: Any) -> Any:
        every = dict(zip(moving, given, strict=True)) | fixed
        return function(*[every[i] for i in range(len(args))], **kwargs)

    return f.wrap(insert, (), None), tuple([args[i] for i in moving])


def donation_vector(
    donate_argnums: Sequence[int], donate_argnames: Sequence[str], in_tree: Any, kws: bool = True
) -> tuple[bool, ...]:
    """Return a flag for each leaf of the arguments: whether it is donated.

    Args:
        donate_argnums: the positions of donated arguments.
        donate_argnames: the names of donated keyword arguments.
        in_tree: the structure of ``(args, kwargs)``, or of the arguments where `kws` is False.
        kws: whether `in_tree` has keyword arguments.

    Returns:
        A tuple of truth values.

    Raises:
        AttributeError: `in_tree` is not a structure.

    Example:
        >>> tree = xtrace.tree.structure(((1, (2, 3)), {}))
        >>> xtrace.api_util.donation_vector((1,), (), tree)
        (False, True, True)
    """
    children = in_tree.children()
    args, kwargs = (children[0].children(), children[1]) if kws else (children, None)
    donated = [i in donate_argnums for i, tree in enumerate(args) for _ in range(tree.num_leaves)]
    if kwargs is not None:
        for name, tree in zip(kwargs.node_data()[1], kwargs.children(), strict=True):
            donated += [name in donate_argnames] * tree.num_leaves
    return tuple(donated)


def rebase_donate_argnums(donate_argnums: Sequence[int], static_argnums: Sequence[int]) -> tuple[int, ...]:
    """Return the positions of donated arguments among the arguments that are not static.

    Args:
        donate_argnums: the positions among all arguments.
        static_argnums: the positions of static arguments.

    Returns:
        A tuple of positions.

    Raises:
        ValueError: an argument is both donated and static.

    Example:
        >>> xtrace.api_util.rebase_donate_argnums((2,), (0,))
        (1,)
    """
    both = sorted({*donate_argnums} & {*static_argnums})
    if both:
        raise ValueError(f"static_argnums and donate_argnums cannot intersect, got {both} in both")
    return tuple(sorted({i - sum(s < i for s in static_argnums) for i in donate_argnums}))


def flatten_axes(name: str, treedef: Any, axis_tree: Any, *, kws: bool = False, tupled_args: bool = False) -> list[Any]:
    """Broadcast a tree prefix: return its entry for each leaf of a tree.

    Args:
        name: the name of the prefix, for messages.
        treedef: the structure of the tree.
        axis_tree: a tree prefix; None is a leaf.
        kws: whether `axis_tree` is a prefix of the positional arguments alone.
        tupled_args: not used.

    Returns:
        A list with an entry for each leaf.

    Raises:
        ValueError: `axis_tree` is not a prefix.

    Example:
        >>> xtrace.api_util.flatten_axes("in_axes", xtrace.tree.structure((1, (2, 3))), (0, None))
        [0, None, None]
    """
    prefix = (axis_tree, 0) if kws else axis_tree
    try:
        return list(pytree.broadcast_prefix_to_structure(prefix, treedef, is_leaf=lambda x: x is None))
    except ValueError as error:
        raise ValueError(f"{name} specification must be a tree prefix of the corresponding value: {error}") from None


def safe_map(f: Callable[..., Any], *args: Any) -> list[Any]:
    """Apply a function to the elements of lists of equal length.

    Args:
        f: a function of as many arguments as there are lists.
        args: the lists.

    Returns:
        A list.

    Raises:
        ValueError: the lists differ in length.

    Example:
        >>> xtrace.api_util.safe_map(lambda x, y: x + y, [1, 2], [3, 4])
        [4, 6]
    """
    return [f(*xs) for xs in zip(*map(list, args), strict=True)]


def flatten_fun(f: WrappedFun, in_tree: Any) -> tuple[WrappedFun, Callable[[], Any]]:
    """Convert a function of positional and keyword arguments to a function of leaves.

    Args:
        f: a `WrappedFun`.
        in_tree: the structure of ``(args, kwargs)``.

    Returns:
        A `WrappedFun` from leaves to a list of leaves, and a function that returns the structure of the result.

    Raises:
        AttributeError: `f` is no `WrappedFun`.

    Example:
        >>> from xtrace.extend import linear_util
        >>> leaves, tree = xtrace.tree.flatten(((1,), {"y": 2}))
        >>> f, out_tree = xtrace.api_util.flatten_fun(linear_util.wrap_init(lambda x, y: {"sum": x + y}), tree)
        >>> f.call_wrapped(*leaves), out_tree()
        ([3], PyTreeDef({'sum': *}))
    """
    return transformation_with_aux2(_call_with_leaves, f, in_tree, True)


def flatten_fun_nokwargs(f: WrappedFun, in_tree: Any) -> tuple[WrappedFun, Callable[[], Any]]:
    """Convert a function of positional arguments to a function of leaves.

    Args:
        f: a `WrappedFun`.
        in_tree: the structure of the tuple of arguments.

    Returns:
        A `WrappedFun` from leaves to a list of leaves, and a function that returns the structure of the result.

    Raises:
        AttributeError: `f` is no `WrappedFun`.

    Example:
        >>> from xtrace.extend import linear_util
        >>> leaves, tree = xtrace.tree.flatten((1, (2, 3)))
        >>> f, out_tree = xtrace.api_util.flatten_fun_nokwargs(linear_util.wrap_init(lambda x, y: (x, *y)), tree)
        >>> f.call_wrapped(*leaves), out_tree()
        ([1, 2, 3], PyTreeDef((*, *, *)))
    """
    return transformation_with_aux2(_call_with_leaves, f, in_tree, False)


def _call_with_leaves(
    function: Callable[..., Any], store: Store, in_tree: Any, keywords: bool, *leaves: Any
) -> list[Any]:
    given = pytree.tree_unflatten(in_tree, leaves)
    args, kwargs = given if keywords else (given, {})
    results, tree = pytree.tree_flatten(function(*args, **kwargs))
    store.store(tree)
    return list(results)


_make_public(globals(), __all__)
