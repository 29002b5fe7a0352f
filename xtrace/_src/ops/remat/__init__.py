"""Rematerialization: `checkpoint`, and the policies that choose the values it saves."""
