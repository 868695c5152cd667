"""A page of panels, from the top down. All lengths are points (1/72 inch)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Sheet:
    """Panels stand where they are put: what names take is known, so that nothing overlaps."""

    def __init__(self, width: float, margin: float) -> None:
        from matplotlib.figure import Figure

        self.width, self.margin = width, margin
        self.y = 0.0
        """How much of the height is taken."""
        self._figure: Figure = Figure()
        self._placed: list[tuple[Axes, tuple[float, float, float, float]]] = []

    def axes(self, x: float, width: float, height: float) -> Axes:
        """A panel whose upper edge is where the page has got to."""
        axes = self._figure.add_axes((0, 0, 1, 1), label=str(len(self._placed)))
        self._placed.append((axes, (x, self.y, width, height)))
        return axes

    def down(self, height: float) -> None:
        """Go down the sheet by a height that is taken."""
        self.y += height

    def write(self, text: str, size: float, space: float, **how: Any) -> None:
        """A line in letters of some size; `space` is from its top to what follows."""
        axes = self.axes(0, self.width, size)
        axes.set_axis_off()
        axes.text(0, 1, text, va="top", fontsize=size, parse_math=False, **how)
        self.down(space)

    def finish(self) -> Figure:
        """The page, as long as what is on it."""
        width, height = self.width + 2 * self.margin, self.y + 2 * self.margin
        self._figure.set_size_inches(width / 72, height / 72)
        for axes, (x, y, wide, high) in self._placed:
            left, bottom = self.margin + x, height - self.margin - y - high
            axes.set_position((left / width, bottom / height, wide / width, high / height))
        return self._figure
