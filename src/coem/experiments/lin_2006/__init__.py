"""Lin (2006), Probabilistic Multi-State Split-Merge Algorithm for Coupling Parameter Estimates."""
