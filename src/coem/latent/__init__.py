"""Latent structures: what the hidden variable looks like. Each has an E step and an M step."""
