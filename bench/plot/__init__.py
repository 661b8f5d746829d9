"""Plots as SVG files: pure functions from numbers to text, nothing to install; they read well on light and on dark."""
