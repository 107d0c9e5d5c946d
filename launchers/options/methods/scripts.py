"""What the papers' authors published as code, as methods to compare with.

An entry is one method of one state of a public repository, as far as it
computes something else than our method or baseline; `launchers/scripts` has
the modules. No group has them, and `--methods=all` leaves them out.
"""

from tff_fair.launchers.options.methods import entry

METHODS: tuple[entry.Method, ...] = ()
