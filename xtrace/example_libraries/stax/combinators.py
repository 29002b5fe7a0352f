"""Combinations of layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xtrace._src.core.callables import check_callable
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace.example_libraries.stax.layers import Function, Layer, build_layer, get_first_shape
from xtrace.numpy import shape
from xtrace.random import split


def _unzip_layers(layers: tuple[Any, ...]) -> tuple[tuple[Function, ...], tuple[Function, ...]]:
    """Return the init_fun and the apply_fun of each layer."""
    if not layers:
        raise ValueError(f"{called_function()}: give at least one layer")
    for position, layer in enumerate(layers):
        if not (isinstance(layer, (tuple, list)) and len(layer) == 2 and all(map(callable, layer))):
            kind = "a function that builds layers; call it" if callable(layer) else "no such pair"
            raise TypeError(
                f"{called_function()}: a layer is a pair (init_fun, apply_fun); layer {position}, {abbreviate(layer)}, "
                f"is {kind}"
            )
    inits, applies = zip(*layers, strict=True)
    return inits, applies


def _take_keys(kwargs: dict[str, Any], count: int) -> Any:
    """Remove the key from the keyword arguments, and split it into a key, or None, for each layer."""
    key = kwargs.pop("rng", None)
    return (None,) * count if key is None else split(key, count)


def _to_list(label: str, values: Any, count: int) -> Any:
    """Convert `values` to a list; ValueError unless there are `count` of them."""
    values = list(values)
    if len(values) != count:
        raise ValueError(f"{called_function()}: {count} layers need as many {label}, got {len(values)}")
    return values


def serial(*layers: Layer) -> Layer:
    """Build the composition of layers: each takes the output of the layer before.

    Args:
        layers: pairs (init_fun, apply_fun).

    Returns:
        The pair (init_fun, apply_fun); the parameters are a list of the parameters of the layers.

    Raises:
        TypeError: a layer is not a pair of functions.
        ValueError: there are no layers.

    Example:
        >>> from xtrace.example_libraries import stax
        >>> init_fun, apply_fun = stax.serial(stax.Dense(8), stax.Relu, stax.Dense(2), stax.LogSoftmax)
        >>> shape, params = init_fun(random.key(0), (-1, 3))
        >>> shape, apply_fun(params, jnp.ones((5, 3))).shape
        ((-1, 2), (5, 2))
    """
    inits, applies = _unzip_layers(layers)

    def init_fun(rng: Any, input_shape: Any) -> Any:
        params = []
        for init in inits:
            rng, key = split(rng)
            input_shape, values = init(key, input_shape)
            params.append(values)
        return input_shape, params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _take_keys(kwargs, len(applies))
        params = _to_list("parameters", params, len(applies))
        for call, values, key in zip(applies, params, keys, strict=True):
            inputs = call(values, inputs, rng=key, **kwargs)
        return inputs

    return build_layer(init_fun, apply_fun)


def parallel(*layers: Layer) -> Layer:
    """Build the layer that applies several layers, each to its own input.

    `FanOut` repeats one array as inputs. `FanInSum` or `FanInConcat` combines the outputs to one array.

    Args:
        layers: pairs (init_fun, apply_fun).

    Returns:
        The pair (init_fun, apply_fun); the shapes and parameters are tuples with one for each layer, the output is a
        list.

    Raises:
        TypeError: a layer is not a pair of functions.
        ValueError: there are no layers, or the numbers of inputs and layers differ.

    Example:
        >>> from xtrace.example_libraries import stax
        >>> init_fun, apply_fun = stax.parallel(stax.Dense(4), stax.Identity)
        >>> shapes, params = init_fun(random.key(0), [(-1, 3), (-1, 2)])
        >>> shapes
        ((-1, 4), (-1, 2))
    """
    inits, applies = _unzip_layers(layers)

    def init_fun(rng: Any, input_shape: Any) -> Any:
        get_first_shape("parallel", input_shape)
        shapes = _to_list("input shapes", input_shape, len(inits))
        results = [init(key, s) for init, key, s in zip(inits, split(rng, len(inits)), shapes, strict=True)]
        return tuple(s for s, _ in results), tuple(values for _, values in results)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _take_keys(kwargs, len(applies))
        inputs = _to_list("inputs", inputs, len(applies))
        params = _to_list("parameters", params, len(applies))
        return [
            call(values, x, rng=key, **kwargs)
            for call, values, x, key in zip(applies, params, inputs, keys, strict=True)
        ]

    return build_layer(init_fun, apply_fun)


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """Build a layer by a function of the input shape.

    Args:
        make_layer: a function of an input shape that returns a pair (init_fun, apply_fun).

    Returns:
        The pair (init_fun, apply_fun); both call the function.

    Raises:
        TypeError: make_layer cannot be called.

    Example:
        >>> from xtrace.example_libraries import stax
        >>> init_fun, apply_fun = stax.shape_dependent(lambda shape: stax.Dense(2 * shape[-1]))
        >>> init_fun(random.key(0), (-1, 3))[0]
        (-1, 6)
    """
    check_callable(make_layer)
    return build_layer(
        lambda rng, input_shape: make_layer(input_shape)[0](rng, input_shape),
        lambda params, inputs, **kwargs: make_layer(shape(inputs))[1](params, inputs, **kwargs),
    )
