"""The console: a page served to browsers, to watch and steer runs and to look at systems."""
