"""The tables of a scenario, and what has to fit together across them."""
