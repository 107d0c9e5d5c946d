"""What the papers' authors published as code, as methods to compare with.

An entry is one method of one state of a public repository, as far as it
computes something else than our method or baseline; `launchers/scripts` has
the modules. No group has them, and `--methods=all` leaves them out.
"""

from tff_fair.launchers.options.methods import entry

_CFFL = (
  entry.Method(
    name='cffl_script',
    title="CFFL, authors' script",
    summary='CFFL as the public code of its authors computes it',
    rule='ScriptRewards',
    builder='tff_fair.launchers.scripts.cffl_a4a9158c:build_cffl',
    ignores=entry.NO_GLOBAL_MODEL,
  ),
)

METHODS: tuple[entry.Method, ...] = (*_CFFL,)
