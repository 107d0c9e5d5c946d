"""Clients of folders of images: their inputs, what is said and refused."""

import numpy as np
from PIL import Image
import pytest

from tff_fair import client
from tff_fair import tasks
from tff_fair.own_data import image_folder


def _write(folder, name, pixels):
  path = folder / name
  path.parent.mkdir(parents=True, exist_ok=True)
  Image.fromarray(np.asarray(pixels, np.uint8)).save(path)


@pytest.fixture(name='folder')
def _folder(tmp_path):
  """Two clients with three images of each class, each of one grey."""
  folder = tmp_path / 'images'
  for i, name in enumerate(('Ulm', 'Bonn')):
    for j, kind in enumerate(('well', 'ill')):
      for k in range(3):
        _write(
          folder,
          f'{name}/{kind}/{k}.png',
          np.full([2, 3], 100 * i + 10 * j + k),
        )
  (folder / '.DS_Store').write_text('hidden')
  return folder


@pytest.mark.filterwarnings('ignore:x holds bytes')
def test_grey_images_are_the_same_in_library_and_launcher(folder):
  found = client.from_image_folder(folder, test_fraction=0.5)
  assert found.client_names == ('Bonn', 'Ulm')
  assert found.class_names == ('ill', 'well')
  assert found.input_shape == (2, 3, 1)
  assert found.num_examples == (6, 6)
  task = tasks.build_task(
    'image_folder', data_file=str(folder), test_fraction=0.5
  )
  grey_of = {('Bonn', 'ill'): 110, ('Bonn', 'well'): 100}
  grey_of |= {('Ulm', 'ill'): 10, ('Ulm', 'well'): 0}
  for i, name in enumerate(found.client_names):
    x, y = found.test(i)
    np.testing.assert_array_equal(x, task.examples(i).test.x)
    first = [grey_of[name, found.class_names[k]] for k in y]
    assert set(np.round(255 * x[:, 0, 0, 0] - first)) <= {0, 1, 2}
  assert task.divided_by == 255


def test_colours_sizes_and_transparency_are_made_one_and_said(folder):
  rgba = np.zeros([4, 6, 4])
  rgba[..., 1] = 255
  rgba[..., 3] = 128
  _write(folder, 'Ulm/well/9.png', rgba)
  with pytest.warns(UserWarning) as said:
    found = client.from_image_folder(folder, size=(2, 3), test_fraction=0.9)
  notes = ' '.join(str(warning.message) for warning in said)
  for text in (
    '1 of 13 images have another size than 2 x 3 and are resized',
    '1 of 13 images are transparent',
    '12 of 13 images are grey, and get three equal colours',
  ):
    assert text in notes
  assert found.input_shape == (2, 3, 3)
  x = np.concatenate([found.test(i)[0] for i in range(2)])
  (green,) = [image for image in x if image[0, 0, 0] != image[0, 0, 1]]
  np.testing.assert_array_equal(green[..., 1], np.ones([2, 3]))


def _break(folder, name, content=b'no image'):
  path = folder / name
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_bytes(content)


def test_mistakes_are_one_sentence(folder, tmp_path):
  _write(folder, 'Ulm/well/9.png', np.zeros([3, 3]))
  message = r"found 2 x 3 of 'Bonn/ill/0.png' and 3 x 3 of 'Ulm/well/9.png': si"
  with pytest.raises(ValueError, match=message):
    client.from_image_folder(folder)
  for size, error in (
    (0, ValueError),
    ((1, 2, 3), ValueError),
    (1.5, TypeError),
  ):
    with pytest.raises(error, match='size'):
      client.from_image_folder(folder, size=size)
  for text in ('28x', 'x', '1x2x3', '0', '-3', '28 px', ''):
    with pytest.raises(ValueError, match='--image_size'):
      image_folder.parse_size('--image_size', text)
  assert image_folder.parse_size('--image_size', '24x32') == (24, 32)
  assert image_folder.parse_size('--image_size', '28') == (28, 28)
  whole = (folder / 'Ulm/well/1.png').read_bytes()
  _break(folder, 'Ulm/well/a.txt')
  _break(folder, 'Ulm/ill/b.png', whole[:40])
  with pytest.raises(ValueError, match=r"2 other files: .*b.png', '.*a.txt'; "):
    client.from_image_folder(folder, size=2)
  for name, found in (
    ('Ulm/a.png', "a file 'Ulm/a.png'"),
    ('a.png', "a file 'a.png'"),
    ('Ulm/well/deep/a.png', "a folder 'Ulm/well/deep'"),
  ):
    _break(folder, name)
    with pytest.raises(ValueError, match=f'CLIENT/CLASS/FILE, found {found}'):
      client.from_image_folder(folder)
    (folder / name).unlink()
  (folder / 'Ulm/well/deep').rmdir()
  (folder / 'Jena/ill').mkdir(parents=True)
  with pytest.raises(ValueError, match="'Jena' of a client .* found no image"):
    client.from_image_folder(folder)
  with pytest.raises(ValueError, match='must be a folder, found none'):
    client.from_image_folder(tmp_path / 'nope')


def test_sixteen_bits_are_not_cut_off(folder):
  path = folder / 'Ulm/well/9.png'
  Image.fromarray(np.full([2, 3], 1000, np.uint16)).save(path)
  with pytest.raises(ValueError, match="9.png'; of the first: its mode is I"):
    client.from_image_folder(folder)


def test_a_changed_image_is_another_content(folder):
  before = tasks.fingerprint(folder)
  assert tasks.fingerprint(str(folder)) == before
  (folder / '.DS_Store').write_text('other')
  assert tasks.fingerprint(folder) == before
  _write(folder, 'Ulm/well/2.png', np.full([2, 3], 7))
  assert tasks.fingerprint(folder) != before


def test_another_flag_and_a_file_are_refused(folder):
  with pytest.raises(FileNotFoundError, match='--data_file must be a folder'):
    tasks.check_task('image_folder', data_file=str(folder / 'Ulm/well/1.png'))
  with pytest.raises(ValueError, match='--image_size must be a number'):
    tasks.check_task('image_folder', data_file=str(folder), image_size='big')
