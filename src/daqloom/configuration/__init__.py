"""The engine's configurations, made from a scenario."""
