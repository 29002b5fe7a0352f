"""Jaxprs: the intermediate representation, its checker and its printer."""
