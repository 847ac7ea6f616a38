"""Nigam, McCallum & Mitchell (2006), Semi-Supervised Text Classification Using EM."""
