"""Names of clients as they may stand in somebody's data."""

NAMES = (
  'North, "Main" Hospital\nward 2',
  '<script>alert(1)</script> $\\frac$',
  '_hidden' + 500 * 'x',
  'NA',
  '1e5',
  '',
  'Zürich \x1b[31m\t東京 | 😀',
)
