"""A small ViT on scikit-learn's digits with the Trainer.   mpiexec -n 4 python examples/python/train_trainer.py [EPOCHS]"""
import sys, tempfile

import torch
from fast_decentralized.transformers import FastCallback
from sklearn.datasets import load_digits
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification

torch.set_num_threads(1)
torch.manual_seed(0)
digits = load_digits()
x = torch.tensor(digits.images[:, None] / 16, dtype=torch.float32)
data = [{"pixel_values": image, "labels": int(label)} for image, label in zip(x, digits.target)]
model = ViTForImageClassification(ViTConfig(
    image_size=8, patch_size=2, num_channels=1, num_labels=10, hidden_size=64, num_hidden_layers=2,
    num_attention_heads=4, intermediate_size=128, hidden_dropout_prob=0.0))

with tempfile.TemporaryDirectory() as folder:
    trainer = Trainer(
        model, TrainingArguments(folder, use_cpu=True, num_train_epochs=float(sys.argv[1]) if len(sys.argv) > 1 else 20,
                                 per_device_train_batch_size=16, learning_rate=2e-3, report_to="none",
                                 save_strategy="no", logging_strategy="no", disable_tqdm=True),
        train_dataset=data[:1437], eval_dataset=data[1437:],
        compute_metrics=lambda result: {"accuracy": (result.predictions.argmax(1) == result.label_ids).mean()})
    trainer.add_callback(FastCallback(trainer, topology="torus2d"))
    trainer.train()
    accuracy = trainer.evaluate()["eval_accuracy"]
if trainer.is_world_process_zero():
    print(f"{trainer.accelerator.num_processes} workers: the mean model tells {100 * accuracy:.1f} % right")
