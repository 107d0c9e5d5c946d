"""The papers' experiments as flag values, a module for each paper.

A preset holds the flags that all methods of an experiment share, and those of
single methods, which are used only for the method that runs. So
`--preset=fedaboost_mnist --algorithm=fed_avg` is FedAvg in FeDABoost's setting.
"""

from tff_fair.launchers.options.presets import cffl
from tff_fair.launchers.options.presets import corefed
from tff_fair.launchers.options.presets import fedaboost
from tff_fair.launchers.options.presets import fedakd
from tff_fair.launchers.options.presets import fedquad
from tff_fair.launchers.options.presets.preset import Preset

PRESETS: dict[str, Preset] = {
  **fedaboost.PRESETS,
  **cffl.PRESETS,
  **corefed.PRESETS,
  **fedquad.PRESETS,
  **fedakd.PRESETS,
}
