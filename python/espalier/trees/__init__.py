"""Trees of every make as bracket strings: one module per family of sources, behind :func:`espalier.tree`."""
