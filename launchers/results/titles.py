"""Names of methods, data and settings in tables of results."""

from typing import NamedTuple

from tff_fair.launchers.options import methods as methods_lib

_DATA = {
  'adult': 'Adult',
  'cifar10': 'CIFAR-10',
  'cifar100': 'CIFAR-100',
  'ehr': 'synthetic records',
  'femnist': 'FEMNIST',
  'fmnist': 'Fashion-MNIST',
  'mnist': 'MNIST',
}
# Methods whose names are not an algorithm's followed by words.
_METHODS = {
  # As in the public scripts of FedAKD's authors, not as in their own papers.
  'cgsv_script': "CGSV, FedAKD's variant",
  'fed_ave_script': "FedAVE, FedAKD's variant",
  'fed_sac_script': "FedSAC, FedAKD's variant",
  'fed_dc': "FedDC, FedAKD's variant",
  'fedaboost_cohort_classes': 'FeDABoost, C = cohort, constant gamma',
  'fedaboost_sgd': 'FeDABoost-1, SGD',
  'cgsv_fed_avg_protocol': "CGSV, FedAvg's protocol",
  'fed_avg_fedakd_protocol': "FedAvg, FedAKD's protocol",
  'fedakd_fed_avg_protocol': "FedAKD, FedAvg's protocol",
  'fedakd_local_fed_avg_protocol': "FedAKD, FedAvg's protocol, local models",
  'corefed_first_embedding': (
    'CoRe-Fed, first embedding, equal frequencies, not refined, no reuse'
  ),
  'ditto_1': 'Ditto, lambda 1',
  'q_fed_avg_1': 'q-FedAvg, q 1',
  'fed_mgda_1': 'FedMGDA+, e 1',
  'fed_mdfg_s3': 'FedMDFG, s 3',
  'fed_mdfg_s1': 'FedMDFG, s 1',
  'cofed': 'CoFed',
  'refed': 'ReFed',
  'supervised': 'cross-entropy',
  'supcon': 'SupCon',
  'triplet': 'triplets',
  'quadruplet': 'quadruplets',
}
_WORDS = {
  'authors': "authors'",
  'ce': 'cross-entropy',
  'pretrain': 'pretrained',
}


class Setting(NamedTuple):
  """A cell as it was run.

  Attributes:
    cell: The cell of the table.
    data: The data that were used, if not the paper's.
    scale: The share of the data.
    rounds: The number of rounds, if not the paper's.
    paper_rounds: The paper's number then.
  """

  cell: str
  data: str | None
  scale: float
  rounds: int | None
  paper_rounds: int | None


def data(name: str) -> str:
  """The name of a data set in papers.

  Args:
    name: The name of its task.
  """
  return _DATA.get(name, name)


def method(name: str) -> str:
  """The title of a method of a table.

  Args:
    name: Its name, such as `fed_avg_uniform`.

  Returns:
    The algorithm's name in papers, and the other words: FedAvg, uniform.
  """
  if name in _METHODS:
    return _METHODS[name]
  known = [m for m in methods_lib.METHODS if f'{name}_'.startswith(f'{m}_')]
  algorithm = max(known, key=len)
  rest = name[len(algorithm) :].split('_')[1:]
  words = ' '.join(_WORDS.get(word, _upload_rate(word)) for word in rest)
  return ', '.join(filter(None, [methods_lib.title(algorithm), words]))


def setting(cell: str, found: Setting, seeds: int) -> str:
  """The title of a setting.

  Args:
    cell: The title of the cell.
    found: How it was run.
    seeds: The number of seeds.

  Returns:
    What differs from the paper, and the number of seeds.
  """
  parts = [cell]
  if found.data:
    parts.append(f'on {data(found.data)}')
  if found.scale != 1:
    parts.append(f'{100 * found.scale:g} % of the data')
  if found.rounds:
    parts.append(f'{found.rounds} rounds, not {found.paper_rounds}')
  return ', '.join([*parts, number_of_seeds(seeds)])


def number_of_seeds(seeds: int) -> str:
  """The number of seeds in words."""
  return '1 seed' if seeds == 1 else f'{seeds} seeds'


def _upload_rate(word) -> str:
  """`u0.1` as u .1, other words unchanged."""
  rate = word[1:].lstrip('0')
  return f'u {rate}' if word.startswith('u') and rate[-1:].isdigit() else word
