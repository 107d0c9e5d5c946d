"""The arguments that builders share: checked, and made into parts of a process.

A builder begins with

    shared = arguments.check_arguments(build_method, locals())

and makes its parts with the methods of what this returns.
"""

from collections.abc import Callable, Mapping
import dataclasses
import inspect
from typing import Annotated, Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_fair import annotations
from tff_fair import checks
from tff_fair import client
from tff_fair import models
from tff_fair import summary
from tff_fair.aggregators import type_checks
from tff_fair.algorithms import attacks
from tff_fair.algorithms import client_updates
from tff_fair.algorithms import composition
from tff_fair.algorithms import processes
from tff_fair.annotations import Limits, Symbol

# Honest clients stay far below. In rounds of the presets, on digits, MNIST,
# CIFAR-10, Adult and generated health records, their longest updates were of
# length 11.2 (weights) and 555 (batch-norm statistics, whose bound is 1e8).
MAX_UPDATE_NORM = 1e4
"""The default of `max_update_norm`."""

_ALWAYS_SHOWN = frozenset({'num_clients', 'local_epochs', 'batch_size'})
_SHOWN_AS_RULE = frozenset({'model_aggregator', 'robust'})


@dataclasses.dataclass(frozen=True, kw_only=True)
class SharedArguments:
  """The arguments that builders share; see `build_fed_avg` for their meaning.

  Arguments that a builder does not take have the defaults below.
  """

  num_clients: Annotated[int | None, Limits(minimum=1)]
  client_optimizer: tff.learning.optimizers.Optimizer
  local_epochs: Annotated[int, Limits(minimum=1), Symbol('E')]
  batch_size: Annotated[int, Limits(minimum=1), Symbol('B')]
  # Two int32 words.
  seed: Annotated[int, Limits(minimum=0, maximum=2**62 - 1)]
  client_learning_rate_fn: Callable[[Any], Any] | None
  # Squared twice, for statistics, it is still finite.
  max_update_norm: Annotated[float | None, Limits(above=0, maximum=1e15)] = (
    MAX_UPDATE_NORM
  )
  focal_gamma: Annotated[float, Limits(minimum=0)] = 0.0
  uniform: bool = False
  reshuffle: bool = True
  server_optimizer: tff.learning.optimizers.Optimizer | None = None
  model_aggregator: tff.aggregators.WeightedAggregationFactory | None = None
  robust: bool = False
  description: processes.Description | None = None

  def local_training(
    self,
    model: models.StatelessModel | models.PairedModel | models.PartialModel,
    objective: client.Objective,
    *,
    client_optimizer: tff.learning.optimizers.Optimizer | None = None,
    local_epochs: int | None = None,
    batch_size: int | None = None,
    **options: Any,
  ) -> Callable[..., client.LocalResult]:
    """Builds the clients' local training; arguments replace shared ones."""
    return client.build_local_training(
      model,
      objective,
      client_optimizer or self.client_optimizer,
      local_epochs=local_epochs or self.local_epochs,
      batch_size=batch_size or self.batch_size,
      reshuffle=self.reshuffle,
      **options,
    )

  def learning_rate_fn(self) -> Callable[[Any], tf.Tensor]:
    """The clients' learning rate by round (from 0), for rules that need it."""
    replaced = self.client_learning_rate_fn
    if replaced is not None:
      return lambda number: tf.cast(replaced(number), tf.float32)
    state = self.client_optimizer.initialize(tf.TensorSpec([], tf.float32))
    hparams = self.client_optimizer.get_hparams(state)
    rate = np.float32(hparams['learning_rate'])
    return lambda number: tf.constant(rate)

  def client_work(
    self,
    model: models.StatelessModel,
    client_update: client.ClientUpdate,
    *,
    learning_rate_fn: Callable[[Any], Any] | None = None,
    **options: Any,
  ) -> tff.learning.templates.ClientWorkProcess:
    """Builds the client work, see `client.build_client_work`.

    Within `attacks.with_attackers`, some of its clients are attackers.
    """
    return client.build_client_work(
      model,
      attacks.attacked(client_update, self.num_clients, model.num_classes),
      num_clients=self.num_clients,
      seed=self.seed,
      max_update_norm=self.max_update_norm,
      learning_rate_fn=learning_rate_fn or self.client_learning_rate_fn,
      **options,
    )

  def compose(
    self,
    model: models.StatelessModel,
    client_work: tff.learning.templates.ClientWorkProcess,
    **options: Any,
  ) -> processes.FairLearningProcess:
    """Composes the process, see `composition.compose_process`."""
    return composition.compose_process(
      model,
      client_work,
      server_optimizer=self.server_optimizer,
      model_aggregator=self.model_aggregator,
      robust=self.robust,
      description=self.description,
      **options,
    )

  def fed_avg(
    self,
    model: models.StatelessModel,
    objective: client.Objective,
    *,
    context_fn: Callable[[Any], Any] | None = None,
    prepare_inputs: Callable[[Any, Any], Any] | None = None,
  ) -> processes.FairLearningProcess:
    """Builds FedAvg with another objective, or other inputs."""
    client_update = client_updates.build_client_update(
      self.local_training(model, objective),
      uniform=self.uniform,
      context_fn=context_fn,
    )
    return self.compose(
      model,
      self.client_work(model, client_update),
      prepare_inputs=prepare_inputs,
    )


