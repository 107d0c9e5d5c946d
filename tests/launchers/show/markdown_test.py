from tff_fair.launchers.show import markdown


def test_tables():
  header, rows = ['', 'b'], [['x', '10'], ['', '']]
  assert markdown.table(header, rows) == (
    '|  | b |\n| --- | ---: |\n| x | 10 |\n|  |  |'
  )
  assert markdown.table(header, rows, texts=0, rule=':-:', is_tight=True) == (
    '| | b |\n|:-:|:-:|\n| x | 10 |\n| | |'
  )
  assert markdown.aligned_table(header, rows) == (
    '|   | b  |\n|---|----|\n| x | 10 |\n|   |    |'
  )
