"""Colours and style of the report: one set of named inks, light and dark, for the page and for the
pictures in it.

The hues are Okabe and Ito's, which colour-blind readers tell apart, made darker on white and
lighter on black until text in them has a contrast of at least 4.5 against the paper. Pictures are
drawn once in the light colours; in the page each colour stands as a CSS variable, so that they
follow the reader's light or dark mode. No two inks may share a value, or they could not be told
apart again.
"""

from __future__ import annotations

#: Name -> (light, dark).
INKS: dict[str, tuple[str, str]] = {
    "paper": ("#fefefe", "#14181d"),
    "panel": ("#f3f5f7", "#1d2329"),
    "ink": ("#1b2127", "#e8ecf0"),
    "muted": ("#55606b", "#a3afba"),
    "rule": ("#d3dae0", "#38424c"),
    "faint": ("#b3bdc7", "#5c6873"),
    "blue": ("#00639c", "#5cb8ee"),
    "vermilion": ("#b04300", "#ff9457"),
    "green": ("#00714f", "#33c79a"),
    "purple": ("#99407a", "#e79fca"),
    "amber": ("#855a00", "#e8b547"),
    "sky": ("#2a6f97", "#8ccbf2"),
    "brown": ("#7a4a2b", "#d9a987"),
}

#: Inks of mechanisms, in the order they are given out; the baseline is drawn in `ink`.
SERIES = ("blue", "vermilion", "green", "purple", "amber", "brown", "sky")


def light(name: str) -> str:
    """The light value of an ink: what pictures are drawn in."""
    return INKS[name][0]


def _variables(side: int) -> str:
    return "".join(f"--{name}:{pair[side]};" for name, pair in INKS.items())


STYLE = (
    f":root{{color-scheme:light dark;{_variables(0)}}}\n@media"
    f" (prefers-color-scheme:dark){{:root{{{_variables(1)}}}}}\n"
    + """
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--paper);color:var(--ink);font:1rem/1.6 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",sans-serif;
 overflow-wrap:anywhere}
main,header,footer{max-width:70rem;margin:0 auto;padding:0 1rem}
header{padding-top:2rem}
h1{font-size:clamp(1.6rem,4vw,2.3rem);line-height:1.2;margin:.2rem 0 .3rem}
h2{font-size:1.45rem;line-height:1.25;margin:3rem 0 .6rem;padding-top:.9rem;border-top:1px solid var(--rule)}
h3{font-size:1.08rem;line-height:1.3;margin:1.4rem 0 .4rem}
p,li{max-width:46rem}
a{color:var(--blue)}
a:focus-visible,summary:focus-visible,.box:focus-visible{outline:3px solid var(--amber);outline-offset:2px}
.kicker,.small,figcaption,caption,footer{color:var(--muted);font-size:.9rem}
.kicker{margin:0}
.lead{font-size:clamp(1.12rem,2.4vw,1.35rem);line-height:1.5;max-width:50rem}
nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;list-style:none;padding:0;margin:1rem 0 0}
nav a{display:inline-block;padding:.35rem 0}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,20rem),1fr));gap:1rem;list-style:none;padding:0;margin:1.5rem 0}
.card{background:var(--panel);border:1px solid var(--rule);border-radius:.6rem;padding:.9rem 1rem;break-inside:avoid;max-width:none}
.card h3{margin:0}
.card p{margin:.35rem 0;font-size:.95rem;line-height:1.5}
.card .figure{font-size:1.5rem;font-weight:650;line-height:1.2}
.card .figure small{display:block;font-size:.92rem;font-weight:400;color:var(--muted)}
.people{display:block;width:100%;max-width:17rem;height:auto;margin:.5rem 0}
.missed_by_rbfn{border-left:.3rem solid var(--vermilion);padding-left:.7rem}
.badge{display:inline-block;border:1.5px solid currentColor;border-radius:1rem;padding:0 .6rem;font-size:.85rem;font-weight:600;white-space:nowrap}
.proved{color:var(--green)}.refuted{color:var(--vermilion)}.claimed{color:var(--amber)}.empirical{color:var(--blue)}.none{color:var(--muted)}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,27rem),1fr));gap:1.2rem;align-items:start}
figure{margin:1.2rem 0;break-inside:avoid;min-width:0}
.grid figure{margin:0}
figure svg{display:block;width:100%;height:auto}
figure svg text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",sans-serif!important}
.one svg{max-width:38rem}
@media (min-width:62rem){.one{display:grid;grid-template-columns:38rem minmax(0,1fr);gap:0 1.8rem;align-items:start}.one figcaption{margin-top:1.2rem}}
figcaption{margin-top:.4rem;max-width:46rem}
.box{overflow-x:auto;margin:1rem 0;border:1px solid var(--rule);border-radius:.5rem;overflow-wrap:normal;position:relative}
table{border-collapse:collapse;width:100%;font-size:.92rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:.6rem .7rem;caption-side:top}
caption span{position:sticky;left:.7rem;display:inline-block;max-width:min(46rem,calc(100vw - 4rem))}
th,td{text-align:left;padding:.4rem .7rem;border-top:1px solid var(--rule);vertical-align:top}
thead th{background:var(--panel);vertical-align:bottom}
thead th,td:not(.n){min-width:7.5rem}
td.t{min-width:11rem}
td.n{white-space:nowrap}
tbody th{font-weight:600;min-width:9rem}
tr.worst td,tr.worst th{font-weight:600}
.key{list-style:none;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;font-size:.92rem}
.key b{display:inline-block;min-width:1.5em}
details{margin:1rem 0}
summary{cursor:pointer;padding:.5rem 0;font-weight:600}
dl{display:grid;grid-template-columns:minmax(6rem,max-content) 1fr;gap:.3rem 1rem;max-width:60rem}
dt{color:var(--muted)}dd{margin:0;min-width:0}
code{font-family:ui-monospace,"Cascadia Mono",Menlo,"DejaVu Sans Mono",monospace;font-size:.88em}
blockquote{margin:.4rem 0;padding:.1rem 0 .1rem .9rem;border-left:3px solid var(--rule)}
footer{margin:3rem auto 2rem;padding-top:1rem;border-top:1px solid var(--rule)}
@media (max-width:34rem){dl{grid-template-columns:1fr}dt{margin-top:.5rem}h2{margin-top:2.2rem}}
@media (prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
@media print{
"""
    + f":root{{{_variables(0)}}}\n"
    + """body{font-size:10pt}nav,.png{display:none}.box{overflow:visible;border:0}main,header,footer{max-width:none}
h2,h3,caption{break-after:avoid}tr{break-inside:avoid}thead{display:table-header-group}.grid{grid-template-columns:1fr 1fr}
}
"""
)
