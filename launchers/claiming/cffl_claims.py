"""The claims of CFFL's paper about fairness, accuracy and free riders."""

from tff_fair.launchers.claiming import definitions
from tff_fair.launchers.claiming.definitions import Claim

_FAIRNESS, _ACCURACY = 'cffl_table1', 'cffl_table2'
_CLASSES, _FREE_RIDER = 'cffl_classes', 'cffl_freerider'
_DATA = {'mnist': 'MNIST', 'adult': 'Adult'}
_PARTICIPANTS = (5, 10, 20)
_RATES = ('u0.1', 'u1')
_CFFL = tuple(
  f'{name}_{rate}' for name in ('cffl', 'cffl_pretrain') for rate in _RATES
)
_SAME = 'Standalone in table 2 is "the accuracy of the same participant".'
_OURS = 'The number is ours; the paper has {}.'


def _cells(data):
  return [f'{data}_p{number}' for number in _PARTICIPANTS]


def _pairs(cells, other):
  """Both kinds of CFFL against what has the same upload rate."""
  return tuple(
    comparison
    for rate in _RATES
    for comparison in definitions.versus(
      _FAIRNESS,
      cells,
      [f'cffl_{rate}', f'cffl_pretrain_{rate}'],
      [other.format(rate=rate)],
      ['cf'],
    )
  )


def _of_fairness():
  for data, title in _DATA.items():
    for number in _PARTICIPANTS:
      where = f'on {title} with {number} participants'
      for other, words in (
        ('fed_avg', 'FedAvg'),
        ('dssgd_{rate}', 'DSSGD'),
      ):
        yield Claim(
          place='table 1',
          text=f"The CF coefficient is above {words}'s {where}, with and"
          ' without pretraining.',
          comparisons=_pairs([f'{data}_p{number}'], other),
        )
  for data, number in (('mnist', 95.0), ('adult', 75.0)):
    yield Claim(
      place='table 1',
      text=f'The CF coefficient is at least {number:g} on {_DATA[data]},'
      ' whatever the number of participants.',
      comparisons=definitions.level(
        _FAIRNESS, _cells(data), _CFFL, 'cf', number
      ),
      note=_OURS.format('"high" and the numbers of table 1'),
    )
  for data, title in _DATA.items():
    yield Claim(
      place='text to table 1',
      text='In most comparisons pretraining gives the higher CF coefficient on'
      f' {title}.',
      comparisons=tuple(
        comparison
        for rate in _RATES
        for comparison in definitions.versus(
          _FAIRNESS,
          _cells(data),
          [f'cffl_pretrain_{rate}'],
          [f'cffl_{rate}'],
          ['cf'],
        )
      ),
      most=True,
      note='The paper has "can lead to slightly higher fairness" and "better'
      ' fairness in most cases"; that more than half decides is ours.',
    )


def _above_alone(data, method):
  """The best participant's accuracy against that of the same one alone."""
  return tuple(
    definitions.Comparison(
      definitions.Side(_ACCURACY, cell, method, 'client_accuracy_max'),
      definitions.Side(_ACCURACY, cell, method, 'standalone_accuracy_of_best'),
    )
    for cell in _cells(data)
  )


def _of_accuracy():
  best = ['client_accuracy_max']
  for data, title in _DATA.items():
    cells = _cells(data)
    yield Claim(
      place='table 2',
      text=f'The best participant is above its own accuracy alone on {title}.',
      comparisons=_above_alone(data, 'cffl_u0.1'),
      note=_SAME,
    )
    yield None  # A price of fairness, of which the paper does not speak.
    for method, words in (
      ('cffl_u0.1', ''),
      ('cffl_pretrain_u0.1', ', with pretraining'),
    ):
      yield Claim(
        place='text, figures',
        text=f'Everybody is better off than alone on {title}{words}.',
        comparisons=definitions.level(
          _ACCURACY, cells, [method], 'above_standalone', 100.0
        ),
      )
  yield Claim(
    place='table 2',
    text="With 20 participants on MNIST the best participant is above DSSGD's.",
    comparisons=definitions.versus(
      _ACCURACY,
      ['mnist_p20'],
      ['cffl_u0.1', 'cffl_pretrain_u0.1'],
      ['dssgd_u0.1'],
      best,
    ),
  )


