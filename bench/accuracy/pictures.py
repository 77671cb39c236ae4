"""Pictures of cells. They need matplotlib."""
from accuracy.cases import ALONE, EXCHANGES, MODELS
from accuracy.seconds import of_epoch

ACCURACY = "test accuracy, mean model (%)"


def start():
    """matplotlib's drawing module."""
    import matplotlib
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.fonttype"] = "none"
    matplotlib.rcParams["svg.hashsalt"] = "fast"  # the same picture from the same figures
    import matplotlib.pyplot as plt
    return plt


def style(exchange):
    """One color an exchange, in all pictures."""
    color = "gray" if exchange == ALONE else f"C{list(EXCHANGES).index(exchange)}"
    return {"color": color, "label": exchange.replace("one-peer", "one peer"), "marker": ".", "linewidth": 1.2}


def finish(plt, figure, path):
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    print(path)


def trim(axes, model, title, xlabel):
    axes.axhline(100 * MODELS[model].target, color="gray", linewidth=0.6)
    axes.set(title=title, xlabel=xlabel)
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=7, frameon=False)


def draw_epochs(plt, model, cells, workers, path):
    """Accuracy over epochs: one panel a number of workers, with one worker in each."""
    several = [count for count in workers if count > 1] or workers
    figure, axes = plt.subplots(1, len(several), figsize=(3.1 * len(several), 3.4), sharey=True, squeeze=False)
    for place, count in zip(axes[0], several):
        for cell in cells:
            if cell.workers in (1, count):
                place.plot(range(1, len(cell.curve()) + 1), cell.curve(), **style(cell.exchange))
        trim(place, model, f"{count} workers", "epoch")
    axes[0][0].set_ylabel(ACCURACY)
    finish(plt, figure, path)


def draw_workers(plt, model, cells, workers, rounds, path):
    """Accuracy by number of workers, and over computed seconds with the most workers."""
    figure, (by_workers, over_time) = plt.subplots(1, 2, figsize=(9, 3.6))
    for name in (ALONE, *EXCHANGES):
        own = sorted((cell for cell in cells if cell.exchange == name), key=lambda cell: cell.workers)
        if own:
            middle = [cell.curve()[-1] for cell in own]
            below = [m - min(cell.final()) for m, cell in zip(middle, own)]
            above = [max(cell.final()) - m for m, cell in zip(middle, own)]
            by_workers.errorbar([cell.workers for cell in own], middle, yerr=[below, above], capsize=2, **style(name))
    by_workers.set_xscale("log", base=2)
    by_workers.set_xticks(workers, [str(count) for count in workers])
    by_workers.set_ylabel(ACCURACY)
    trim(by_workers, model, "after the last epoch", "workers")
    for cell in cells:
        epoch_s = of_epoch(cell, rounds)
        if cell.workers in (1, max(workers)) and epoch_s is not None:
            over_time.plot([epoch_s * (epoch + 1) for epoch in range(len(cell.curve()))], cell.curve(), **style(cell.exchange))
    over_time.set_xscale("log")
    trim(over_time, model, f"1 and {max(workers)} workers", f"seconds, {rounds.source.split(' ')[0]}")
    finish(plt, figure, path)


def draw(model, cells, workers, rounds, out):
    """Writes curves-MODEL.svg and curves-MODEL-workers.svg, where matplotlib is installed."""
    try:
        plt = start()
    except ModuleNotFoundError:
        print("no picture: matplotlib is missing: apt-get install python3-matplotlib")
        return
    draw_epochs(plt, model, cells, workers, out / f"curves-{model}.svg")
    draw_workers(plt, model, cells, workers, rounds, out / f"curves-{model}-workers.svg")
