"""Taylor-mode differentiation: operations compute the Taylor series of their results."""
