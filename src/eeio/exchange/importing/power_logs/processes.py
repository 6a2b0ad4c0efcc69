"""The sum of a log's processes against its total."""

from eeio.exchange.importing.power_logs.series import ReadLog

_MOST_SHARE = 1.01
"""Of a total: rounding explains no more."""


def check_sum(log: ReadLog, processes: float, total: float) -> None:
    """Notes the share of the processes, in any unit, in the total of the same time. If they exceed
    it, one of the two is wrong: each reading is doubtful."""
    if total <= 0.0:
        return
    share = processes / total
    log.notes.append(
        f"the processes in it add up to {100 * share:.3g} % of its total; only the total is used"
    )
    if share > _MOST_SHARE:
        doubt = f"the processes in the log add up to {100 * share:.3g} % of its total"
        log.series = [series.doubted(doubt) for series in log.series]
