"""Numbers of packets have so many bits."""


def check_range(packet: str, name: str, value: int, bits: int) -> None:
    """Raises ValueError for what does not fit."""
    if not isinstance(value, int) or not 0 <= value < 1 << bits:
        raise ValueError(f"{packet} with {name} {value!r}; expected 0 to {(1 << bits) - 1}")
