"""LoRA by peft: only adapters are sent.   mpiexec -n 4 python examples/python/train_lora.py [SEED] [STEPS]

Makes a language model of bytes, trains it on licenses (Debian's package base-files), and adapts it to programs in Perl
(package perl-base, other modules on each worker). Prints perplexities on the tenth of each file that nobody trains on.
"""
import copy
import glob
import math
import sys
import time
import warnings

import peft
import torch
import transformers

import fast_decentralized as fast

seed, steps = [int(n) for n in (sys.argv[1:] + ["1", "200"][len(sys.argv) - 1:])]
LICENSES = sorted(glob.glob("/usr/share/common-licenses/*-[0-9]*"))
MODULES = [f"/usr/lib/*/perl-base/{one}.pm" for one in
           ("Carp", "Cwd", "File/Path", "File/Temp", "Getopt/Long", "IO/Socket/IP", "POSIX", "warnings")]
LENGTH, BATCH = 128, 8
began = time.monotonic()
torch.set_num_threads(1)
warnings.simplefilter("ignore", FutureWarning)
transformers.logging.set_verbosity_error()


def text_of(pattern):
    with open(glob.glob(pattern)[0], "rb") as file:
        return torch.tensor(list(file.read()))


def batch_of(texts, random):
    """Pieces of these texts, from their first nine tenths; longer texts are drawn more often."""
    text = torch.cat([one[:len(one) * 9 // 10] for one in texts])
    first = torch.randint(len(text) - LENGTH, (BATCH,), generator=random)
    return torch.stack([text[place:place + LENGTH] for place in first])


def perplexity(model, texts):
    """On the last tenth of each text."""
    pieces = torch.cat([one[len(one) * 9 // 10:].unfold(0, LENGTH, LENGTH) for one in texts])
    model.eval()
    with torch.no_grad():
        losses = [model(input_ids=part, labels=part).loss * len(part) for part in pieces.split(16)]
    return math.exp(sum(losses) / len(pieces))


def train(model, texts, topology, rounds, rate, **options):
    """Returns the bytes that a worker sends to a neighbor in a round. The model becomes the mean of all workers."""
    trained = [one for one in model.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(trained, rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, rounds)
    worker = fast.Worker(model, topology, **options)          # what has requires_grad takes part
    random = torch.Generator().manual_seed(1000 * seed + worker.rank)
    before = worker.stats
    model.train()
    for _ in range(rounds):
        with worker.round():
            optimizer.zero_grad()
            batch = batch_of(texts, random)
            model(input_ids=batch, labels=batch).loss.backward()
            optimizer.step()
            schedule.step()
    sent = (worker.stats.bytes_sent - before.bytes_sent) / max(1, worker.stats.messages_sent - before.messages_sent)
    worker.await_finish()
    model.load_state_dict(worker.mean_model())
    worker.close()
    return sent


rank, size = fast.rank(), fast.size()
torch.manual_seed(seed)
base = transformers.GPT2LMHeadModel(transformers.GPT2Config(
    vocab_size=256, n_positions=LENGTH, n_embd=64, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
    bos_token_id=None, eos_token_id=None))
train(base, [text_of(file) for file in LICENSES], "complete", steps, 1e-2)
programs = [text_of(file) for file in MODULES]
found = {"base": perplexity(base, programs)}
for name, topology, options, trains_a in [("neighbors", "ring", {}, True),
                                          ("all-reduce", "complete", {"algorithm": "allreduce"}, True),
                                          ("neighbors, A frozen", "ring", {}, False)]:
    torch.manual_seed(seed)
    model = peft.get_peft_model(copy.deepcopy(base), peft.LoraConfig(
        r=8, lora_alpha=16, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True))
    for layer, parameter in model.named_parameters():
        if "lora_A" in layer:
            parameter.requires_grad_(trains_a)
    adapter = sum(one.numel() * one.element_size() for one in model.parameters() if one.requires_grad)
    sent = train(model, programs[rank::size], topology, steps // 2, 1e-2, **options)
    kept = all(one.equal(base.get_parameter(layer.removeprefix("base_model.model.").replace(".base_layer", "")))
               for layer, one in model.named_parameters() if "lora" not in layer)
    found[name] = perplexity(model, programs)
    if rank == 0 and topology == "ring":
        print(f"{name}: {sent:.0f} bytes a round, {adapter} in the adapter, the base is {'as before' if kept else 'CHANGED'}")
if rank == 0:
    print(f"{size} workers, {time.monotonic() - began:.0f} s, perplexity: "
          + ", ".join(f"{name} {value:.3f}" for name, value in found.items()))
