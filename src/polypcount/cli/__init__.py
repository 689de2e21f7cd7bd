"""The command `polypcount`: one file a verb; each parses, calls the rooms and prints."""
