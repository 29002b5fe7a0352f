"""The processes of a program: their connection, and watching the others."""
