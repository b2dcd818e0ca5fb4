"""`python -m mainspring` is the command `mainspring`."""

from mainspring.cli.main import main

if __name__ == "__main__":
    main()
