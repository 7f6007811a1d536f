#!/usr/bin/env python3
"""The PyTorch rival of tests/bench/train.sh: the same LLaMA-style model, batch and optimizer, one thread, fp32.

Prints one JSON line with tokens per second of the median step.
"""
import argparse
import json
import math
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SHAPES = {
    "demo": dict(layers=2, width=32, heads=2, kv_heads=2, ff=88, context=64, vocab=256, batch=16, tied=False),
    "a": dict(layers=4, width=256, heads=4, kv_heads=2, ff=704, context=256, vocab=512, batch=8, tied=True),
}


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


def rotate(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class Block(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.heads, self.kv_heads, self.dim = s["heads"], s["kv_heads"], s["width"] // s["heads"]
        linear = lambda i, o: nn.Linear(i, o, bias=False)
        width, kv_width = s["width"], self.kv_heads * self.dim
        self.norm1, self.norm2 = RMSNorm(width), RMSNorm(width)
        self.q, self.k, self.v, self.o = linear(width, width), linear(width, kv_width), linear(width, kv_width), linear(width, width)
        self.gate, self.up, self.down = linear(width, s["ff"]), linear(width, s["ff"]), linear(s["ff"], width)

    def forward(self, x, mask, cos, sin):
        batch, time_, width = x.shape
        h = self.norm1(x)
        q = rotate(self.q(h).view(batch, time_, self.heads, self.dim).transpose(1, 2), cos, sin)
        k = rotate(self.k(h).view(batch, time_, self.kv_heads, self.dim).transpose(1, 2), cos, sin)
        v = self.v(h).view(batch, time_, self.kv_heads, self.dim).transpose(1, 2)
        groups = self.heads // self.kv_heads
        if groups > 1:
            k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(self.dim)
        attention = F.softmax(scores.masked_fill(mask, float("-inf")), dim=-1)
        x = x + self.o((attention @ v).transpose(1, 2).reshape(batch, time_, width))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Model(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.embedding = nn.Embedding(s["vocab"], s["width"])
        self.blocks = nn.ModuleList([Block(s) for _ in range(s["layers"])])
        self.norm = RMSNorm(s["width"])
        self.head = nn.Linear(s["width"], s["vocab"], bias=False)
        if s["tied"]:
            self.head.weight = self.embedding.weight
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)
        dim, context = s["width"] // s["heads"], s["context"]
        self.register_buffer("mask", torch.triu(torch.ones(context, context, dtype=torch.bool), 1)[None, None])
        frequency = 1.0 / 10000 ** (torch.arange(0, dim, 2).float() / dim)
        angle = torch.outer(torch.arange(context).float(), frequency)
        angle = torch.cat((angle, angle), -1)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def forward(self, tokens, targets):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, self.mask, self.cos, self.sin)
        logits = self.head(self.norm(x))
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
                buffer = state.setdefault("buffer", torch.zeros_like(p))
                buffer.mul_(group["momentum"]).add_(p.grad)
                u = newton_schulz(p.grad + group["momentum"] * buffer) * (0.2 * math.sqrt(max(p.shape)))
                p.mul_(1 - group["lr"] * group["weight_decay"]).add_(u, alpha=-group["lr"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, default="demo")
    parser.add_argument("--optimizer", choices=("adamw", "muon"), default="adamw")
    parser.add_argument("--steps", type=int, default=50)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    shape = SHAPES[args.shape]
    model = Model(shape)
    hidden = [p for n, p in model.named_parameters() if n.startswith("blocks") and p.dim() == 2]
    rest = [p for n, p in model.named_parameters() if not (n.startswith("blocks") and p.dim() == 2)]
    adamw = lambda params: torch.optim.AdamW(params, lr=8e-3, betas=(0.9, 0.95), weight_decay=0.1)
    optimizers = [Muon(hidden, lr=8e-3), adamw(rest)] if args.optimizer == "muon" else [adamw(hidden + rest)]
    batch, context, vocab = shape["batch"], shape["context"], shape["vocab"]
    data = torch.randint(0, vocab, (64, batch, context + 1))
    seconds = []
    for step in range(args.steps + 3):
        window = data[step % 64]
        began = time.perf_counter()
        loss = model(window[:, :-1].contiguous(), window[:, 1:].contiguous())
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
        loss.item()
        if step >= 3:
            seconds.append(time.perf_counter() - began)
    rate = batch * context / statistics.median(seconds)
    print(json.dumps({"program": f"PyTorch {torch.__version__}", "tokens_per_second": rate}))


if __name__ == "__main__":
    main()
