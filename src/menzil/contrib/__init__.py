"""menzil in other people's frameworks, each a module of its own that needs only its framework."""
