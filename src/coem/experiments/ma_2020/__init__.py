"""Ma (2020), Tech Review: Expectation Maximization."""
