#!/usr/bin/python3
"""An animated picture of weights that agree on a torus:  bench/agreement.py >docs/pictures/agreement.svg

Each of 4 x 4 workers begins with a value of its own, drawn from SEED. In each round, it takes the mean of itself and of its
four neighbors, and all come to the mean of the first values. Left are the workers in colors, right their values by round.
"""
import colorsys
import itertools

import numpy as np

SEED, SIDE, ROUNDS, ROUND_S, REST_S = 7, 4, 8, 0.9, 2.0
LEFT, TOP, STEP, RADIUS = 60, 84, 74, 19  # of the torus
PLOT_X, PLOT_Y, PLOT_WIDTH, PLOT_HEIGHT = 400, 70, 340, 250


def neighbors(worker):
    row, column = divmod(worker, SIDE)
    return [(row + r) % SIDE * SIDE + (column + c) % SIDE for r, c in ((1, 0), (-1, 0), (0, 1), (0, -1))]


def values_by_round():
    workers = SIDE * SIDE
    mix = np.eye(workers) / 5
    for worker in range(workers):
        mix[worker, neighbors(worker)] = 1 / 5
    values = [np.random.default_rng(SEED).permutation(np.linspace(0, 1, workers))]
    for _ in range(ROUNDS):
        values.append(mix @ values[-1])
    return np.array(values)


def color(value):
    """From blue over gray to orange."""
    hue, saturation = (0.58, 1 - 2 * value) if value < 0.5 else (0.08, 2 * value - 1)
    return "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hsv_to_rgb(hue, 0.15 + 0.8 * saturation, 0.78 + 0.14 * saturation))


def animated(attribute, values, discrete=False):
    """From the first round's value to the last one's, which rests a while. The picture repeats."""
    duration = ROUNDS * ROUND_S + REST_S
    times = [f"{round_ * ROUND_S / duration:.3f}" for round_ in range(len(values))] + ["1"]
    mode = ' calcMode="discrete"' if discrete else ""
    return (f'<animate attributeName="{attribute}" dur="{duration:g}s" repeatCount="indefinite"{mode} '
            f'keyTimes="{";".join(times)}" values="{";".join(map(str, [*values, values[-1]]))}"/>')


def place(worker):
    row, column = divmod(worker, SIDE)
    return LEFT + column * STEP, TOP + row * STEP


def edges():
    """A neighbor over the border is at the end of a short line out of the picture's grid."""
    for worker in range(SIDE * SIDE):
        x, y = place(worker)
        for x_step, y_step, is_border in ((1, 0, worker % SIDE == SIDE - 1), (0, 1, worker // SIDE == SIDE - 1)):
            length = STEP / 2 if is_border else STEP
            yield f'<path d="M{x} {y}l{x_step * length:g} {y_step * length:g}"/>'
        for x_step, y_step, is_border in ((-1, 0, worker % SIDE == 0), (0, -1, worker // SIDE == 0)):
            if is_border:
                yield f'<path d="M{x} {y}l{x_step * STEP / 2:g} {y_step * STEP / 2:g}"/>'


def picture(values):
    at = [PLOT_X + PLOT_WIDTH * round_ / ROUNDS for round_ in range(ROUNDS + 1)]
    height = [[PLOT_Y + PLOT_HEIGHT * (1 - value) for value in row] for row in values]
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 780 370" width="780" height="370" '
           'font-family="sans-serif" font-size="14" fill="#333">')
    yield "<!-- made by bench/agreement.py -->"
    yield "<title>Sixteen workers on a torus take the mean of themselves and of their four neighbors, until all agree</title>"
    yield '<rect width="780" height="370" rx="8" fill="#fff"/>'
    yield f'<text x="{LEFT - RADIUS}" y="28">16 workers on a torus</text>'
    yield f'<text x="{PLOT_X}" y="28">their weights agree on the mean</text>'
    yield f'<g stroke="#bbb" stroke-width="2">{"".join(edges())}</g>'
    for worker in range(SIDE * SIDE):
        x, y = place(worker)
        colors = [color(value) for value in values[:, worker]]
        yield f'<circle cx="{x}" cy="{y}" r="{RADIUS}" fill="{colors[0]}" stroke="#fff" stroke-width="3">{animated("fill", colors)}</circle>'
    yield (f'<path d="M{PLOT_X} {PLOT_Y}v{PLOT_HEIGHT}h{PLOT_WIDTH}" fill="none" stroke="#888"/>'
           f'<text x="{PLOT_X + PLOT_WIDTH}" y="{PLOT_Y + PLOT_HEIGHT + 20}" text-anchor="end">round {ROUNDS}</text>'
           f'<text x="{PLOT_X}" y="{PLOT_Y + PLOT_HEIGHT + 20}">round 0</text>')
    for worker in range(SIDE * SIDE):
        points = " ".join(f"{x:.0f},{row[worker]:.1f}" for x, row in zip(at, height))
        yield f'<polyline points="{points}" fill="none" stroke="{color(values[0, worker])}" stroke-width="1.5"/>'
        yield (f'<circle cx="{PLOT_X}" cy="{height[0][worker]:.1f}" r="4" fill="{color(values[0, worker])}">'
               f'{animated("cx", [round(x) for x in at])}{animated("cy", [f"{row[worker]:.1f}" for row in height])}</circle>')
    yield "</svg>"


print("\n".join(itertools.chain(picture(values_by_round()))))
