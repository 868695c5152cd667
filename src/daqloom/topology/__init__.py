"""Networks as they are cabled: fat trees, imported fabrics, routes, schedules."""
