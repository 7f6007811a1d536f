#!/usr/bin/env python3
"""The PyTorch rival of tests/bench/train.sh: the same model, batch and optimizer as pipelag's, one thread.

Prints one JSON line: tokens per second of the median step, seconds from the start of the process to the end of the
first step, peak memory. With --tokens FILE it writes random tokens for pipelag's data instead; with --weights FILE
(of `pipelag checkpoint merge`) it prints the loss of those weights on the tokens: both programs train one model.
"""
import argparse
import json
import math
import os
import resource
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SHAPES = {
    "a": dict(layers=4, width=256, heads=4, kv_heads=2, ff=704, context=256, vocab=512, batch=8),
    "b": dict(layers=6, width=512, heads=8, kv_heads=4, ff=1408, context=256, vocab=8192, batch=4),
    "c": dict(layers=2, width=128, heads=4, kv_heads=2, ff=384, context=128, vocab=256, batch=8),
    "d": dict(layers=2, width=64, heads=4, kv_heads=2, ff=192, context=64, vocab=128, batch=8),
    "demo": dict(layers=2, width=32, heads=2, kv_heads=2, ff=88, context=64, vocab=256, batch=16),
}
WINDOWS = 64  # of the check


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


def rotate(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class Attention(nn.Module):
    """`fused`: query, key and value by one product, as GPT-2 implementations do it."""

    def __init__(self, s, bias, fused):
        super().__init__()
        width = s["width"]
        self.heads, self.kv_heads, self.dim = s["heads"], s["kv_heads"], width // s["heads"]
        kv_width = self.kv_heads * self.dim
        self.sizes = (width, kv_width, kv_width)
        if fused:
            self.qkv = nn.Linear(width, sum(self.sizes), bias=bias)
        else:
            self.q, self.k, self.v = (nn.Linear(width, n, bias=bias) for n in self.sizes)
        self.fused, self.o = fused, nn.Linear(width, width, bias=bias)

    def forward(self, x, mask, rope):
        batch, time_, width = x.shape
        q, k, v = self.qkv(x).split(self.sizes, 2) if self.fused else (self.q(x), self.k(x), self.v(x))
        q = q.view(batch, time_, self.heads, self.dim).transpose(1, 2)
        k = k.view(batch, time_, self.kv_heads, self.dim).transpose(1, 2)
        v = v.view(batch, time_, self.kv_heads, self.dim).transpose(1, 2)
        if rope is not None:
            q, k = rotate(q, *rope), rotate(k, *rope)
        groups = self.heads // self.kv_heads
        if groups > 1:
            k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        if hasattr(F, "scaled_dot_product_attention"):  # since 2.0
            attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.o(attended.transpose(1, 2).reshape(batch, time_, width))
        scores = (q @ k.transpose(-2, -1)) * (1 / math.sqrt(self.dim))
        p = F.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)
        return self.o((p @ v).transpose(1, 2).reshape(batch, time_, width))


