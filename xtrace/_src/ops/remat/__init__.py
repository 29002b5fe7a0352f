"""Rematerialization: `checkpoint`, and the policies that say which values it saves."""
