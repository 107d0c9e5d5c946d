"""FedAKD in NumPy, for a linear model.

Written from the paper's formulas, without the library, in float64, with
gradients derived by hand. The caller gives the order of the examples.
"""

import dataclasses

import numpy as np

from tests.algorithms import numpy_reference


def cross_entropy(logits, y):
  return -np.mean(np.log(numpy_reference.softmax(logits)[np.arange(len(y)), y]))


def distillation(student, teacher, temperature):
  """`Temp^2 mean_x sum_c q_c (ln q_c - ln p_c)`, of logits."""
  p, q = (
    numpy_reference.softmax(logits / temperature)
    for logits in (student, teacher)
  )
  return temperature**2 * np.mean(np.sum(q * np.log(q / p), axis=1))


def slope(student, teacher, y, coefficient, temperature):
  """Of the cross-entropy and the distillation, by the student's logits."""
  p, q = (
    numpy_reference.softmax(logits / temperature)
    for logits in (student, teacher)
  )
  of_labels = numpy_reference.softmax(student) - np.eye(student.shape[1])[y]
  return (of_labels + coefficient * temperature * (p - q)) / len(y)


@dataclasses.dataclass(frozen=True)
class Options:
  """What the builder's options mean.

  `alpha` and `beta` are the factors on the distillation down and up, and
  `decay` is by round.
  """

  learning_rate: float = 0.1
  decay: float = 1.0
  local_epochs: int = 1
  batch_size: int = 4
  granularity: str = 'epochs'
  seed: int = 0
  variant: str = 'full'
  order: str = 'down_up'
  alpha: float = 1.0
  beta: float = 1.0
  temperature: float = 1.0


def train(model, teacher, data, coefficient, options, learning_rate, orders):
  """The student after a phase, and its mean loss and accuracy.

  Args:
    model: The student.
    teacher: The other model, which does not change.
    data: Arrays (x, y).
    coefficient: The factor on the distillation.
    options: Options.
    learning_rate: Of the round.
    orders: Of the examples in each epoch, int[epochs, n].

  Returns:
    The model, and the means over the examples of all epochs of (loss,
    accuracy), 0 without examples.
  """
  if not len(data[1]):
    return model, np.zeros(2)
  found, sizes = [], []
  size = options.batch_size
  if options.granularity == 'single_step':
    orders, size = orders[:1], len(data[1])
  for order in orders:
    for start in range(0, len(order), size):
      x, y = (values[order[start : start + size]] for values in data)
      logits, of_teacher = model.logits(x), teacher.logits(x)
      distilled = distillation(logits, of_teacher, options.temperature)
      loss = cross_entropy(logits, y) + coefficient * distilled
      found.append((loss, correct(model, (x, y)).mean()))
      sizes.append(len(y))
      dz = slope(logits, of_teacher, y, coefficient, options.temperature)
      gradient = numpy_reference.Linear(x.T @ dz, dz.sum(axis=0))
      model = model.plus(gradient, -learning_rate)
  return model, np.average(found, axis=0, weights=sizes)


def correct(model, data):
  """Which examples the model has right, bool[n]."""
  x, y = data
  return model.logits(x).argmax(axis=1) == y


class FedAkd:
  """The server and its clients.

  Attributes:
    model: `w_g`.
    models: `w_k` by client.
  """

  def __init__(self, model, num_clients, order_fn, **options):
    """Begins with `model`.

    Args:
      model: `w^0`.
      num_clients: Of all clients.
      order_fn: `(options, round, client, phase, size) -> int[epochs, size]`,
        the order of a phase's examples; the phase is 'down' or 'up'.
      **options: Of `Options`.
    """
    self._order_fn = order_fn
    self.options = Options(**options)
    self.model = model
    self.models = [model] * num_clients
    self._seen = set()
    self._num_rounds = 0

  def next(self, clients):
    """One round of the clients present, a dictionary from ids to data.

    Returns:
      A dictionary from the ids of the clients that count to a dictionary: the
      `size` of their data, the number of examples `selected` for the upward
      phase, and the metrics of the phases `up` and, if it took place, `down`.
    """
    data = {
      i: (client.x.astype(np.float64), client.y)
      for i, client in clients.items()
      if len(client.y) and np.isfinite(client.x).all()
    }
    found = {i: {'size': len(y)} for i, (_, y) in data.items()}
    if self.options.order == 'down_up':
      self._down(data, found)
    self._up(data, found)
    if self.options.order == 'up_down':
      self._down(data, found)
    self._seen.update(data)
    self._num_rounds += 1
    return found

  def _train(self, phase, i, model, teacher, data, coefficient):
    options = self.options
    rate = options.learning_rate * options.decay**self._num_rounds
    size = len(data[1])
    orders = self._order_fn(options, self._num_rounds, i, phase, size)
    return train(model, teacher, data, coefficient, options, rate, orders)

  def _down(self, data, found):
    for i in data:
      if self.options.variant == 'single_dist':
        self.models[i] = self.model
      else:
        self.models[i], found[i]['down'] = self._train(
          'down', i, self.models[i], self.model, data[i], self.options.alpha
        )

  def _up(self, data, found):
    uploads, weights = [], []
    for i, (x, y) in data.items():
      selected = self._selected(i, (x, y))
      upload, found[i]['up'] = self._train(
        'up',
        i,
        self.model,
        self.models[i],
        (x[selected], y[selected]),
        self.options.beta,
      )
      found[i]['selected'] = selected.sum()
      uploads.append(upload)
      by_selected = self.options.variant == 'correct_agg'
      weights.append(selected.sum() if by_selected else len(y))
    if sum(weights):
      self.model = numpy_reference.weighted_mean(uploads, weights)

  def _selected(self, i, data):
    """Which of client `i`'s examples teach the global model."""
    first = self.options.order == 'up_down' and i not in self._seen
    if first or self.options.variant == 'all_data':
      return np.ones(len(data[1]), bool)
    return correct(self.models[i], data)
