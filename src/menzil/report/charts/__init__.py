"""Small charts as inline SVG: pure functions from numbers to text, nothing to install, nothing to load."""
