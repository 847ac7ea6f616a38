"""Bickel & Scheffer (2004), Multi-View Clustering."""