_SHARED = {
  field.name: annotations.read(field.type)
  for field in dataclasses.fields(SharedArguments)
  if field.name != 'description'
}


def check_arguments(
  builder: Callable[..., Any], values: Mapping[str, Any]
) -> SharedArguments:
  """Checks a builder's arguments, before anything is built.

  These are all that the signature describes, by `Limits`, `Literal` and types,
  and the shared arguments. A builder checks what holds between arguments
  itself. `num_clients` may be None if that is its default.

  Args:
    builder: The builder, for its signature.
    values: Its arguments, `locals()` at its start.

  Returns:
    The shared arguments.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If a number is out of range or a choice unknown.
  """
  parameters = inspect.signature(builder, eval_str=True).parameters
  shared = SharedArguments(
    **{name: values[name] for name in parameters if name in _SHARED},
    description=processes.Description(
      builder.__name__.removeprefix('build_'),
      {**_described(parameters, values), **attacks.described()},
    ),
  )
  check_optimizer('client_optimizer', shared.client_optimizer)
  if shared.client_learning_rate_fn is not None:
    checks.check_function(
      'client_learning_rate_fn', shared.client_learning_rate_fn, 'the round'
    )
  if shared.server_optimizer is not None:
    check_optimizer('server_optimizer', shared.server_optimizer)
  if shared.model_aggregator is not None:
    type_checks.check_weighted('model_aggregator', shared.model_aggregator)
  for name in sorted(parameters, key=lambda name: name not in _SHARED):
    if values[name] is not None or parameters[name].default is not None:
      _annotation(parameters[name]).check(name, values[name])
  if shared.robust and shared.model_aggregator is not None:
    raise ValueError(
      'model_aggregator must be None with robust=True, which is for the'
      f" method's own rule, found {type(shared.model_aggregator).__name__}."
    )
  return shared


def _annotation(parameter: inspect.Parameter) -> annotations.Annotation:
  """Returns an argument's annotation; limits of shared ones stand here."""
  shared = _SHARED.get(parameter.name, annotations.Annotation())
  if parameter.annotation is parameter.empty:
    return shared
  found = annotations.read(parameter.annotation)
  if found.limits == annotations.Limits():
    found = dataclasses.replace(found, limits=shared.limits)
  return found


def _described(parameters, values) -> dict[str, str]:
  """The arguments that matter in a process' `repr`."""
  return {
    name: _format_argument(values[name])
    for name, parameter in parameters.items()
    if name in _ALWAYS_SHOWN
    or (
      parameter.kind is inspect.Parameter.KEYWORD_ONLY
      and name not in _SHOWN_AS_RULE
      and summary.format_value(values[name])
      != summary.format_value(parameter.default)
    )
  }


def _format_argument(value) -> str:
  text = summary.format_value(value)
  if not isinstance(value, tff.learning.optimizers.Optimizer):
    return text
  state = value.initialize(tf.TensorSpec([], tf.float32))
  hparams = (
    f'{name}={summary.format_number(found)}'
    for name, found in value.get_hparams(state).items()
  )
  return f'{text}({", ".join(hparams)})'


def check_optimizer(name: str, optimizer: Any) -> None:
  """Raises TypeError unless `optimizer` is a TFF optimiser."""
  if not isinstance(optimizer, tff.learning.optimizers.Optimizer):
    raise TypeError(
      f'{name} must be a tff.learning.optimizers.Optimizer, such as'
      ' tff.learning.optimizers.build_sgdm(0.1), found'
      f' {type(optimizer).__name__}.'
    )


def check_plain_sgd(method: str, optimizer: Any) -> None:
  """Raises ValueError unless two steps of an optimiser are `w - rate g`."""
  w, g = tf.constant([1.0, -2.0]), tf.constant([0.5, 0.25])
  state = optimizer.initialize(tf.TensorSpec(w.shape, w.dtype))
  rate = optimizer.get_hparams(state)['learning_rate']
  for _ in range(2):
    expected = w - rate * g
    state, w = optimizer.next(state, w, g)
    if not np.allclose(w, expected, rtol=1e-6, atol=0):
      raise ValueError(
        f'client_optimizer must be plain SGD for {method}, without momentum'
        f' and weight decay, found {type(optimizer).__name__.strip("_")} with'
        f' {sorted(optimizer.get_hparams(state))}.'
      )


def check_use_ce(use_ce: bool, weight_name: str, weight: float) -> None:
  """Raises ValueError if there is no loss left to train by."""
  if not use_ce and not weight:
    raise ValueError(
      f'{weight_name} must be positive with use_ce=False, or nothing is'
      f' trained, found {weight}.'
    )
