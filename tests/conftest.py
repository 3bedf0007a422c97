"""Settings of all tests: hypothesis profiles without deadlines (kernels compile first) and without luck."""

from hypothesis import HealthCheck, settings

steady = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("default", steady, max_examples=30)
settings.register_profile("quick", steady, max_examples=6)
settings.register_profile("thorough", steady, max_examples=1000, derandomize=False)
settings.load_profile("default")
