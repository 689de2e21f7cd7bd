"""The command `polypcount`: one file for each verb, which parses, calls the rooms and prints."""
