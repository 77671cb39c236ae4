"""Tables of cells: rows are exchanges, columns numbers of workers."""
import statistics

from accuracy.cases import ALONE, EXCHANGES, MODELS, label_of
from accuracy.seconds import of_epoch, to_target


def spread(values):
    """mean (lowest – highest)"""
    if len(values) == 1:
        return f"{values[0]:.1f}"
    return f"{statistics.mean(values):.1f} ({min(values):.1f} – {max(values):.1f})"


def shown(value):
    return "–" if value is None else f"{value:.1f}"


def table(cells, workers, text_of):
    by_place = {(cell.exchange, cell.workers): cell for cell in cells}
    names = [name for name in (ALONE, *EXCHANGES) if any(cell.exchange == name for cell in cells)]
    lines = ["| exchange | " + " | ".join(map(str, workers)) + " |", "|---" * (len(workers) + 1) + "|"]
    for name in names:
        found = [by_place.get((name, count)) for count in workers]
        lines.append(f"| {label_of(name)} | " + " | ".join(text_of(cell) if cell else "–" for cell in found) + " |")
    return lines


def report(model, cells, workers, rounds):
    target = f"{100 * MODELS[model].target:g} %"
    yield from ["Test accuracy after the last epoch, %, by number of workers:", ""]
    yield from table(cells, workers, lambda cell: spread(cell.final()))
    yield from ["", f"Epochs to {target}:", ""]
    yield from table(cells, workers, lambda cell: shown(cell.epochs()))
    yield from ["", f"Seconds to {target}, computed: these epochs times the seconds of an epoch, {rounds.source}:", ""]
    yield from table(cells, workers, lambda cell: shown(to_target(cell, rounds)))


def figures(cells, rounds):
    """All that tables and pictures show, for JSON."""
    return [{"model": cell.model, "exchange": cell.exchange, "workers": cell.workers, "accuracy": cell.curves,
             "epochs_to_target": cell.reached(), "seconds_of_epoch": of_epoch(cell, rounds),
             "seconds_to_target": to_target(cell, rounds)} for cell in cells]
