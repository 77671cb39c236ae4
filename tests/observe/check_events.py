"""Reads event files with TensorBoard's own reader: check_events.py DIRECTORY WORKERS"""

import os
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def check(directory, workers):
    assert sorted(os.listdir(directory)) == ["mean-model"] + [f"worker-{w}" for w in range(workers)]
    mean = EventAccumulator(os.path.join(directory, "mean-model"))
    mean.Reload()
    assert sorted(mean.Tags()["scalars"]) == ["consensus_distance", "test/accuracy", "test/loss"]
    means = mean.Tags()["histograms"]
    assert len(means) == 4 and all(tag.startswith("weights/") for tag in means), means
    for tag in means:
        assert len(mean.Histograms(tag)) == 2, tag  # epochs
    for worker in range(workers):
        events = EventAccumulator(os.path.join(directory, f"worker-{worker}"))
        events.Reload()
        tags = events.Tags()
        for tag in ("train/epoch_loss", "train/accuracy", "train/gradient_norm", "test/mean_model_accuracy", "seconds/wait"):
            assert tag in tags["scalars"], (worker, tag, tags["scalars"])
            assert len(events.Scalars(tag)) == 2, (worker, tag)  # epochs
        accuracy = events.Scalars("test/mean_model_accuracy")[-1].value
        if worker == 0:
            assert accuracy == mean.Scalars("test/accuracy")[-1].value
        assert 0 < accuracy <= 1, accuracy
        assert "ages" in tags["histograms"], tags["histograms"]
        weights = [tag for tag in tags["histograms"] if tag.startswith("weights/")]
        assert len(weights) == 4, weights
        for tag in weights:
            value = events.Histograms(tag)[-1].histogram_value
            assert abs(sum(value.bucket) - value.num) < 0.5, tag
    print(f"{workers} directories read by EventAccumulator")


check(sys.argv[1], int(sys.argv[2]))
