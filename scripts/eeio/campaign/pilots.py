"""Pilots before the first run: how much work makes phases long enough, how short a run may be.

What one finds is kept (pilot_store.py), so that a machine is asked once. Work is sized by a run at
the size of preset `quick` (pilot.py), run times by a whole run (run_length.py).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from eeio.campaign import pilot, pilot_store, run_length, safety
from eeio.campaign.drive_bytes import DriveBytes
from eeio.campaign.pilot_store import Asked, StoredPilot
from eeio.campaign.plan import Plan
from eeio.errors import RefusedError
from eeio.system.filesystem import BlockDevice
from eeio_limits.text import shown
from eeio_power.monitor import PowerMonitor
from eeio_results.campaign import AdaptiveProtocol, NotMeasured, PlannedExperiment
from eeio_results.errors import EeioError
from eeio_results.record import Machine, Run

_Found = dict[str, PlannedExperiment | NotMeasured]


@dataclass(frozen=True)
class Pilots:
    """Those of one campaign. `trial` runs an experiment once, and lets the machine settle before it
    where that is true; `device` is where its bytes go."""

    plan: Plan
    campaign: str
    machine: Machine
    power: PowerMonitor
    say: Callable[[str], None]
    trial: Callable[[PlannedExperiment, bool], Run]
    device: Callable[[PlannedExperiment], BlockDevice | None]

    def work(self) -> Plan:
        """The plan with work whose phases last long enough; itself where nothing asks for that.
        Raises RefusedError where only stored pilots may be used, and one does not hold."""
        plan = self.plan
        least_s = pilot.least_phase_s(plan.protocol, plan.options, self.power.meters)
        if least_s is None:
            return plan
        found: _Found = {}
        for planned in plan.experiments:
            factor = pilot.growing(planned, plan.profiles[planned.profile], plan.sizes_preset)
            if factor is not None and planned.pilot is None:
                found[planned.experiment.id] = self._worked(planned, factor, least_s)
        return pilot.planned_anew(plan, pilot.on_one_file(found)) if found else plan

    def lengths(self) -> Plan:
        """The plan with run times as short as is proved; itself where nothing is to be cut. Raises
        RefusedError as `work` does."""
        plan = self.plan
        rule = plan.protocol.adaptive
        if rule is None:
            return plan
        resolved_s = pilot.resolved_s(plan.options, self.power.meters)
        least_s = max(plan.protocol.min_phase_s or 0.0, resolved_s)
        found: _Found = {
            planned.experiment.id: self._timed(planned, rule, lengths_s, least_s)
            for planned in plan.experiments
            if planned.cut_from is None
            and (lengths_s := run_length.lengths_to_try(planned, rule, least_s))
        }
        return pilot.planned_anew(plan, found) if found else plan

    def _worked(
        self, planned: PlannedExperiment, factor: str, least_s: float
    ) -> PlannedExperiment | NotMeasured:
        plan, profile = self.plan, self.plan.profiles[planned.profile]
        most_bytes = safety.room_to_grow(plan, planned)
        asked = Asked(
            "work", planned.profile, planned.experiment, factor, planned.factors[factor],
            plan.sizes_preset, least_s,
        )  # fmt: skip
        known = self._known(asked, planned)
        if known is not None and known.file_bytes <= max(most_bytes, planned.file_bytes):
            return pilot.as_stored(planned, factor, known.found, known.file_bytes, known.words)
        tried = pilot.trial(planned, profile, plan.sizes_preset)
        self.say(f"pilot: {planned.description}")
        # Nothing of it is kept, so nothing has to settle before it.
        sized = pilot.sized(
            planned, self.trial(tried, False), tried, factor, profile, least_s=least_s,
            most_bytes=most_bytes, timeout_s=plan.timeout_s(planned),
        )  # fmt: skip
        if sized.too_slow is not None:
            self.say(f"left out: {planned.description}: {sized.too_slow}")
            return NotMeasured(planned.experiment, sized.too_slow)
        self.say(sized.short or f"{planned.description}: {sized.planned.pilot}")
        if sized.short is None:
            new = sized.planned
            self._keep(asked, new.factors[factor], new.file_bytes, new.pilot or "")
        return sized.planned

    def _timed(
        self,
        planned: PlannedExperiment,
        rule: AdaptiveProtocol,
        lengths_s: tuple[float, ...],
        least_s: float,
    ) -> PlannedExperiment:
        asked = Asked(
            "length", planned.profile, planned.experiment, "runtime_s",
            planned.factors["runtime_s"], self.plan.sizes_preset, least_s, rule.floor, lengths_s,
            tuple(meter.name for meter in self.power.meters if meter.kind != "modelled"),
        )  # fmt: skip
        known = self._known(asked, planned)
        if known is not None:
            return run_length.cut(planned, known.found, known.words)
        self.say(f"pilot: {planned.description}: {asked.before} s, for how short it may be")
        proof = self._proof(planned, rule, lengths_s)
        self.say(f"{planned.description}: {proof.words}")
        if proof.metrics:
            self._keep(asked, proof.runtime_s, planned.file_bytes, proof.words)
        return run_length.cut(planned, proof.runtime_s, proof.words)

    def _proof(
        self, planned: PlannedExperiment, rule: AdaptiveProtocol, lengths_s: tuple[float, ...]
    ) -> run_length.Proof:
        try:
            device = self.device(planned)
        except EeioError:
            device = None  # the run will tell
        if device is None:
            return run_length.Proof(
                planned.factors["runtime_s"],
                f"run time {planned.factors['runtime_s']} s, whole: no drive's counters tell its "
                "bandwidth over time",
            )
        with DriveBytes(device) as bytes_of:
            run = self.trial(planned, True)
        return run_length.proof(planned, run, bytes_of.moved(), self.power, rule, lengths_s)

    def _known(self, asked: Asked, planned: PlannedExperiment) -> StoredPilot | None:
        """A stored one that holds, if those may be used; RefusedError where no other may be."""
        rule = self.plan.protocol.adaptive
        uses = "each" if rule is None else rule.pilot
        if uses == "each":
            return None
        known, why = pilot_store.best(asked, self.machine, self._disks())
        if known is not None:
            self.say(f"{planned.description}: as a pilot of {known.made_utc[:10]} found")
            return known
        if uses == "stored":
            reason = "; ".join(why) or "there is none"
            raise RefusedError(
                f"{planned.description}: no stored pilot holds: {shown(reason)}; without --pilot "
                "stored the campaign makes one"
            )
        if why:
            self.say(f"a stored pilot does not hold: {shown('; '.join(why))}")
        return None

    def _keep(self, asked: Asked, found: str, file_bytes: int, words: str) -> None:
        made_utc = datetime.now(UTC).isoformat(timespec="seconds")
        try:
            pilot_store.keep(StoredPilot(
                pilot_store.SCHEMA_VERSION, asked, found, file_bytes, words, self.campaign,
                made_utc, self.machine, self._disks(),
            ))  # fmt: skip
        except EeioError as error:
            self.say(f"eeio: {error}")  # the next campaign makes it again

    def _disks(self) -> Mapping[str, str]:
        return safety.disks(self.plan.options)
