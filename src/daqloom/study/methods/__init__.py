"""The methods analyse, simulate and measure, and comparisons between them."""
