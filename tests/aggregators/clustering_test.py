import numpy as np
from scipy.cluster import hierarchy
from scipy.spatial import distance
import tensorflow as tf

from tff_fair.aggregators import clustering

_linkage = tf.function(
  clustering.average_linkage,
  input_signature=[
    tf.TensorSpec([None, None], tf.float64),
    tf.TensorSpec([], tf.int32),
    tf.TensorSpec([None], tf.bool),
  ],
)


def _labels(distances, number, included=None):
  if included is None:
    included = np.ones(len(distances), bool)
  return list(_linkage(np.asarray(distances, float), number, included).numpy())


def _distances(condensed):
  """The symmetric matrix of the pairs (0, 1), (0, 2), ..., (1, 2), ..."""
  return distance.squareform(np.array(condensed, float))


def _first_members(groups):
  """Each row's label: the first row of the same group."""
  return [list(groups).index(group) for group in groups]


class TestAverageLinkage:
  def test_by_hand(self):
    first = [0.006116, 1.980581, 1.952926]
    # {0, 1, 2} from 3: (.9 + .9 + .3) / 3 = .7, not ((.9 + .9) / 2 + .3) / 2;
    # from 4 all .65: the mean is over pairs, not over mergers.
    pairs = [0.01, 0.02, 0.9, 0.65, 0.02, 0.9, 0.65, 0.3, 0.65, 2.0]
    for condensed, number, expected in (
      (first, 1, [0, 0, 0]),
      (first, 2, [0, 0, 2]),
      (first, 3, [0, 1, 2]),
      (pairs, 2, [0, 0, 0, 3, 0]),
      # Of equally near pairs the first; in the second row 0-3, 1-2 and 2-3.
      ([1, 1, 1], 2, [0, 0, 2]),
      ([2, 2, 1, 1, 2, 1], 3, [0, 1, 2, 0]),
      # Fewer rows than clusters.
      ([0, 1, 1], 5, [0, 1, 2]),
    ):
      assert _labels(_distances(condensed), number) == expected, condensed

  def test_against_scipy(self):
    for seed in range(50):
      rng = np.random.default_rng(seed)
      rows, columns = rng.integers(2, 13), rng.integers(2, 6)
      vectors = rng.normal(size=[rows, columns])
      number = int(rng.integers(1, rows + 1))
      tree = hierarchy.linkage(vectors, 'average', metric='cosine')
      # `fcluster` takes 'maxclust' as a bound, and may make fewer.
      groups = hierarchy.cut_tree(tree, number)[:, 0]
      found = _labels(clustering.cosine_distances(vectors), number)
      assert found == _first_members(groups), seed
      assert len(set(found)) == number

  def test_one_row_and_none(self):
    assert _labels(np.zeros((1, 1)), 1) == [0]
    assert _labels(np.zeros((0, 0)), 2) == []
    one = np.array([False, True, False])
    assert _labels(_distances([0, 1, 1]), 2, one) == [-1, 1, -1]
    none = np.zeros(2, bool)
    assert _labels(_distances([1]), 1, none) == [-1, -1]


def test_distances_that_are_not_finite_are_the_farthest():
  distances = np.full([3, 3], np.nan)
  distances[0, 2] = distances[2, 0] = 1
  distances[1] = np.inf
  assert _labels(distances, 2) == [0, 1, 0]
  assert _labels(distances, 1) == [0, 0, 0]
