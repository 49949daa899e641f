"""Where did the bottleneck go?"""

from dashboard import controls
from dashboard.figures.bottleneck import bottleneck
from dashboard.show import show

show(bottleneck(controls.selection()))
