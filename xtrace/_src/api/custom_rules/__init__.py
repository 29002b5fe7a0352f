"""Functions with rules of the user's own: derivatives, batched forms and transposes."""
