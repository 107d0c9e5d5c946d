"""The trained models of a run, as files that plain Keras loads.

A model's output is its logits alone, since that is what users of a classifier
expect. The same run writes the same bytes, whether it was interrupted or not.
"""

from collections.abc import Mapping
import io
import json
import pathlib
import tempfile
from typing import Any
import warnings
import zipfile

import numpy as np
import tensorflow as tf

from tff_fair import algorithms
from tff_fair import internals
from tff_fair import tasks
from tff_fair.launchers.runs import callbacks
from tff_fair.launchers.runs import early_stopping
from tff_fair.launchers.runs import run_files

MODEL, DESCRIPTION, CLIENTS = 'model.keras', 'model.json', 'models'
_METADATA = 'metadata.json'  # Of a .keras file.


class Export(callbacks.Callback):
  """Writes the models that `--export` selects, and says so."""

  def after_round(self, run, result):
    """Keeps the state of the best round, if that is to be exported."""
    if run.settings['export'] != 'best' or result.scores is None:
      return
    if _best(run)[0] == result.number:
      run.directory.save_best(result.state, result.number)

  def on_end(self, run, summary):
    """Writes the models, unless the run has failed."""
    choice = run.settings['export']
    if summary is None or choice == 'none':
      return
    state = run.state
    if choice == 'best':
      number, value = _best(run)
      state = run.directory.load_best(state, number)
      metric = early_stopping.holdout_metric(run.settings)
      print(
        f'The exported model is that of round {number}, whose {metric} is the'
        f' best, {value:.4f}.'
      )
    weights = run.process.get_model_weights(state)
    for sentence in write(
      run.process,
      state,
      run.task,
      run.directory.path,
      clients=choice == 'all',
      centroids=run.centroids and run.centroids(weights),
      statistics=run.statistics,
    ):
      print(sentence)


def _best(run) -> tuple[int | None, float]:
  """The best round on what is held out, and the value."""
  metric = early_stopping.holdout_metric(run.settings)
  return early_stopping.find_best(run.directory.read_metrics(), metric)


def write(
  process: algorithms.FairLearningProcess,
  state: Any,
  task: tasks.Task,
  output_dir: pathlib.Path,
  *,
  clients: bool,
  centroids: Mapping[str, Any] | None = None,
  statistics: Mapping[str, Any] | None = None,
) -> list[str]:
  """Writes `model.keras`, `model.json` and, on demand, the clients' models.

  A model that Keras cannot save is left out, with a warning. With centroids,
  the logits are those of `metrics.nearest_centroid_logits`.

  Returns:
    One sentence for the user about each export written.
  """
  is_personal = isinstance(process, algorithms.PersonalizedLearningProcess)
  models = {MODEL: ()} if _is_trained(process, state) else {}
  if is_personal and clients:
    (output_dir / CLIENTS).mkdir(exist_ok=True)
    for client_id in range(task.num_clients):
      models[f'{CLIENTS}/client_{client_id}.keras'] = (client_id,)
  try:
    for name, client in models.items():
      # Keras numbers the layers of a process; the first model gets the same
      # names in every process.
      tf.keras.backend.reset_uids()
      model = _classifier(process.to_keras(state, *client), centroids)
      run_files.write_atomically(output_dir / name, _file(model))
  # What layers raise that do not say how they are saved.
  except (NotImplementedError, TypeError, ValueError) as error:
    reason = ' '.join(str(error).split())
    warnings.warn(
      f'{output_dir / MODEL} is not written, because Keras cannot save the'
      f' model: {reason}',
      stacklevel=2,
    )
    return []
  if models:
    text = json.dumps(_description(task, model, statistics), indent=2)
    run_files.write_atomically(output_dir / DESCRIPTION, text + '\n')
  return _sentences(output_dir, models, is_personal and not clients)


def _is_trained(process, state) -> bool:
  """Returns whether a global model was trained; clients may train alone."""
  before = process.model.initial_weights.trainable
  now = process.get_model_weights(state).trainable
  return not all(map(np.array_equal, before, now))


def _classifier(model, centroids) -> tf.keras.Model:
  """The model with the logits as its only output."""
  if not isinstance(model.output, dict):
    return model
  if centroids is None:
    return tf.keras.Model(model.inputs, model.output['logits'])
  # 2 z c - |c|^2, as `metrics.nearest_centroid_logits`.
  counts = np.asarray(centroids['counts'])
  sums = np.asarray(centroids['sums'], np.float64)
  means = sums / np.maximum(counts, 1)[:, np.newaxis]
  nearest = tf.keras.layers.Dense(len(counts))
  logits = nearest(model.output['embedding'])
  bias = np.where(counts > 0, -np.sum(means**2, axis=1), -np.inf)
  nearest.set_weights([2 * means.T, bias])
  return tf.keras.Model(model.inputs, logits)


def _file(model) -> bytes:
  """The content of a .keras file, without the time."""
  content = io.BytesIO()
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / MODEL
    model.save(path)
    with zipfile.ZipFile(path) as saved, zipfile.ZipFile(content, 'w') as file:
      for name in saved.namelist():
        part = saved.read(name)
        if name == _METADATA:
          metadata = json.loads(part)
          metadata.pop('date_saved', None)
          part = json.dumps(metadata)
        # An entry without a time has the first one there is, of 1980.
        file.writestr(zipfile.ZipInfo(name), part)
  return content.getvalue()


def _description(task, model, statistics) -> dict[str, Any]:
  """Describes inputs and outputs; of one output, the threshold of class 1."""
  output = {'output': 'logits'}
  if model.output_shape[-1] == 1:
    found = model(tf.zeros([1, *model.input_shape[1:]]))
    output = {'output': 'probability of class 1', 'threshold': 0.5}
    if internals.noted_logits(found) is None:
      output = {'output': 'logit of class 1', 'threshold': 0.0}
  description = {
    'task': task.name,
    'input_shape': model.input_shape,
    **output,
    'classes': list(task.class_names) or list(range(task.num_classes)),
  }
  if task.features:
    description['features'] = [part._asdict() for part in task.features]
    description['columns'] = [column._asdict() for column in task.columns]
  if task.divided_by != 1:
    description['divided_by'] = task.divided_by
  if statistics is not None:
    description['inputs_of_clients'] = {
      # A client without examples has none, null in JSON.
      name: np.where(np.isfinite(values), values, None).tolist()
      for name, values in statistics.items()
    }
  return description


def _sentences(output_dir, models, others) -> list[str]:
  sentences = []
  if MODEL in models:
    sentences.append(f'exported: {output_dir / MODEL}')
  else:
    sentences.append('The clients have trained alone: no global model.')
  of_clients = len(models.keys() - {MODEL})
  if of_clients:
    sentences.append(f'exported: {output_dir / CLIENTS}, {of_clients} clients')
  if others:
    sentences.append(
      'Each client has its own model, too: the same command with --export=all'
      ' writes them, without training.'
    )
  return sentences