def _of_classes():
  methods = ['cffl_u0.1', 'cffl_u1']
  yield Claim(
    place='class imbalance, figures',
    text='Accuracy rises with the number of classes that a participant has: the'
    ' CF coefficient is at least 90.',
    comparisons=definitions.level(
      _CLASSES, _cells('mnist_class'), methods, 'cf', 90.0
    ),
    note=_OURS.format('figures'),
  )
  for number in _PARTICIPANTS:
    yield Claim(
      place='class imbalance, figures',
      text='Everybody is better off than alone with imbalanced classes and'
      f' {number} participants.',
      comparisons=definitions.level(
        _CLASSES,
        [f'mnist_class_p{number}'],
        methods,
        'above_standalone',
        100.0,
      ),
    )


def _of_free_riders():
  yield Claim(
    place='free riders, text',
    text='A free rider is isolated early: in the first five rounds.',
    comparisons=definitions.level(
      _FREE_RIDER,
      ['mnist_p5'],
      ['cffl_u1'],
      'isolation_round',
      5.0,
      above=False,
    ),
    note=_OURS.format('"early"'),
  )
  yield Claim(
    place='free riders, text',
    text='The others are unaffected: their mean accuracy is within one point of'
    ' that without the free rider.',
    comparisons=tuple(
      comparison
      for number, above in ((-1.0, True), (1.0, False))
      for comparison in definitions.level(
        _FREE_RIDER,
        ['mnist_p5'],
        ['cffl_u1'],
        'client_accuracy_mean_change',
        number,
        above=above,
      )
    ),
    note=_OURS.format('"unaffected"'),
  )


def _of_both_scenarios():
  yield Claim(
    place='class imbalance, text',
    text='The CF coefficient is higher with imbalanced classes than with'
    ' imbalanced sizes on MNIST.',
    comparisons=tuple(
      definitions.Comparison(
        definitions.Side(_CLASSES, f'mnist_class_p{number}', method, 'cf'),
        definitions.Side(_FAIRNESS, f'mnist_p{number}', method, 'cf'),
        any_rounds=True,
      )
      for number in _PARTICIPANTS
      for method in ('cffl_u0.1', 'cffl_u1')
    ),
    note='50 rounds with classes, 30 with sizes, as in the paper.',
  )


def _of_full_uploads():
  for data, title in _DATA.items():
    yield Claim(
      place='figures 1 and 2',
      text='Everybody is better off than alone with theta_u 1, with and without'
      f' pretraining, on {title}.',
      comparisons=definitions.level(
        _ACCURACY,
        _cells(data),
        ['cffl_u1', 'cffl_pretrain_u1'],
        'above_standalone',
        100.0,
      ),
    )


def _of_pretrained_accuracy():
  for data, title in _DATA.items():
    yield Claim(
      place='table 2',
      text='With pretraining, too, the best participant is above its own'
      f' accuracy alone on {title}.',
      comparisons=_above_alone(data, 'cffl_pretrain_u0.1'),
      note=f'{_SAME} It prints one number for both columns of CFFL.',
    )


def _of_dssgd():
  cell, dssgd = 'mnist_p20', ['dssgd_u0.1']
  best = 'client_accuracy_max'
  others = ['fed_avg', 'cffl_u0.1', 'cffl_pretrain_u0.1']
  alone = 'standalone_accuracy_of_best'
  yield Claim(
    place='table 2',
    text="With 20 participants on MNIST the best participant's accuracy is the"
    ' lowest with DSSGD, lower than with Standalone.',
    comparisons=(
      *definitions.versus(
        _ACCURACY, [cell], dssgd, others, [best], above=False
      ),
      definitions.Comparison(
        definitions.Side(_ACCURACY, cell, *dssgd, best),
        definitions.Side(_ACCURACY, cell, 'cffl_u0.1', alone),
        above=False,
      ),
    ),
    note=_SAME,
  )


CLAIMS = (
  *_of_fairness(),
  *_of_accuracy(),
  *_of_classes(),
  *_of_free_riders(),
  *_of_both_scenarios(),
  *_of_full_uploads(),
  *_of_pretrained_accuracy(),
  *_of_dssgd(),
)
