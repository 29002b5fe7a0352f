"""What the documentation site shows and nobody writes: the reference, notebooks, the picture of the layers, surfaces."""
