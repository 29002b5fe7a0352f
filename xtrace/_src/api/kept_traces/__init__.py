"""Traces on disk: a warm start calls a function without tracing it."""
