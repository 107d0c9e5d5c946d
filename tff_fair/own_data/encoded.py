"""Encoded tables and arrays: inputs, labels, owners, and their names."""

import dataclasses
from typing import NamedTuple

import numpy as np

from tff_fair import checks

# Ways to treat missing values.
MISSING_VALUES = ('refuse', 'drop', 'fill')
# The category of a missing text, as pandas calls it.
MISSING_CATEGORY = 'nan'
# Bytes are pixels.
PIXEL_SCALE = 255


class Feature(NamedTuple):
  """The conversion of a feature of a table to an input of the model.

      input = (value - mean) / deviation,  0 if the deviation is 0

  Attributes:
    name: The column, or COLUMN=VALUE for one that is 1 where the column has the
      value and 0 elsewhere.
    mean: 0 for features that are not standardised.
    deviation: 1 for these.
  """

  name: str
  mean: float
  deviation: float


class Column(NamedTuple):
  """A column of a table.

  Attributes:
    name: Its name.
    kind: 'number', 'flag' (True and False), 'category', or 'unused' if it is no
      feature.
    width: The number of its features, which follow each other in the order of
      the columns.
  """

  name: str
  kind: str
  width: int


class Groups(NamedTuple):
  """Groups of people, as a sensitive column says them.

  Attributes:
    column: The column.
    names: The name of each group.
    codes: int64 [n], the group of each example, 0..len(names)-1.
  """

  column: str
  names: tuple[str, ...]
  codes: np.ndarray


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Encoded:
  """Examples of several clients, as numbers, with the names of everything.

  Attributes:
    x: Real [n, ...], the inputs; under `missing_values='fill'` a number may be
      NaN.
    y: int32 [n], the classes, 0..len(class_names)-1.
    owners: int64 [n], the client of each example, 0..len(client_names)-1; None
      if the data do not say.
    client_names: The name of each client; empty if there are no owners.
    class_names: The name of each class.
    feature_names: The name of each feature; empty if they have none.
    is_number: bool [d], the features that `to_inputs` standardises; None for
      none of them.
    notes: Sentences about the data that the user should read.
    columns: The columns of a table, those of the features in their order; empty
      for other data.
    divided_by: What the values of arrays were divided by.
    sensitive: The groups of people of each sensitive column.
    positive_class: The class that counts as positive in their rates; None if
      there is none.
  """

  x: np.ndarray
  y: np.ndarray
  owners: np.ndarray | None
  client_names: tuple[str, ...]
  class_names: tuple[str, ...]
  feature_names: tuple[str, ...] = ()
  is_number: np.ndarray | None = None
  notes: tuple[str, ...] = ()
  columns: tuple[Column, ...] = ()
  divided_by: int = 1
  sensitive: tuple[Groups, ...] = ()
  positive_class: int | None = None

  def to_inputs(
    self, training: np.ndarray
  ) -> tuple[np.ndarray, tuple[Feature, ...]]:
    """Returns the inputs of a model, and how features became inputs.

    Numbers of a table are standardised, and a missing one becomes the mean of
    those that `training` has; 0 if it has none.
    """
    x = _as_float32(self.x)
    if self.is_number is None:
      _check_finite(x, self.feature_names)
      return x, ()
    means = np.zeros(len(self.feature_names))
    deviations = np.ones(len(self.feature_names))
    numbers = _filled(self.x[:, self.is_number], training)
    scaling = _scaling(numbers[training])
    x[:, self.is_number] = _scaled(numbers, *scaling)
    means[self.is_number], deviations[self.is_number] = scaling
    _check_finite(x, self.feature_names)
    rows = zip(
      self.feature_names, means.tolist(), deviations.tolist(), strict=True
    )
    return x, tuple(Feature(*row) for row in rows)

  def of_first_clients(self, count: int) -> 'Encoded':
    """Returns the examples of the first clients by name."""
    total = len(self.client_names)
    if count == total:
      return self
    kept = self.owners < count
    note = f'Of {total} clients the first {count} are used, by their names.'
    return dataclasses.replace(
      self,
      x=self.x[kept],
      y=self.y[kept],
      owners=self.owners[kept],
      client_names=self.client_names[:count],
      notes=(*self.notes, note),
      sensitive=tuple(
        groups._replace(codes=groups.codes[kept]) for groups in self.sensitive
      ),
    )


def standardise(numbers: np.ndarray, training: np.ndarray) -> np.ndarray:
  """Gives columns mean 0 and deviation 1 in training rows; constants are 0."""
  return _scaled(numbers, *_scaling(numbers[training]))


def positions_by_owner(owners: np.ndarray, count: int) -> list[np.ndarray]:
  """Returns for each client the positions of its examples, sorted."""
  order = np.argsort(owners, kind='stable')
  sizes = np.bincount(owners, minlength=count)
  return np.split(order, np.cumsum(sizes)[:-1])


def _check_finite(x: np.ndarray, names: tuple[str, ...]) -> None:
  """Refuses inputs that are NaN or infinite."""
  if not names:
    checks.check_inputs('x', x)
    return
  bad = ~np.isfinite(x)
  if bad.any():
    first = np.argwhere(bad)[0]
    what = f'The column {names[first[1]]!r}'
    raise ValueError(
      f'{what} must give finite inputs, found {x[tuple(first)]:g} for row'
      f' {first[0] + 1}: leave out the column or the row, or mend its value.'
    )


def _as_float32(x: np.ndarray) -> np.ndarray:
  """Converts to float32; values out of its range become infinite."""
  with np.errstate(over='ignore'):
    return x.astype(np.float32)


def _scaling(known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
  """The means and deviations of columns, exactly 0 for a constant one."""
  deviations = np.where(np.ptp(known, axis=0) > 0, known.std(axis=0), 0.0)
  return known.mean(axis=0), deviations


def _scaled(
  numbers: np.ndarray, means: np.ndarray, deviations: np.ndarray
) -> np.ndarray:
  scaled = np.divide(
    numbers - means,
    deviations,
    out=np.zeros_like(numbers),
    where=deviations > 0,
  )
  return _as_float32(scaled)


def _filled(numbers: np.ndarray, training: np.ndarray) -> np.ndarray:
  """The mean of a column's training rows in place of what is missing."""
  missing = np.isnan(numbers)
  if not missing.any():
    return numbers
  known = ~missing[training]
  sums = np.where(known, numbers[training], 0).sum(axis=0)
  return np.where(missing, sums / np.maximum(known.sum(axis=0), 1), numbers)
