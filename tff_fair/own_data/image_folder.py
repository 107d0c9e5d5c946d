"""A folder of images: a folder for each client, with one for each class inside.

images/Ulm/ill/1.png
images/Ulm/well/2.png
images/Bonn/ill/1.png
"""

from collections.abc import Iterable, Iterator, Sequence
import dataclasses
import os
import pathlib
from typing import NamedTuple

import numpy as np
from PIL import Image
from PIL import ImageOps

from tff_fair import checks
from tff_fair import files as files_lib
from tff_fair.own_data import arrays
from tff_fair.own_data import encoded
from tff_fair.own_data import names

MAX_SIDE = 4096
_GREY = ('1', 'L')
# Colours, and grey, beside what `convert` would drop or cut off.
_COLOURED = ('RGB', 'RGBA', 'RGBX', 'RGBa', 'P', 'PA', 'LA', 'La', 'CMYK')
_WITH_ALPHA = ('RGBA', 'RGBa', 'PA', 'LA', 'La')


class _File(NamedTuple):
  path: pathlib.Path
  client: str
  kind: str


def check_size(
  name: str, size: int | Sequence[int] | None
) -> tuple[int, int] | None:
  """Returns the height and width that a size stands for; None for None.

  Args:
    name: The argument, in messages.
    size: Height and width, or one number for both, of 1 to 4,096 pixels.

  Raises:
    TypeError: If they are not integers.
    ValueError: If they are outside their range, or not two.
  """
  if size is None:
    return None
  pair = (size, size) if not isinstance(size, Sequence) else tuple(size)
  if isinstance(size, str) or len(pair) != 2:
    raise ValueError(
      f'{name} must be a number of pixels, or height and width, found {size!r}.'
    )
  for side in pair:
    checks.check_integer(name, side, 1, MAX_SIDE)
  return pair


def parse_size(name: str, text: str | None) -> tuple[int, int] | None:
  """Returns the height and width of a text such as 28 or 24x32.

  Args:
    name: The argument, in messages.
    text: The text; None for None.

  Raises:
    ValueError: If it is another text, or a side is not of 1 to 4,096 pixels.
  """
  if text is None:
    return None
  sides = text.lower().split('x')
  if len(sides) > 2 or not all(s.isascii() and s.isdigit() for s in sides):
    raise ValueError(
      f'{name} must be a number of pixels, or HEIGHTxWIDTH such as 24x32, found'
      f' {text!r}.'
    )
  return check_size(name, (int(sides[0]), int(sides[-1])))


def encode(
  folder: str | os.PathLike,
  *,
  size: tuple[int, int] | None = None,
  argument: str = 'size',
) -> encoded.Encoded:
  """Reads all images of a folder, which are divided by 255.

  The images are grey, [n, height, width, 1], if all files are, and otherwise
  have three colours. Transparency is dropped, and pictures of cameras are
  turned as they say. Files and folders whose names begin with a dot are left
  out.

  Args:
    folder: The folder.
    size: The height and width that images of other sizes are resized to; None
      to refuse images of different sizes.
    argument: The argument `size`, in messages.

  Raises:
    ValueError: If a file is not where it should be or cannot be read, a client
      has no images, or sizes differ and no size is given.
  """
  folder = pathlib.Path(folder)
  files = list(_find(folder))
  images = list(_read_all(folder, files))
  notes = []
  sizes = [image.size for image in images]
  if size is None:
    _check_same_size(folder, files, sizes, argument)
  else:
    other = sum((height, width) != size for width, height in sizes)
    if other:
      notes.append(
        f'{other:,} of {len(images):,} images have another size than'
        f' {size[0]} x {size[1]} and are resized, whatever their shape.'
      )
  transparent = sum(image.mode in _WITH_ALPHA for image in images)
  if transparent:
    notes.append(
      f'{transparent:,} of {len(images):,} images are transparent, which is'
      ' left out.'
    )
  are_grey = all(image.mode in _GREY for image in images)
  grey = sum(image.mode in _GREY for image in images)
  if grey and not are_grey:
    notes.append(
      f'{grey:,} of {len(images):,} images are grey, and get three equal'
      ' colours as the others have.'
    )
  found = arrays.encode(
    np.stack([_pixels(image, are_grey, size) for image in images]),
    np.array([file.kind for file in files]),
    np.array([file.client for file in files]),
  )
  return dataclasses.replace(found, notes=(*notes, *found.notes))


