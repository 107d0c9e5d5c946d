"""The names of clients in files, pictures and texts.

Names come from the user's data and may hold anything: quotes, line breaks,
markup. Nothing here imports TensorFlow.
"""

# The column beside `client_id` in csv files, if the clients have names.
COLUMN = 'client'


def encodable(name: str) -> str:
  """Removes what a csv file in UTF-8 cannot hold."""
  return name.encode(errors='replace').decode().replace('\0', '?')


def one_line(name: str, width: int) -> str:
  """Puts a name on one line of at most `width` characters, to be read.

  Line breaks and control characters are left out; `…` stands for what is left
  out at its end.
  """
  printable = ''.join(c if c.isprintable() else ' ' for c in name)
  line = ' '.join(printable.split())
  return line if len(line) <= width else f'{line[: width - 1]}…'
