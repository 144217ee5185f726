"""PyTorch DistributedDataParallel over gloo, on CPUs: needs `pip install torch`, and nothing else.

The process group is made from the environment alone (`env://`): RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are there
as `torchrun` would set them, so a script that runs under `torchrun` runs here unchanged.
"""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("gloo", init_method="env://")
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    truth = torch.arange(16, dtype=torch.float32).unsqueeze(1) / 16
    loss = torch.tensor(0.0)
    for step in range(int(os.environ.get("STEPS", "200"))):
        generator = torch.Generator().manual_seed(step * dist.get_world_size() + dist.get_rank())
        inputs = torch.randn(64, 16, generator=generator)
        loss = torch.nn.functional.mse_loss(model(inputs), inputs @ truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.all_reduce(loss)
    if dist.get_rank() == 0:
        print(f"{dist.get_world_size()} workers, loss {loss.item() / dist.get_world_size():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
