"""The terms that a reader of a report needs, as in docs/reference/glossary.md."""

TERMS = (
    (
        "domain",
        "Part of the machine that a power figure includes: system, module, package, dram or "
        "device. Domains are never added.",
    ),
    (
        "window",
        "Time interval over which power is integrated: the tool's I/O, for writes until durable.",
    ),
    (
        "uncertainty",
        "Largest expected error of an energy figure, from the meter's accuracy and sampling; shown "
        "as ±.",
    ),
    (
        "durable",
        "Written data that survives a power failure, because it is on the device. Energy of writes "
        "is measured until then.",
    ),
)
