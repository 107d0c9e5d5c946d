# /// script
# requires-python = "==3.11.*"
# dependencies = ["flwr[simulation]==1.42.0", "torch==2.13.0"]
# ///
"""Flower's FedAvg in its simulation runtime: a round for each line read.

Flower runs whole simulations, so its strategy waits for a line before it
configures a round. Two Ray actors of one core train the clients, each with one
thread. Nothing is evaluated.
"""

import logging
import os
import sys

import lockstep

os.environ |= {
  'FLWR_TELEMETRY_ENABLED': '0',
  'RAY_USAGE_STATS_ENABLED': '0',
  # Not less than that of the others: Ray's default is 15.
  'RAY_worker_niceness': '0',
}

from flwr import app as flower
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp import strategy
from flwr.simulation import run_simulation
import torch
import torch_models

_ACTORS = 2
client, server = ClientApp(), ServerApp()
work = lockstep.work()


@client.train()
def train(message: flower.Message, context: flower.Context) -> flower.Message:
  """Trains the model of the message on the examples of a client."""
  torch.set_num_threads(1)
  number = context.node_config['partition-id']
  x, y = (
    torch.from_numpy(arrays[number]) for arrays in lockstep.clients(work.path)
  )
  model = torch_models.build(work.model)
  model.load_state_dict(message.content['arrays'].to_torch_state_dict())
  optimizer = torch.optim.SGD(model.parameters(), work.rate)
  for _ in range(work.local_epochs):
    for batch in torch.randperm(len(y)).split(work.batch_size):
      optimizer.zero_grad()
      loss = torch.nn.functional.cross_entropy(model(x[batch]), y[batch].long())
      loss.backward()
      optimizer.step()
  content = flower.RecordDict(
    {
      'arrays': flower.ArrayRecord(model.state_dict()),
      'metrics': flower.MetricRecord({'num-examples': len(y)}),
    }
  )
  return flower.Message(content, reply_to=message)


class _LockStep(strategy.FedAvg):
  """FedAvg whose rounds begin when they are asked for."""

  rounds = lockstep.rounds()

  def configure_train(self, *arguments):
    if next(self.rounds, None) is None:
      sys.exit()  # This thread, and with it the simulation.
    return super().configure_train(*arguments)


@server.main()
def serve(grid, context: flower.Context) -> None:
  """Runs rounds until the input ends."""
  del context
  _, y = lockstep.clients(work.path)
  _LockStep(
    fraction_train=work.cohort / len(y),
    fraction_evaluate=0.0,
    min_available_nodes=len(y),
  ).start(
    grid,
    flower.ArrayRecord(torch_models.build(work.model).state_dict()),
    num_rounds=sys.maxsize,
  )


if __name__ == '__main__':
  logging.getLogger('flwr').setLevel(logging.WARNING)
  run_simulation(
    server,
    client,
    num_supernodes=len(lockstep.clients(work.path)[1]),
    backend_config={
      'init_args': {'num_cpus': _ACTORS},
      'client_resources': {'num_cpus': 1},
    },
  )
