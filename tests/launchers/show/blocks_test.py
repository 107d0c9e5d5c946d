"""What stands between comments is replaced, and nothing else."""

from tff_fair.launchers.show import blocks

_PAGE = """Before.
<!-- of a -->
old
<!-- end of a -->
Between.
<!-- of b -->
<!-- end of b -->
<!-- of c -->
no end of its own
<!-- end of d -->
"""


def test_replaces_what_stands_between_comments():
  text = blocks.replace(
    _PAGE,
    r'of (?P<name>\w)',
    r'end of (?P=name)',
    lambda match: f'new {match["name"]} \\1',
  )
  assert text == _PAGE.replace('old\n', 'new a \\1\n').replace(
    '<!-- of b -->\n', '<!-- of b -->\nnew b \\1\n'
  )
