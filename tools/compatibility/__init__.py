"""Libraries of JAX's world under jax and under xtrace: their published tests, programs and times, and the page of them.

``python -m tools.compatibility`` runs all, ``python -m tools.compatibility optax chex`` some, ``--sample`` few tests
of each. Results are kept in ``results/``, a file for each library; ``--page`` writes ``docs/compatibility.md`` from
them.
"""
