"""How anything is kept on disk: files written whole, versioned folders, checked manifests, caches keyed by content."""

from polypcount.storage.arrays import open_array, write_array
from polypcount.storage.cache import cache_folder, content_key, remove_unused
from polypcount.storage.files import (
    flush,
    parse_json,
    read_bytes,
    read_json,
    read_text,
    whole_file,
    write_json,
    write_text,
)
from polypcount.storage.folders import VersionedFolder, whole_folder
from polypcount.storage.leftovers import is_unfinished, only_writer, remove_leftovers
from polypcount.storage.schema import Manifest, Schema, SettingsSchema, check, check_manifest, read_manifest, shown
from polypcount.storage.tables import csv_cell, csv_rows, csv_text, csv_value, read_rows, read_table, separator_of

__all__ = [
    "Manifest",
    "Schema",
    "SettingsSchema",
    "VersionedFolder",
    "cache_folder",
    "check",
    "check_manifest",
    "content_key",
    "csv_cell",
    "csv_rows",
    "csv_text",
    "csv_value",
    "flush",
    "is_unfinished",
    "only_writer",
    "open_array",
    "parse_json",
    "read_bytes",
    "read_json",
    "read_manifest",
    "read_rows",
    "read_table",
    "read_text",
    "remove_leftovers",
    "remove_unused",
    "separator_of",
    "shown",
    "whole_file",
    "whole_folder",
    "write_array",
    "write_json",
    "write_text",
]
