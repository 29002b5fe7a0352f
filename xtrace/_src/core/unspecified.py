"""The default of parameters for which None is an argument, or an error."""


class Unspecified:
    """The value of a parameter that was not given."""

    def __repr__(self) -> str:
        return "UnspecifiedValue"

    def __reduce__(self) -> str:
        return "UNSPECIFIED"


UNSPECIFIED = Unspecified()
