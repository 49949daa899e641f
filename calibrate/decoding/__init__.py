"""The loops of every strategy, as streams of tokens that can be timed from outside."""
