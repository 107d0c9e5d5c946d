"""Knowledge distillation: a student's logits drawn to a teacher's.

Hinton, Vinyals and Dean, "Distilling the Knowledge in a Neural Network"
(https://arxiv.org/abs/1503.02531), in the form of FedAKD, section 3.
"""

from typing import Any

import tensorflow as tf

from tff_fair import checks
from tff_fair.tensors import shapes


def distillation_loss(
  student_logits: Any, teacher_logits: Any, *, temperature: float = 1.0
) -> tf.Tensor:
  """The distillation loss of each example.

      KD = T^2 sum_c q_c (ln q_c - ln p_c)

  with `q = softmax(teacher / T)` and `p = softmax(student / T)`. The gradient
  with respect to the student's logits is `T (p - q)`, that of the cross-entropy
  form, which the paper's proof writes; the teacher gets none.

  Args:
    student_logits: `float[?, num_classes]`.
    teacher_logits: Likewise.
    temperature: T, positive.

  Returns:
    `float[?]`, not negative.

  Raises:
    TypeError: If an argument is of the wrong kind.
    ValueError: If `temperature` is not positive, or the shapes differ.
  """
  checks.check_positive('temperature', temperature)
  student_logits, teacher_logits = shapes.check_same_shape(
    student_logits=student_logits, teacher_logits=teacher_logits
  )
  teacher_logits = tf.stop_gradient(teacher_logits)
  log_q = tf.nn.log_softmax(teacher_logits / temperature)
  log_p = tf.nn.log_softmax(student_logits / temperature)
  divergence = tf.reduce_sum(tf.exp(log_q) * (log_q - log_p), axis=-1)
  return temperature**2 * divergence


class DistillationLoss(tf.keras.losses.Loss):
  """`distillation_loss` as a Keras loss of `(teacher, student)` logits."""

  def __init__(
    self,
    temperature: float = 1.0,
    *,
    reduction: str = tf.keras.losses.Reduction.AUTO,
    name: str = 'distillation_loss',
  ):
    """Keeps the parameters.

    Args:
      temperature: T, positive.
      reduction: As in `tf.keras.losses.Loss`.
      name: As in `tf.keras.losses.Loss`.

    Raises:
      TypeError: If `temperature` is not a number.
      ValueError: If it is not positive.
    """
    super().__init__(reduction=reduction, name=name)
    self.temperature = checks.check_positive('temperature', temperature)

  def call(self, y_true: Any, y_pred: Any) -> tf.Tensor:
    """The loss of each example.

    Args:
      y_true: `float32[?, num_classes]`, the teacher's logits.
      y_pred: `float32[?, num_classes]`, the student's logits.

    Returns:
      `float32[?]`.
    """
    return distillation_loss(y_pred, y_true, temperature=self.temperature)

  def get_config(self) -> dict[str, Any]:
    """The parameters."""
    return {**super().get_config(), 'temperature': self.temperature}
