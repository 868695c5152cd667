"""Device under test: a switch whose buffers a scenario sets and whose counters it reads."""
