"""How power is read: meters, a sampler, and energy over exact windows.

Standard library only: this package runs on the system under test, an armv7 board included.
"""
