"""Sphinx settings: Markdown pages, one theme, warnings are errors (see the Makefile)."""

import gazeveil

project = "Gazeveil"
author = "The Gazeveil authors"
copyright = "2026, the Gazeveil authors"  # noqa: A001 - Sphinx wants this name
version = release = gazeveil.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
html_theme = "furo"
exclude_patterns = ["_build"]
autodoc_typehints = "none"
napoleon_google_docstring = False
