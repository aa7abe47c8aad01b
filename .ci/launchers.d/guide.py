class Skipped(Exception):
    pass
def followed():
    """x"""
    raise Skipped("not yet")