class Llama(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.gate, self.up = (nn.Linear(s["width"], s["ff"], bias=False) for _ in range(2))
        self.down = nn.Linear(s["ff"], s["width"], bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Gpt2(nn.Module):
    def __init__(self, s):
        super().__init__()
        setattr(self, "in", nn.Linear(s["width"], 4 * s["width"]))
        self.out = nn.Linear(4 * s["width"], s["width"])

    def forward(self, x):
        return self.out(F.gelu(getattr(self, "in")(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, s, llama, fused):
        super().__init__()
        norm = RMSNorm if llama else nn.LayerNorm
        self.attention_norm, self.mlp_norm = norm(s["width"]), norm(s["width"])
        self.attention = Attention(s, not llama, fused)
        self.mlp = Llama(s) if llama else Gpt2(s)

    def forward(self, x, mask, rope):
        x = x + self.attention(self.attention_norm(x), mask, rope)
        return x + self.mlp(self.mlp_norm(x))


class Model(nn.Module):
    """Tied head. Parameters have pipelag's names but for the endings `.weight`."""

    def __init__(self, s, style, fused):
        super().__init__()
        llama = style == "llama"
        self.embedding = nn.Embedding(s["vocab"], s["width"])
        self.positions = None if llama else nn.Embedding(s["context"], s["width"])
        self.layers = nn.ModuleList(Block(s, llama, fused) for _ in range(s["layers"]))
        self.final_norm = (RMSNorm if llama else nn.LayerNorm)(s["width"])
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)
        dim, context = s["width"] // s["heads"], s["context"]
        self.register_buffer("mask", torch.triu(torch.ones(context, context, dtype=torch.bool), 1)[None, None])
        frequency = 1.0 / 10000 ** (torch.arange(0, dim, 2).float() / dim)
        angle = torch.outer(torch.arange(context).float(), frequency)
        self.rope = (torch.cat((angle, angle), -1).cos(), torch.cat((angle, angle), -1).sin()) if llama else None

    def forward(self, tokens, targets):
        x = self.embedding(tokens)
        if self.positions is not None:
            x = x + self.positions.weight
        for layer in self.layers:
            x = layer(x, self.mask, self.rope)
        logits = F.linear(self.final_norm(x), self.embedding.weight)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


def newton_schulz(g):
    x = g / (g.norm() + 1e-7)
    tall = x.size(0) > x.size(1)
    if tall:
        x = x.T
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * (a @ a)) @ x
    return x.T if tall else x


class Muon(torch.optim.Optimizer):
    def __init__(self, params, lr, momentum=0.95, weight_decay=0.1):
        super().__init__(params, dict(lr=lr, momentum=momentum, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if "buffer" not in state:
                    state["buffer"] = torch.zeros_like(p)
                buffer = state["buffer"]
                buffer.mul_(group["momentum"]).add_(p.grad)
                u = newton_schulz(p.grad + group["momentum"] * buffer) * (0.2 * math.sqrt(max(p.shape)))
                p.mul_(1 - group["lr"] * group["weight_decay"]).add_(u, alpha=-group["lr"])


def age():
    """Seconds since this process started: the interpreter's start counts."""
    with open("/proc/self/stat") as f:
        start = int(f.read().rsplit(")", 1)[1].split()[19])
    with open("/proc/uptime") as f:
        return float(f.read().split()[0]) - start / os.sysconf("SC_CLK_TCK")


def write_tokens(path, s):
    tokens = torch.randint(0, s["vocab"], (WINDOWS * s["context"] + 1,))
    with open(path, "wb") as f:
        f.write(tokens.to(torch.int16).numpy().tobytes())


def given_loss(model, weights, tokens, s):
    """Of pipelag's weights on windows whose targets do not overlap."""
    import h5py
    import numpy

    with h5py.File(weights) as f, torch.no_grad():
        for name, p in model.named_parameters():
            part = f[name[: -len(".weight")] if name.endswith(".weight") else name]
            p.copy_(torch.from_numpy(part[:]).view_as(p))
    text = torch.from_numpy(numpy.fromfile(tokens, dtype=numpy.int16).astype(numpy.int64))
    windows = torch.stack([text[i * s["context"] : (i + 1) * s["context"] + 1] for i in range(WINDOWS)])
    with torch.no_grad():
        losses = [model(w[:, :-1], w[:, 1:]).item() for w in windows.split(s["batch"])]
    return sum(losses) / len(losses)


def train(model, optimizers, s, bf16, steps, warmup):
    """Seconds of each step after the warm-up, and the process's age at the end of the first."""
    data = torch.randint(0, s["vocab"], (64, s["batch"], s["context"] + 1))
    seconds, first = [], None
    for step in range(steps + warmup):
        window = data[step % 64]
        began = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            loss = model(window[:, :-1].contiguous(), window[:, 1:].contiguous())
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
        loss.item()
        first = first or age()
        if step >= warmup:
            seconds.append(time.perf_counter() - began)
    return seconds, first


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, default="d")
    parser.add_argument("--style", choices=("llama", "gpt2"), default="llama")
    parser.add_argument("--optimizer", choices=("adamw", "muon"), default="adamw")
    parser.add_argument("--bf16", action="store_true", help="autocast")
    parser.add_argument("--compile", action="store_true", help="torch.compile")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--tokens", metavar="FILE")
    parser.add_argument("--weights", metavar="FILE")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    shape = dict(SHAPES[args.shape])
    if args.tokens and not args.weights:
        write_tokens(args.tokens, shape)
        return
    if args.style == "gpt2":
        shape["kv_heads"] = shape["heads"]
    # Muon takes query, key and value each apart, as pipelag's does by default.
    fused = args.style == "gpt2" and args.optimizer == "adamw" and not args.weights
    model = Model(shape, args.style, fused)
    if args.weights:
        print(json.dumps({"loss": given_loss(model, args.weights, args.tokens, shape)}))
        return
    hidden = [p for n, p in model.named_parameters() if n.startswith("layers") and p.dim() == 2]
    rest = [p for n, p in model.named_parameters() if not (n.startswith("layers") and p.dim() == 2)]
    fused_step = {"fused": True} if torch.__version__ >= "2.4" else {}
    adamw = lambda params: torch.optim.AdamW(params, lr=8e-3, betas=(0.9, 0.95), weight_decay=0.1, **fused_step)
    optimizers = [Muon(hidden, lr=8e-3), adamw(rest)] if args.optimizer == "muon" else [adamw(hidden + rest)]
    if args.compile:
        model = torch.compile(model)
    seconds, first = train(model, optimizers, shape, args.bf16, args.steps, args.warmup)
    print(
        json.dumps(
            {
                "program": f"PyTorch {torch.__version__}{' compiled' if args.compile else ''}",
                "tokens_per_second": shape["batch"] * shape["context"] / statistics.median(seconds),
                "first_step": first,
                "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
        )
    )


if __name__ == "__main__":
    main()
