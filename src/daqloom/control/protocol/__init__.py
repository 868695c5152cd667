"""Messages between the run control, its units and operators, with the states that they contain."""
