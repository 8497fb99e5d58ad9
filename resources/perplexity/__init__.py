"""Scoring texts with models or references, and what is kept between runs to compute less."""
