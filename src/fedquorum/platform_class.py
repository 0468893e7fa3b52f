"""What a model's bytes depend on besides the configuration: the numerical libraries, the processor, the device."""

from __future__ import annotations

import platform
from importlib.metadata import version

# The instruction sets that XLA's code generation and the matrix kernels choose between.
_VECTOR = ("avx", "fma", "f16c", "amx", "sse4", "asimd", "sve", "neon")


def platform_class(device: str = "cpu") -> dict[str, str]:
    """Two machines with the same answer train the same bytes; on others a model may differ in its last digits."""
    facts = _processor()
    return {
        "jaxlib": version("jaxlib"),
        "numpy": version("numpy"),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": facts["processor"],
        "features": facts["features"],
        "device": device,
    }


def _processor() -> dict[str, str]:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            block = file.read().split("\n\n")[0]
    except OSError:
        return {"processor": platform.processor(), "features": ""}
    fields = dict(line.partition(":")[::2] for line in block.splitlines() if ":" in line)
    info = {name.strip(): value.strip() for name, value in fields.items()}
    names = ("vendor_id", "cpu family", "model", "CPU implementer", "CPU part")
    flags = info.get("flags", info.get("Features", "")).split()
    return {
        "processor": " ".join(f"{name} {info[name]}" for name in names if name in info),
        "features": " ".join(sorted(flag for flag in flags if flag.startswith(_VECTOR))),
    }
