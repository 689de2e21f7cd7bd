"""The version of the installed package, for results to carry."""

from importlib.metadata import version

__version__ = version("polypcount")
