"""The few pieces that all plots are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

Point = tuple[float, float]

STYLE = """
text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,Helvetica,Arial,sans-serif;fill:#57606a}
.title{font-size:16px;font-weight:650;fill:#1f2328}.head{font-size:13px;font-weight:600;fill:#1f2328}
.name{fill:#1f2328}.ours-name{fill:#1f2328;font-weight:650}.good-word{fill:#1a7f5a;font-weight:600}
.bad-word{fill:#c0392f;font-weight:600}
.card{fill:#ffffff;stroke:#d8dee4}.grid{stroke:#d8dee4;stroke-width:1}.goal{stroke:#9a6700;stroke-dasharray:5 4}
.ours{fill:#c2571b}.peer{fill:#8c959f}.limit{fill:none;stroke:#8c959f;stroke-dasharray:3 2}.rail{fill:#eaeef2}
.line{fill:none;stroke-width:1.8;stroke-linejoin:round}.a{stroke:#c2571b}.b{stroke:#2f6fbf}.c{stroke:#1a7f5a}
.d{stroke:#8250df}.e{stroke:#8c959f}.fa{fill:#c2571b}.fb{fill:#2f6fbf}.fc{fill:#1a7f5a}.fd{fill:#8250df}.fe{fill:#8c959f}
.shade{fill:#8c959f;fill-opacity:.14}
@media (prefers-color-scheme:dark){text{fill:#9198a1}.title,.head,.name,.ours-name{fill:#e6edf3}
.good-word{fill:#4cc38a}.bad-word{fill:#ff7b72}.card{fill:#12161c;stroke:#2d333b}.grid{stroke:#2d333b}
.goal{stroke:#d29922}.ours{fill:#f0883e}.peer{fill:#6e7681}.limit{stroke:#6e7681}.rail{fill:#1c222a}
.a{stroke:#f0883e}.b{stroke:#6cb0ff}.c{stroke:#4cc38a}.d{stroke:#bc8cff}.e{stroke:#6e7681}
.fa{fill:#f0883e}.fb{fill:#6cb0ff}.fc{fill:#4cc38a}.fd{fill:#bc8cff}.fe{fill:#6e7681}}
"""


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, kind: str, round: float = 3, tip: str = "") -> str:
    inside = f"<title>{escape(tip)}</title>" if tip else ""
    size = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}" rx="{round:g}"'
    return f'<rect {size} class="{kind}">{inside}</rect>'


def line(points: Sequence[Point], kind: str) -> str:
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{joined}" class="line {kind}"/>' if points else ""


def rule(x1: float, y1: float, x2: float, y2: float, kind: str = "grid") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def drawing(width: float, height: float, parts: Sequence[str], words: str) -> str:
    """A whole file; `words` is what it shows, for those who cannot see it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-label="{escape(words, quote=True)}"><style>{STYLE}</style>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def ticks(top: float, wanted: int = 4) -> list[float]:
    """Round numbers from 0 to at least `top`."""
    if top <= 0:
        return [0.0, 1.0]
    raw = top / wanted
    size = 10 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= raw * 0.999)
    return [step * n for n in range(math.ceil(top / step - 1e-9) + 1)]


def short(value: float) -> str:
    """1200 as 1.2k."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"