def read_new(
  folder: pathlib.Path, shape: Sequence[int | None]
) -> tuple[list[str], np.ndarray, list[str]]:
  """Reads all images below a folder, for a model that was trained on such.

  Args:
    folder: The folder; what begins with a dot in it is left out.
    shape: Height, width, and 1 or 3 channels of the model's inputs.

  Returns:
    The names of the files in the folder, in order; uint8 [n, *shape]; and
    sentences about images that had to be changed.

  Raises:
    ValueError: If there are no images, one cannot be read, or the model takes
      other inputs than images.
  """
  if len(shape) != 3 or None in shape or shape[-1] not in (1, 3):
    raise ValueError(
      'The model must take images [height, width, 1 or 3] to read a folder,'
      f' found inputs of the shape {[*shape]}.'
    )
  files = [
    _File(path, '', '')
    for path in sorted(folder.rglob('*'))
    if path.is_file()
    and not any(p.startswith('.') for p in path.relative_to(folder).parts)
  ]
  if not files:
    raise ValueError(f"The folder '{folder}' must hold images, found none.")
  images = list(_read_all(folder, files))
  *size, channels = shape
  is_grey = channels == 1
  notes = []
  for count, change in (
    (
      sum(image.size != (size[1], size[0]) for image in images),
      f'have another size than {size[0]} x {size[1]} and are resized, whatever'
      ' their shape',
    ),
    (
      sum((image.mode in _GREY) != is_grey for image in images),
      'have colours and are made grey, as those of the training were'
      if is_grey
      else 'are grey, and get three equal colours',
    ),
  ):
    if count:
      notes.append(f'{count:,} of {len(images):,} images {change}.')
  pixels = np.stack([_pixels(image, is_grey, tuple(size)) for image in images])
  names_in_folder = [str(file.path.relative_to(folder)) for file in files]
  return names_in_folder, pixels.reshape([-1, *shape]), notes


def _find(folder: pathlib.Path) -> Iterator[_File]:
  """The files, clients and classes in the order of their names."""
  if not folder.is_dir():
    raise ValueError(
      f"The folder of images '{folder}' must be a folder, found none."
    )
  clients = list(_inside(folder, folder, are_files=False))
  if not clients:
    raise ValueError(
      f"The folder of images '{folder}' must have a folder for each client,"
      ' found none.'
    )
  for client in clients:
    has_images = False
    for kind in _inside(folder, client, are_files=False):
      for path in _inside(folder, kind, are_files=True):
        has_images = True
        yield _File(path, client.name, kind.name)
    if not has_images:
      raise ValueError(
        f"The folder '{client.name}' of a client in '{folder}' must have a"
        ' folder of images for each class, found no image.'
      )


def _inside(
  root: pathlib.Path, folder: pathlib.Path, *, are_files: bool
) -> Iterable[pathlib.Path]:
  """Lists a folder, which must hold only files, or only folders."""
  found = sorted(p for p in folder.iterdir() if not p.name.startswith('.'))
  for path in found:
    if path.is_dir() == are_files:
      what = 'a folder' if are_files else 'a file'
      raise ValueError(
        f"The folder of images '{root}' must hold CLIENT/CLASS/FILE, found"
        f" {what} '{path.relative_to(root)}'."
      )
  return found


def _read_all(
  folder: pathlib.Path, files: Sequence[_File]
) -> Iterator[Image.Image]:
  """The images; an error names all files that cannot be read."""
  bad, reason = [], ''
  for file in files:
    try:
      image = _read(file.path)
    except (ValueError, Image.DecompressionBombError) as error:
      reason = reason or files_lib.describe(error)
      bad.append(str(file.path.relative_to(folder)))
      continue
    yield image
  if bad:
    raise ValueError(
      f"The folder '{folder}' must hold images that Pillow can read, found"
      f' {len(bad):,} other files: {names.listed(bad)}; of the first: {reason}.'
    )


def _read(path: pathlib.Path) -> Image.Image:
  with files_lib.reading(path, ValueError), Image.open(path) as image:
    if image.mode not in (*_GREY, *_COLOURED):
      raise ValueError(
        f'its mode is {image.mode}, which has no 8 bits for each colour'
      )
    image.load()
    return ImageOps.exif_transpose(image)


def _check_same_size(folder, files, sizes, argument) -> None:
  other = [i for i, size in enumerate(sizes) if size != sizes[0]]
  if other:
    first, second = (
      f"{sizes[i][1]} x {sizes[i][0]} of '{files[i].path.relative_to(folder)}'"
      for i in (0, other[0])
    )
    raise ValueError(
      f"The images in '{folder}' must have one size, found {first} and"
      f' {second}: {argument} resizes them.'
    )


def _pixels(
  image: Image.Image, is_grey: bool, size: tuple[int, int] | None
) -> np.ndarray:
  """uint8 [height, width] or [height, width, 3]."""
  if image.mode == 'P':  # Whose transparent colour `convert` warns about.
    image = image.convert('RGBA')
  image = image.convert('L' if is_grey else 'RGB')
  if size is not None and image.size != size[::-1]:
    image = image.resize(size[::-1], Image.Resampling.BILINEAR)
  return np.asarray(image)
