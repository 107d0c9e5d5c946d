"""What the papers' authors published as code, as methods to compare with.

An entry is one method of one state of a public repository, as far as it
computes something else than our method or baseline; `launchers/scripts` has
the modules. No group has them, and `--methods=all` leaves them out.
"""

from tff_fair.launchers.options.methods import entry

_COREFED = (
  entry.Method(
    name='corefed_script',
    title="CoRe-Fed's script",
    summary='FedAvg with weights that are nearly equal, by the cosine of a'
    " client's embedding with the first client's",
    rule='GradientReuseFactory',
    builder='tff_fair.launchers.scripts.corefed_c6a8c8cf:build_corefed',
  ),
  entry.Method(
    name='ditto_corefed_script',
    title="Ditto of CoRe-Fed's platform",
    summary='no personal model: two steps on each minibatch, the second with'
    ' the pull; the server moves towards one client after the other',
    rule='InTurnFactory',
    builder='tff_fair.launchers.scripts.ditto_7b6e0b7f:build_ditto',
  ),
)

METHODS: tuple[entry.Method, ...] = (*_COREFED,)
