"""Synthetic health records, so that the task 'ehr' needs no data files.

The claims of FedAKD's experiment are not public, and no record here is of a
real patient. Only each state's numbers of records and of positive records are
those published (FedAKD, appendix H, in `ehr_states.csv`).

Patient i of state k has a latent health vector

    z_i ~ N(mu_k, I),  |mu_k|^2 = 5

in 8 dimensions; with the identity as covariance, |mu_k|^2 is the squared
Mahalanobis length of each state's shift, as in FedAKD's covariate shift. Codes
are drawn from softmax(b + W z + v y), where y is the label. Some codes have
values (laboratory results and vital signs), which also depend on z and y. W, v
and mu_k are constant; the seed draws the patients. A positive record ends with
a code of pancreatic cancer and its treatments, which the loader removes.
"""

import pathlib

import numpy as np
import pandas as pd

from tff_fair import checks
from tff_fair import streams

STATES_PATH = pathlib.Path(__file__).with_name('ehr_states.csv')

# Share of the published numbers of records.
DEFAULT_SCALE = 0.02
_MIN_RECORDS = 20
_LATENT_SIZE = 8
_SQUARED_SHIFT = 5.0
_NUM_CODES = 200
# Codes from here on are measurements: they have a value.
_FIRST_MEASUREMENT = 120
_MISSING_VALUES = 0.1
# Chosen so that a model of all records has an accuracy of 0.6 to 0.8.
_LABEL_EFFECT = 0.35
_NUM_EVENTS = (5, 40)
_DIAGNOSES = ('C25.0', 'c25.1', 'C25.2', 'C25.9', 'C259', '157.0', '157.9')
_TREATMENTS = ('TREAT-1', 'TREAT-2', 'TREAT-3')


def generate(scale: float, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
  """Generates patients and their events.

  A state has `max(20, round(scale * total))` patients, of whom the published
  share is positive. Each has 5 to 40 events before a diagnosis.

  Args:
    scale: Share, in (0, 1], of the published numbers of records.
    seed: Seed of the patients, at least 0.

  Returns:
    The patients and their events, as `ehr_records.read` returns them.
  """
  checks.check_positive('scale', scale, 1.0)
  states = pd.read_csv(STATES_PATH)
  world = _World(len(states))
  parts = [
    _generate_state(
      world,
      number,
      row.state,
      num_patients=max(_MIN_RECORDS, round(scale * row.total)),
      positive_share=row.positive / row.total,
      rng=streams.generator(seed, streams.EHR_RECORDS, number),
    )
    for number, row in enumerate(states.itertuples())
  ]
  patients, events = (
    pd.concat(tables, ignore_index=True) for tables in zip(*parts, strict=True)
  )
  categories = {name: 'category' for name in ('patient_id', 'code')}
  return patients, events.astype(categories)


class _World:
  """The parameters of the distribution of records, the same for every seed."""

  def __init__(self, num_states: int):
    rng = np.random.default_rng(0)
    shifts = rng.normal(size=[num_states, _LATENT_SIZE])
    lengths = np.linalg.norm(shifts, axis=1, keepdims=True)
    self.shifts = np.sqrt(_SQUARED_SHIFT) * shifts / lengths
    self.code_names = np.array([f'SYN-{i:03d}' for i in range(_NUM_CODES)])
    self.code_bias = rng.normal(size=_NUM_CODES)
    self.code_weights = rng.normal(scale=0.3, size=[_LATENT_SIZE, _NUM_CODES])
    self.code_effect = rng.normal(scale=_LABEL_EFFECT, size=_NUM_CODES)
    self.value_weights = rng.normal(scale=0.3, size=[_NUM_CODES, _LATENT_SIZE])
    self.value_effect = rng.normal(scale=_LABEL_EFFECT, size=_NUM_CODES)


def _generate_state(
  world, number, state, *, num_patients, positive_share, rng
) -> tuple[pd.DataFrame, pd.DataFrame]:
  labels = np.arange(num_patients) < round(positive_share * num_patients)
  rng.shuffle(labels)
  latent = world.shifts[number] + rng.normal(size=[num_patients, _LATENT_SIZE])
  postal_codes = 100 * number + rng.integers(20, size=num_patients)
  patients = pd.DataFrame(
    {
      'patient_id': [f'{state}-{i:05d}' for i in range(num_patients)],
      'state': state,
      'sex': rng.choice(['F', 'M'], num_patients),
      'postal_code': [f'{code:05d}' for code in postal_codes],
    }
  )
  history, last_ages = _history(world, latent, labels, rng)
  aftermath = _aftermath(np.flatnonzero(labels), last_ages, rng)
  events = pd.concat([history, aftermath], ignore_index=True)
  owners = events.pop('owner')
  events.insert(0, 'patient_id', patients['patient_id'].to_numpy()[owners])
  return patients, events.round({'age': 2, 'value': 2})


def _history(world, latent, labels, rng) -> tuple[pd.DataFrame, np.ndarray]:
  """Returns the events before a diagnosis, and each patient's age after."""
  fewest, most = _NUM_EVENTS
  counts = rng.integers(fewest, most, size=len(labels), endpoint=True)
  owners = np.repeat(np.arange(len(labels)), counts)
  codes = _draw_codes(world, latent, labels, owners, rng)
  means = np.sum(world.value_weights[codes] * latent[owners], axis=1)
  means += world.value_effect[codes] * labels[owners]
  values = rng.normal(means)
  missing = rng.random(len(owners)) < _MISSING_VALUES
  values[(codes < _FIRST_MEASUREMENT) | missing] = np.nan
  last_ages = np.clip(rng.normal(64 + 3 * labels, 10), 30, 90)
  ages = last_ages[owners] - rng.exponential(2.0, len(owners)).clip(0, 20)
  events = pd.DataFrame(
    {
      'owner': owners,
      'age': ages,
      'code': world.code_names[codes],
      'value': values,
    }
  )
  return events, last_ages


def _draw_codes(world, latent, labels, owners, rng) -> np.ndarray:
  """Returns int64 [number of events], codes by softmax(b + W z + v y)."""
  logits = world.code_bias + latent @ world.code_weights
  logits += np.outer(labels, world.code_effect)
  weights = np.exp(logits)
  shares = weights / weights.sum(axis=1, keepdims=True)
  # One search for all patients: the distribution function of patient i fills
  # the interval from i to i + 1.
  steps = np.cumsum(shares, axis=1) + np.arange(len(labels))[:, np.newaxis]
  steps[:, -1] = np.arange(len(labels)) + 1
  drawn = np.searchsorted(
    steps.ravel(), owners + rng.random(len(owners)), side='right'
  )
  return drawn - owners * _NUM_CODES


def _aftermath(owners, last_ages, rng) -> pd.DataFrame:
  """Returns a diagnosis for each owner, and two treatments after it."""
  ages = last_ages[owners] + 0.1
  codes = [
    rng.choice(names, len(owners))
    for names in (_DIAGNOSES, _TREATMENTS, _TREATMENTS)
  ]
  return pd.DataFrame(
    {
      'owner': np.tile(owners, len(codes)),
      'age': np.concatenate([ages, ages, ages + 0.3]),
      'code': np.concatenate(codes),
      'value': np.nan,
    }
  )
