"""Which trick pays here?"""

from dashboard import controls
from dashboard.figures.which_trick import which_trick
from dashboard.show import show

show(which_trick(controls.selection()))
