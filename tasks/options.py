"""The user's options for a task, checked once on entry."""

from collections.abc import Collection
import dataclasses

from tff_fair import checks
from tff_fair import splits
from tff_fair.own_data import encoded
from tff_fair.tasks import covariate_shift
from tff_fair.tasks import partitions
from tff_fair.tasks import rules

# Each has a row in every table of the clients.
_MAX_FREE_RIDERS = 10_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskOptions:
  """The choices of `build_task`.

  None stands for the task's default, which is part of its
  `tasks.rules.DataSet`. `tasks.rules.USED_WITH` says under which settings an
  option has an effect; `build_task` refuses the others.

  Attributes:
    data_dir: Folder with the data files; None for the environment variable
      TFF_FAIR_DATA_DIR. Missing files come from the cache, or the download, of
      the library that publishes them.
    num_clients: Number of clients.
    data_fraction: Share, in (0, 1], of the examples that are used, drawn at
      random; a test file is always used whole under 'server'. Only for data
      that are dealt to the clients.
    num_examples: Total number of examples dealt to the clients; None for all
      examples, under 'class' for as many as possible without dealing one
      twice, under 'covariate_shift' for half of them.
    partition: How the examples are dealt: 'dirichlet', 'equal', 'power_law',
      'zipf', 'class' or 'covariate_shift'; or the partition that comes with
      the data.
    dirichlet_alpha: Concentration of 'dirichlet' in [1e-6, 1e6].
    dirichlet_remainder: 'use' deals every example, 'drop' leaves out the
      remainder that rounding the clients' shares leaves (FedAKD); None for
      'use'.
    balance_cap: Whether, under 'dirichlet', a client that holds its equal share
      of all examples, or more, gets none of the classes dealt after that
      (CoRe-Fed).
    min_samples: Minimum number of examples of a client under 'dirichlet'.
    small_clients: Whether, under 'dirichlet', clients with fewer get examples
      of others ('top_up') or are left out, so that there are fewer than
      `num_clients` ('leave_out'); None for 'top_up'.
    random_classes: Whether, under 'class', the classes of a client are drawn at
      random; otherwise they are the lowest ones.
    shift_sizes: 'equal' (FedAKD's BCS) or 'zipf' (its ICS); None for 'equal'.
      For this and the next five see `tasks.covariate_shift`.
    shift_method: 'importance' (FedAKD's Algorithm 2) or 'pc1_sort', slices of
      the examples in the order of their first principal component, or
      'pc1_sort_descending', in the reverse order; None for 'importance'.
    shift: Squared Mahalanobis length of the clients' shifts, at most 1e6; None
      for 5.
    pca_dim: Number of principal components that are shifted; None for 10.
    shift_weights: 'density' (as printed) or 'ratio' (those of a shifted
      Gaussian); None for 'density'.
    shift_pool: 'split' (a client's test and holdout examples train no client)
      or 'shared' (as printed: every client draws from the whole pool, then
      splits, so that what tests one client may train another).
    split: 'client': train and test files are pooled, and every client keeps its
      own test and holdout part. 'server': the server keeps the test file as
      test set, or `test_fraction` of a data set without one, and validates on
      a part of the rest; clients only train. Data that come with their clients
      have only 'client'.
    validation_fraction: Share, in [0, 1), of the examples outside the test set
      that the server validates on; None for 0.1.
    holdout_fraction: Share, in [0, 1), of a client's non-test examples that it
      holds out for its own validation.
    test_fraction: Share, in [0, 1), of a client's examples that test it; under
      'server' the share of all examples in the server's test set, if there is
      no test file.
    test_leak: For control runs only, a leak of test examples into the training;
      see `tff_fair.splits.with_leak`. Everything is drawn as without it, so
      runs with and without are paired. None for no leak.
    unseen_fraction: Share, in [0, 1), of the clients that take no part in the
      training, of all sizes: see `tff_fair.splits.draw_unseen`. The others are
      those that there would be without it, with new ids. Not under 'server'.
      None for 0.
    model: One of `MODEL_NAMES`, a function of `tff_fair.models`.
    ehr_scale: Share, in (0, 1], of the published numbers of records that ehr
      generates if it finds no files; None for 0.02.
    max_events: Number of latest events of a record that ehr keeps; None for
      128.
    data_file: The file of the tasks table (.csv, .csv.gz or .parquet) and
      arrays (.npz), or the folder of the task image_folder, a path.
    image_size: Task image_folder: the size that images are resized to, pixels
      such as 28, or height and width such as 24x32; None to refuse images of
      different sizes.
    client_column: Task table: the column of the clients.
    label_column: Task table: the column of the classes.
    feature_columns: Task table: the columns of the features, separated by
      commas; None for all others.
    drop_columns: Task table: the columns that are no features, likewise; not
      with `feature_columns`. None for none.
    missing_values: Task table: 'refuse', 'drop' or 'fill'; see
      `tff_fair.own_data.table.encode`. None for 'refuse'.
    sensitive_columns: Tasks table and adult: the columns that say the groups of
      people, separated by commas; None for none. Only under the split 'client'.
    drop_sensitive: Whether these columns are for the measures only, and no
      features.
    positive_label: The class that counts as positive in the rates of groups, of
      two; None for the last one by name.
    free_riders: Number of additional clients without data, the last ones, at
      most 10,000.
    seed: Seed of the partition and of the splits, at least 0.
  """

  data_dir: str | None = None
  num_clients: int | None = None
  data_fraction: float = 1.0
  num_examples: int | None = None
  partition: str | None = None
  dirichlet_alpha: float | None = None
  dirichlet_remainder: str | None = None
  balance_cap: bool = False
  min_samples: int = 2
  small_clients: str | None = None
  random_classes: bool = False
  shift_sizes: str | None = None
  shift_method: str | None = None
  shift: float | None = None
  pca_dim: int | None = None
  shift_weights: str | None = None
  shift_pool: str = 'split'
  split: str = 'client'
  validation_fraction: float | None = None
  holdout_fraction: float = 0.1
  test_fraction: float = 0.2
  test_leak: str | None = None
  unseen_fraction: float | None = None
  model: str | None = None
  ehr_scale: float | None = None
  max_events: int | None = None
  data_file: str | None = None
  image_size: str | None = None
  client_column: str | None = None
  label_column: str | None = None
  feature_columns: str | None = None
  drop_columns: str | None = None
  missing_values: str | None = None
  sensitive_columns: str | None = None
  drop_sensitive: bool = False
  positive_label: str | None = None
  free_riders: int = 0
  seed: int = 0

  def __post_init__(self):
    if self.num_clients is not None:
      checks.check_integer('num_clients', self.num_clients, 1)
    checks.check_positive('data_fraction', self.data_fraction, 1.0)
    if self.num_examples is not None:
      checks.check_integer('num_examples', self.num_examples, 1)
    if self.dirichlet_alpha is not None:
      partitions.check_alpha('dirichlet_alpha', self.dirichlet_alpha)
    if self.dirichlet_remainder is not None:
      checks.check_choice(
        'dirichlet_remainder', self.dirichlet_remainder, partitions.REMAINDERS
      )
    self._check_shift()
    checks.check_choice('balance_cap', self.balance_cap, (False, True))
    checks.check_integer('min_samples', self.min_samples, 0)
    if self.small_clients is not None:
      checks.check_choice(
        'small_clients', self.small_clients, partitions.SMALL_CLIENTS
      )
    checks.check_choice('random_classes', self.random_classes, (False, True))
    if self.validation_fraction is not None:
      checks.check_fraction('validation_fraction', self.validation_fraction)
    checks.check_fraction('holdout_fraction', self.holdout_fraction)
    checks.check_fraction('test_fraction', self.test_fraction)
    self._check_leak()
    if self.unseen_fraction is not None:
      checks.check_fraction('unseen_fraction', self.unseen_fraction)
    if self.ehr_scale is not None:
      checks.check_positive('ehr_scale', self.ehr_scale, 1.0)
    if self.max_events is not None:
      checks.check_integer('max_events', self.max_events, 1)
    if self.missing_values is not None:
      checks.check_choice(
        'missing_values', self.missing_values, encoded.MISSING_VALUES
      )
    self._check_drop()
    self._check_sensitive()
    checks.check_count('free_riders', self.free_riders, 0, _MAX_FREE_RIDERS)
    checks.check_integer('seed', self.seed, 0)

  def changed(self) -> tuple[str, ...]:
    """Returns the names of the options that differ from their defaults."""
    return tuple(
      field.name
      for field in dataclasses.fields(self)
      if getattr(self, field.name) != field.default
    )

  def with_defaults(
    self, data_set: rules.DataSet, unused: Collection[str]
  ) -> 'TaskOptions':
    """Returns these options with the task's defaults in place of None.

    Args:
      data_set: The facts about the task's data.
      unused: The options without an effect, which stay None.
    """
    defaults = {
      name: data_set.default(name)
      for name, value in dataclasses.asdict(self).items()
      if value is None and name not in unused
    }
    return dataclasses.replace(self, **defaults)

  def _check_leak(self) -> None:
    if self.test_leak is None:
      return
    checks.check_choice('test_leak', self.test_leak, splits.TEST_LEAKS)
    if not self.test_fraction:
      raise ValueError(
        'test_fraction must be above 0 with a test_leak, which is of test'
        f' examples, found {self.test_fraction} with {self.test_leak!r}.'
      )

  def _check_drop(self) -> None:
    if self.drop_columns is not None and not self.drop_columns.strip(' ,'):
      raise ValueError(
        f'drop_columns must name columns, found {self.drop_columns!r}.'
      )

  def _check_sensitive(self) -> None:
    checks.check_choice('drop_sensitive', self.drop_sensitive, (False, True))
    if self.sensitive_columns is None:
      for name in ('drop_sensitive', 'positive_label'):
        if getattr(self, name):
          raise ValueError(
            f'{name} must be given with sensitive_columns, found'
            f' {getattr(self, name)!r} without them.'
          )
    elif not self.sensitive_columns.strip(' ,'):
      raise ValueError(
        'sensitive_columns must name columns, found'
        f' {self.sensitive_columns!r}.'
      )

  def _check_shift(self) -> None:
    choices = {
      'shift_sizes': covariate_shift.SIZES,
      'shift_method': covariate_shift.METHODS,
      'shift_weights': covariate_shift.WEIGHTS,
    }
    for name, values in choices.items():
      if getattr(self, name) is not None:
        checks.check_choice(name, getattr(self, name), values)
    checks.check_choice('shift_pool', self.shift_pool, covariate_shift.POOLS)
    if self.shift is not None:
      checks.check_positive('shift', self.shift, covariate_shift.MAX_SHIFT)
    if self.pca_dim is not None:
      checks.check_integer('pca_dim', self.pca_dim, 1)
