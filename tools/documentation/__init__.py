"""What is made for the documentation site: the reference, notebooks, the picture of the layers, a table of names."""
