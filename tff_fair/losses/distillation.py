"""Knowledge distillation: pulls a student's logits towards a teacher's.

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
  with respect to the student's logits is `T (p - q)`, the same as that of the
  cross-entropy form in the paper's proof. The teacher gets no gradient.

  Args:
    student_logits: `float[?, num_classes]`.
    teacher_logits: `float[?, num_classes]`.
    temperature: T, positive.

  Returns:
    `float[?]`, not negative.
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
