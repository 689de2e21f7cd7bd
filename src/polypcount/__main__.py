"""`python -m polypcount`: the program."""

from polypcount.cli.start import main

if __name__ == "__main__":
    main()
