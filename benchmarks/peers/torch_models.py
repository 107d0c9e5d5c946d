"""The models of the published benchmarks in PyTorch."""

import torch
from torch import nn


def build(name: str) -> nn.Module:
  """Builds a model of images [batch, 32, 32, 3] with ten logits.

  The images are permuted to PyTorch's order as a view. With the channels last
  in memory, training takes less time than with a copy in PyTorch's order.
  """
  return nn.Sequential(_Permute(), *_LAYERS[name]())


class _Permute(nn.Module):
  def forward(self, x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, 3, 1, 2)


def _pfl_cifar10():
  return (
    nn.Conv2d(3, 32, 3),
    nn.ReLU(),
    nn.Conv2d(32, 64, 3),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Dropout(0.25),
    nn.Flatten(),
    nn.Linear(14 * 14 * 64, 128),
    nn.ReLU(),
    nn.Dropout(0.5),
    nn.Linear(128, 10),
  )


def _blazefl():
  return (
    nn.Conv2d(3, 6, 5),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(6, 16, 5),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(5 * 5 * 16, 120),
    nn.ReLU(),
    nn.Linear(120, 84),
    nn.ReLU(),
    nn.Linear(84, 10),
  )


_LAYERS = {'pfl_cifar10': _pfl_cifar10, 'blazefl': _blazefl}
