"""The published schemas of eeio's files, and how they are made from types.

python -m eeio.schemas       # writes them anew, after a change of a type
"""
