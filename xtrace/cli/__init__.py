"""The command line, ``python -m xtrace``; it uses nothing but the public interface."""
