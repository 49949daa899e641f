"""Roofline: which roof is each strategy under?"""

from dashboard import controls
from dashboard.figures.roofline import roofline_figure
from dashboard.show import show

show(roofline_figure(controls.selection()))
