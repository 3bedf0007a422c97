"""Settings of all tests: hypothesis profiles without deadlines (kernels compile first) and without luck."""

from hypothesis import HealthCheck, settings

COMMON = {"deadline": None, "derandomize": True, "suppress_health_check": [HealthCheck.too_slow]}

settings.register_profile("default", max_examples=60, **COMMON)
settings.register_profile("quick", max_examples=10, **COMMON)
settings.register_profile("thorough", max_examples=2000, deadline=None)
settings.load_profile("default")
