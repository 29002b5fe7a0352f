"""Step sizes as functions of the step number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.avals import aval_of, is_array_like
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace.numpy.arrays.conversion import array
from xtrace.numpy.elementwise.rounding import floor
from xtrace.numpy.elementwise.ufuncs import minimum
from xtrace.numpy.reductions.reductions import sum as total

__all__ = [
    "constant", "exponential_decay", "inverse_time_decay", "make_schedule", "piecewise_constant", "polynomial_decay",
]

Schedule = Callable[[Any], Any]


def constant(step_size: Any) -> Schedule:
    """Build the schedule with a constant step size.

    Args:
        step_size: a number.

    Returns:
        A function of the number of the step.

    Raises:
        TypeError: raised by an optimizer if step_size has axes.

    Example:
        >>> from xtrace.example_libraries import optimizers
        >>> optimizers.constant(0.5)(3)
        0.5
    """
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """Build the schedule that multiplies the step size by a rate every `decay_steps` steps.

    Args:
        step_size: the step size at step 0.
        decay_steps: the number of steps in which the step size changes by the factor decay_rate.
        decay_rate: the factor.

    Returns:
        A function of the number of the step, step_size * decay_rate ** (i / decay_steps).

    Raises:
        TypeError: an argument is not a number, when the schedule is called.

    Example:
        >>> from xtrace.example_libraries import optimizers
        >>> optimizers.exponential_decay(1.0, 2, 0.25)(1)
        0.5
    """
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False) -> Schedule:
    """Build the schedule that divides the step size by a linear function of the step.

    Args:
        step_size: the step size at step 0.
        decay_steps: the number of steps in which the divisor grows by decay_rate.
        decay_rate: the growth of the divisor.
        staircase: whether the divisor grows in jumps, every decay_steps steps.

    Returns:
        A function of the number of the step, step_size / (1 + decay_rate * i / decay_steps).

    Raises:
        TypeError: an argument is not a number, when the schedule is called.

    Example:
        >>> from xtrace.example_libraries import optimizers
        >>> optimizers.inverse_time_decay(1.0, 2, 1.0)(2)
        0.5
    """

    def schedule(i: Any) -> Any:
        growth = decay_rate * floor(i / decay_steps) if staircase else decay_rate * i / decay_steps
        return step_size / (1 + growth)

    return schedule


def polynomial_decay(step_size: Any, decay_steps: Any, final_step_size: Any, power: Any = 1.0) -> Schedule:
    """Build the schedule that interpolates two step sizes by a power of the remaining steps.

    Args:
        step_size: the step size at step 0.
        decay_steps: the first step with step size final_step_size.
        final_step_size: the last step size.
        power: the exponent; 1 for a straight line.

    Returns:
        A function of the number of the step.

    Raises:
        TypeError: an argument is not a number, when the schedule is called.

    Example:
        >>> from xtrace.example_libraries import optimizers
        >>> optimizers.polynomial_decay(1.0, 4, 0.5)(2)
        Array(0.75, dtype=float32, weak_type=True)
    """

    def schedule(i: Any) -> Any:
        remaining = (1 - minimum(i, decay_steps) / decay_steps) ** power
        return remaining * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """Build the schedule with a constant step size between boundaries.

    Args:
        boundaries: increasing numbers of steps; boundary k is the last step with step size values[k].
        values: the step sizes, one more than the boundaries.

    Returns:
        A function of the number of the step.

    Raises:
        ValueError: an argument does not have one axis, or `values` is not one longer than `boundaries`.

    Example:
        >>> from xtrace.example_libraries import optimizers
        >>> schedule = optimizers.piecewise_constant([10, 20], [0.5, 0.25, 0.125])
        >>> [float(schedule(i)) for i in (10, 11, 30)]
        [0.5, 0.25, 0.125]
    """
    limits, sizes = array(boundaries), array(values)
    if not limits.ndim == sizes.ndim == 1:
        raise ValueError(
            f"piecewise_constant: boundaries and values must be sequences of numbers, got arrays of {limits.ndim} and "
            f"{sizes.ndim} axes"
        )
    if len(limits) + 1 != len(sizes):
        raise ValueError(
            f"piecewise_constant: boundaries length must be one shorter than values length, got {len(limits)} and "
            f"{len(sizes)}"
        )
    return lambda i: sizes[total(i > limits)]


def make_schedule(scalar_or_schedule: ArrayLike | Schedule) -> Schedule:
    """Convert a number to a constant schedule; return a schedule unchanged.

    Args:
        scalar_or_schedule: a number, or a function of the number of the step.

    Returns:
        A function of the number of the step.

    Raises:
        TypeError: the argument is neither a number nor a function.

    Example:
        >>> from xtrace.example_libraries import optimizers
        >>> optimizers.make_schedule(0.5)(3), optimizers.make_schedule(lambda i: 1 / i)(2)
        (0.5, 0.5)
    """
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if is_array_like(scalar_or_schedule) and not aval_of(scalar_or_schedule).shape:
        return constant(scalar_or_schedule)
    raise TypeError(
        f"make_schedule: the step size must be a number or a function of the step, got "
        f"{abbreviate(scalar_or_schedule)} of type {type(scalar_or_schedule)}"
    )
