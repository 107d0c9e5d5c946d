# /// script
# requires-python = "==3.11.*"
# dependencies = ["pfl[pytorch]==0.6.0", "torch==2.13.0"]
# ///
"""pfl-research's federated averaging in PyTorch: a round for each line read.

Two processes share the cohort, by `torchrun`, with one thread each. A client's
examples keep their order, as in pfl-research's benchmark.
"""

import os
import sys

import lockstep
import numpy as np
from pfl.aggregate.simulate import SimulatedBackend
from pfl.aggregate.weighting import WeightByUser
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam.base import NNEvalHyperParams
from pfl.hyperparam.base import NNTrainHyperParams
from pfl.metrics import Metrics
from pfl.metrics import Weighted
from pfl.model.pytorch import PyTorchModel
import torch
import torch_models

_PROCESSES = 2
_NEVER = sys.maxsize


class _Model(torch.nn.Module):
  def __init__(self, name):
    super().__init__()
    self._layers = torch_models.build(name)

  def loss(self, x, y, eval=False):
    self.train(not eval)
    return torch.nn.functional.cross_entropy(self._layers(x), y)

  @torch.no_grad()
  def metrics(self, x, y, eval=True):
    return {'loss': Weighted(len(y) * self.loss(x, y, eval).item(), len(y))}


class _LockStep(TrainingProcessCallback):
  """Waits for a line before each round; only the first process reads."""

  def __init__(self):
    self._rounds = lockstep.rounds()

  def on_train_begin(self, *, model):
    self._wait()
    return Metrics()

  def after_central_iteration(self, metrics, model, *, central_iteration):
    return self._wait(), Metrics()

  def _wait(self) -> bool:
    first = torch.distributed.get_rank() == 0
    ended = torch.tensor(int(first and next(self._rounds, None) is None))
    torch.distributed.broadcast(ended, src=0)
    return bool(ended)


def main() -> None:
  """Runs the rounds."""
  torch.manual_seed(0)
  np.random.seed(0)  # Both processes must draw the same cohort.
  work = lockstep.work()
  x, y = map(torch.from_numpy, lockstep.clients(work.path))
  users = FederatedDataset.from_slices(
    list(zip(x, y.long(), strict=True)),
    get_user_sampler('random', range(len(y))),
  )
  network = _Model(work.model)
  # Without evaluation, but that of the first round, which is not counted.
  FederatedAveraging().run(
    NNAlgorithmParams(
      central_num_iterations=_NEVER,
      evaluation_frequency=_NEVER,
      train_cohort_size=work.cohort,
      val_cohort_size=0,
    ),
    SimulatedBackend(users, users, postprocessors=[WeightByUser()]),
    PyTorchModel(
      network,
      local_optimizer_create=torch.optim.SGD,
      central_optimizer=torch.optim.SGD(network.parameters(), 1.0),
    ),
    NNTrainHyperParams(
      local_num_epochs=work.local_epochs,
      local_learning_rate=work.rate,
      local_batch_size=work.batch_size,
    ),
    NNEvalHyperParams(local_batch_size=work.batch_size),
    callbacks=[_LockStep()],
    send_metrics_to_platform=False,
  )


if __name__ == '__main__':
  if not torch.distributed.is_torchelastic_launched():
    run = (sys.executable, '-m', 'torch.distributed.run', '--standalone')
    os.execv(run[0], [*run, f'--nproc-per-node={_PROCESSES}', *sys.argv])
  main()
