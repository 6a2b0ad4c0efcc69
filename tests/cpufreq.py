"""Trees of cpufreq files as kernels show them, for frequencies that no test may really set."""

from pathlib import Path


def write(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (folder / name).write_text(f"{value}\n")


def _policy(root: Path, number: int, **files: object) -> None:
    write(
        root / f"sys/devices/system/cpu/cpufreq/policy{number}",
        **{
            "affected_cpus": number,
            "cpuinfo_min_freq": 800_000,
            "cpuinfo_max_freq": 3_900_000,
            "scaling_min_freq": 800_000,
            "scaling_max_freq": 3_900_000,
            **files,
        },
    )


def pstate_tree(root: Path, policies: int = 3) -> Path:
    cpu = root / "sys/devices/system/cpu"
    write(cpu / "smt", control="on")
    write(cpu / "intel_pstate", no_turbo=0, status="active")
    for number in range(policies):
        _policy(
            root, number, scaling_driver="intel_pstate", scaling_governor="powersave",
            scaling_available_governors="performance powersave", base_frequency=2_400_000,
            scaling_setspeed="<unsupported>",
            # A user's own limits on one of them: above, and below, what is set later.
            scaling_min_freq=2_000_000 if number == 1 else 800_000,
            scaling_max_freq=1_200_000 if number == 2 else 3_900_000,
        )  # fmt: skip
    return root


def acpi_tree(root: Path, governor: str = "ondemand") -> Path:
    cpu = root / "sys/devices/system/cpu"
    write(cpu / "smt", control="on")
    for number in range(3):
        _policy(
            root, number, scaling_driver="acpi-cpufreq", scaling_governor=governor,
            scaling_available_governors="ondemand performance userspace",
            scaling_available_frequencies="2400000 1600000 1200000",
            cpuinfo_min_freq=1_200_000, cpuinfo_max_freq=2_400_000,
            scaling_min_freq=1_200_000, scaling_max_freq=1_200_000 if number == 2 else 2_400_000,
            scaling_setspeed=1_200_000 if governor == "userspace" else "<unsupported>",
        )  # fmt: skip
    write(cpu / "cpufreq", boost=1)
    return root


def bytes_of(root: Path) -> dict[str, bytes]:
    """Every file. A kernel shows a speed only under the governor `userspace`, as files cannot."""
    found = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    for name in found:
        if name.endswith("scaling_setspeed"):
            governor = found[name.replace("scaling_setspeed", "scaling_governor")]
            found[name] = found[name] if governor == b"userspace\n" else b"<unsupported>\n"
    return found
