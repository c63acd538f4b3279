#!/usr/bin/env python3
"""Runs torch.distributed over the plugin on this machine and checks what comes out.

usage: gpu_torch.py [--ranks N] [--timeout SECONDS] all_reduce|ddp

Starts N ranks of itself, which may share a GPU: each gets its own NCCL_HOSTID. all_reduce sums tensors of several types
and sizes. ddp trains a small model data-parallel and compares its parameters with the same training on one rank. Every
rank asserts by NCCL's log that the plugin carried the bytes. Exits 0 when all ranks were right, else 1.
"""

import argparse
import datetime
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

NET = "tcpx"


def check(condition, text):
    if not condition:
        raise SystemExit(f"gpu_torch: rank {os.environ.get('RANK', '?')}: {text}")


def check_network(log):
    """Fails unless NCCL's log names the plugin as the network, and channels over it."""
    text = pathlib.Path(log).read_text(errors="replace")
    names = set(re.findall(r"Using network (\S+)", text)) | set(re.findall(r" via NET/([^/\s]+)", text))
    check(names == {NET}, f"NCCL used {sorted(names)}, not {NET}")
    check(f" via NET/{NET}/" in text, f"no channel ran over {NET}")


def run_all_reduce(torch, device, rank, ranks):
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int8):
        for count in (1, 1000, 1 << 20):
            tensor = torch.full((count,), rank + 1, dtype=dtype, device=device)
            torch.distributed.all_reduce(tensor)
            # Small whole numbers: exact in all of these types.
            check(bool((tensor == ranks * (ranks + 1) // 2).all()), f"all_reduce of {count} {dtype} is wrong")


def make_model(torch, device):
    torch.manual_seed(1)
    layers = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Tanh(), torch.nn.Linear(256, 8))
    return layers.to(device=device, dtype=torch.float64)


def train(torch, model, inputs, targets):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(20):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()


def run_ddp(torch, device, rank, ranks):
    generator = torch.Generator().manual_seed(2)
    inputs = torch.randn(32 * ranks, 64, generator=generator, dtype=torch.float64).to(device)
    targets = torch.randn(32 * ranks, 8, generator=generator, dtype=torch.float64).to(device)
    own = slice(32 * rank, 32 * (rank + 1))
    parallel = torch.nn.parallel.DistributedDataParallel(make_model(torch, device))
    train(torch, parallel, inputs[own], targets[own])
    alone = make_model(torch, device)
    train(torch, alone, inputs, targets)
    # The mean of the ranks' gradients is the gradient of the whole batch.
    for ours, reference in zip(parallel.module.parameters(), alone.parameters()):
        check(torch.allclose(ours, reference, rtol=1e-9, atol=1e-12), "the parameters differ from one rank's training")


def run_rank(mode, timeout):
    import torch
    import torch.distributed

    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cuda", rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl", timeout=datetime.timedelta(seconds=timeout))
    {"all_reduce": run_all_reduce, "ddp": run_ddp}[mode](torch, device, rank, ranks)
    torch.cuda.synchronize()
    torch.distributed.destroy_process_group()
    check_network(os.environ["NCCL_DEBUG_FILE"])
    if rank == 0:
        print(f"torch {torch.__version__}: {mode} on {ranks} ranks over {NET} is right")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_rank(arguments, rank, port, folder):
    environment = dict(
        os.environ,
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(arguments.ranks),
        LOCAL_WORLD_SIZE=str(arguments.ranks),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        NCCL_HOSTID=f"{socket.gethostname()}-{os.getpid()}-rank{rank}",
        NCCL_NET=NET,
        NCCL_DEBUG="INFO",
        NCCL_DEBUG_SUBSYS="INIT,NET",
        NCCL_DEBUG_FILE=f"{folder}/rank{rank}.log",
    )
    return subprocess.Popen([sys.executable, __file__, *sys.argv[1:]], env=environment)


def launch(arguments):
    """Returns 0 when all ranks ended well in time; ends the others when one does not."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        ranks = [start_rank(arguments, rank, port, folder) for rank in range(arguments.ranks)]
        deadline = time.monotonic() + 5 * arguments.timeout
        try:
            while any(rank.poll() is None for rank in ranks):
                if any(rank.poll() not in (None, 0) for rank in ranks):
                    time.sleep(5)  # What the others get to fail by themselves.
                    return 1
                if time.monotonic() > deadline:
                    print("gpu_torch: the ranks did not end in time", file=sys.stderr)
                    return 1
                time.sleep(0.1)
        finally:
            for rank in ranks:
                rank.kill()
                rank.wait()
        return 0 if all(rank.returncode == 0 for rank in ranks) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--timeout", type=int, default=120)
    parser.add_argument("mode", choices=["all_reduce", "ddp"])
    arguments = parser.parse_args()
    if "RANK" in os.environ:
        run_rank(arguments.mode, arguments.timeout)
        return 0
    return launch(arguments)


if __name__ == "__main__":
    sys.exit(main())
