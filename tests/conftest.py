"""Settings of all tests: hypothesis profiles without deadlines (kernels compile on first use) and without luck."""

from hypothesis import HealthCheck, settings

COMMON = {"deadline": None, "derandomize": True, "suppress_health_check": [HealthCheck.too_slow]}

settings.register_profile("default", max_examples=60, **COMMON)
settings.register_profile("quick", max_examples=8, **COMMON)
settings.load_profile("default")
