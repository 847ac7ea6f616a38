"""Bickel & Scheffer (2005), Estimation of Mixture Models using Co-EM."""
