"""The terms that a reader of a report needs, as in docs/reference/glossary.md."""

TERMS = (
    (
        "domain",
        "Part of the machine that a power figure includes: system, module, package, dram, "
        "device or accelerator.",
    ),
    ("durable", "Written data that is on the device. Energy of writes is measured until then."),
    ("uncertainty", "Largest expected error of an energy figure, shown as ±."),
    ("window", "Time over which power is integrated: the tool's I/O, for writes until durable."),
)
