"""Traces, and the passes from a function to a jaxpr to a module."""
