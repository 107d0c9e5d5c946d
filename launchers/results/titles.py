"""Names of methods and data in tables of results."""

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
  'u0.1': 'u .1',
  'u1': 'u 1',
}


def data(name: str) -> str:
  """Returns the name of a data set in papers, given its task's."""
  return _DATA.get(name, name)


def method(name: str) -> str:
  """Returns the title of a method of a table.

  Args:
    name: Its name, such as `fed_avg_uniform`.

  Returns:
    The algorithm's name in papers, and the other words: FedAvg, uniform.
  """
  if name in _METHODS:
    return _METHODS[name]
  known = [m for m in methods_lib.METHODS if f'{name}_'.startswith(f'{m}_')]
  algorithm = max(known, key=len)
  rest = name.removeprefix(algorithm).split('_')[1:]
  words = ' '.join(_WORDS.get(word, word) for word in rest)
  return ', '.join(filter(None, [methods_lib.title(algorithm), words]))
