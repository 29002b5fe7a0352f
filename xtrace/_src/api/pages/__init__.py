"""Functions and jaxprs as pages, and as HTML in notebooks."""
