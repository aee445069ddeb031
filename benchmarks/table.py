"""The table of figures, a line each."""

from __future__ import annotations

from benchmarks.figure import Figure

HEAD = f"{'':<44} {'value':>12} {'floor':>12} {'measured':>10} {'at most':>10}"


def amount(number: float, unit: str) -> str:
    """A number of about three digits with its unit."""
    digits = next((digits for digits, least in enumerate((100, 10, 1)) if abs(number) >= least), 3) if number else 0
    return f"{number:,.{digits}f} {unit}".rstrip()


def measured(figure: Figure, number: float) -> str:
    """A ratio, a difference or a value, as the figure's bound has it."""
    if figure.floor is None or figure.by == "value":
        return amount(number, figure.unit)
    sign = "+" if number >= 0 else ""
    return f"{number:,.2f} x" if figure.by == "ratio" else sign + amount(number, figure.unit)


def row(figure: Figure) -> str:
    floor = "" if figure.floor is None else amount(figure.floor, figure.unit)
    bound = "" if figure.bound is None else measured(figure, figure.bound)
    mark = "" if figure.bound is None else "ok" if figure.ok else "OVER"
    of = f"({figure.floor_is})" if figure.floor_is else ""
    columns = f"{amount(figure.value, figure.unit):>12} {floor:>12} {measured(figure, figure.measured):>10} {bound:>10}"
    return f"  {figure.name:<42} {columns}  {mark:<4}  {of} {figure.note}".rstrip()
