"""What is behind `format("menzil")`. Most of it runs in Python processes of Spark that come and go."""
