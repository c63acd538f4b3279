#!/usr/bin/env python3
"""Draws the dashboard's panels, each in its place, from what a Prometheus answered to its queries.

usage: dashboard_picture.py DASHBOARD ANSWERS PICTURE.html

ANSWERS are of dashboard_queries.py. It is not Grafana, which no package of Debian's or npm's has: it shows what the
queries bring, and where. chromium --headless --screenshot makes a PNG of the page.
"""

import html
import json
import re
import sys

COLUMN, ROW, LEFT, TOP, BOTTOM = 62, 27, 62, 26, 40
COLOURS = ("#3274d9", "#e0752d", "#56a64b", "#c4162a", "#8f3bb8", "#e0b400", "#37872d", "#1f60c4", "#ad0317", "#806eb7")


def number(value, unit):
    if unit == "percentunit":
        return "%.0f %%" % (100 * value)
    if unit == "s":
        if value < 1e-3:
            return "%.3g µs" % (1e6 * value)
        return "%.3g s" % value if value >= 1 else "%.3g ms" % (1e3 * value)
    for bound, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= bound:
            return "%.3g%s%s" % (value / bound, letter, "B" if unit.startswith("B") or unit == "bytes" else "")
    return "%.3g" % value


def series_of(panel, answers):
    """(legend, {time: value}) of each line."""
    found = []
    for answer in answers["answers"]:
        for one in answer["result"]:
            name = re.sub(r"{{(\w+)}}", lambda match: one["metric"].get(match.group(1), ""), answer["legend"])
            found.append((name, {time: float(value) for time, value in one["values"] if value != "NaN"}))
    if panel["fieldConfig"]["defaults"]["custom"].get("stacking", {}).get("mode") == "normal":
        below = {}
        for _, points in found:
            for time in points:
                below[time] = points[time] = points[time] + below.get(time, 0)
    return found


def text(x, y, words, **more):
    style = "".join(' %s="%s"' % (key.replace("_", "-"), value) for key, value in more.items())
    return '<text x="%.1f" y="%.1f"%s>%s</text>' % (x, y, style, html.escape(words))


def lines(panel, found, span, width, height):
    unit = panel["fieldConfig"]["defaults"].get("unit", "short")
    most = max([value for _, points in found for value in points.values()] + [1e-9]) * 1.05
    x = lambda time: LEFT + (time - span[0]) / (span[1] - span[0]) * (width - LEFT - 12)
    y = lambda value: TOP + (1 - value / most) * (height - TOP - BOTTOM)
    for share in (0, 0.5, 1):
        at = y(most * share / 1.05)
        yield '<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/>' % (LEFT, width - 12, at, at)
        yield text(LEFT - 6, at + 3, number(most * share / 1.05, unit), text_anchor="end", fill="#666")
    legend = LEFT - 50
    for i, (name, points) in enumerate(found):
        colour = COLOURS[i % len(COLOURS)]
        way = " ".join("%.1f,%.1f" % (x(time), y(value)) for time, value in sorted(points.items()))
        yield '<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>' % (way, colour)
        if legend + 7 * len(name) < width:
            yield '<rect x="%.1f" y="%d" width="10" height="3" fill="%s"/>' % (legend, height - 14, colour)
            yield text(legend + 14, height - 9, name, fill="#333")
        legend += 26 + 6 * len(name)


def heat(found, span, width, height):
    """Buckets of a histogram; each has in it what the one below has not."""
    rows = sorted(found, key=lambda one: float(one[0].replace("+Inf", "inf")))
    cells, below = [], {}
    for i, (bound, points) in enumerate(rows):
        cells += [(i, time, value - below.get(time, 0)) for time, value in points.items()]
        below = points
    most = max([value for *_, value in cells] + [1e-9])
    tall = (height - TOP - BOTTOM) / max(len(rows), 1)
    wide = (width - LEFT - 12) / max(span[1] - span[0], 1)
    for i, (bound, _) in enumerate(rows):
        if i % 4 == 0 and bound != "+Inf":
            yield text(LEFT - 6, height - BOTTOM - i * tall, number(float(bound), "bytes"), text_anchor="end",
                       fill="#666")
    for i, time, value in cells:
        if value > 0:
            yield '<rect x="%.1f" y="%.1f" width="%.2f" height="%.1f" fill="#c4162a" opacity="%.2f"/>' % (
                LEFT + (time - span[0]) * wide, height - BOTTOM - (i + 1) * tall, wide + 0.3, tall,
                0.15 + 0.85 * value / most)


def main():
    dashboard, answers = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:3])
    times = [time for panel in answers for answer in panel["answers"] for one in answer["result"]
             for time, _ in one["values"]]
    span = (min(times), max(times))
    drawn = []
    for panel, answer in zip(dashboard["panels"], answers):
        place = panel["gridPos"]
        width, height = place["w"] * COLUMN - 8, place["h"] * ROW - 8
        found = series_of(panel, answer)
        heats = panel["type"] == "heatmap"
        parts = heat(found, span, width, height) if heats else lines(panel, found, span, width, height)
        drawn.append('<svg style="left:%dpx;top:%dpx" width="%d" height="%d">%s%s</svg>' % (
            place["x"] * COLUMN, place["y"] * ROW, width, height,
            text(8, 17, panel["title"], font_weight="bold", font_size="13"), "".join(parts)))
    with open(sys.argv[3], "w", encoding="utf-8") as out:
        out.write('<!doctype html><meta charset="utf-8"><style>body{background:#f4f5f5;margin:6px}div{position:relative}'
                  'svg{position:absolute;background:#fff;border:1px solid #ddd;font:11px sans-serif}</style><div>%s</div>'
                  % "".join(drawn))


main()
