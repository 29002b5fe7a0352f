"""Taylor-mode differentiation: values carry their Taylor series, which the operations carry along."""
