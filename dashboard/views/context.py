"""Context and memory: how speed falls with the context, and what fits."""

from dashboard import controls
from dashboard.figures.context import context_memory, context_speed
from dashboard.show import show

show(context_speed(controls.selection()))
show(context_memory(controls.selection()))
