"""The environments of `make test-versions`: which versions stand for those that people have."""

# What nbkit and these tests need beside the versions that an environment is about.
PACKAGES = (
    *("torch", "pandas", "numpy", "pyarrow", "ipython", "ipykernel", "anywidget", "ipywidgets", "traitlets"),
    *("plotly", "matplotlib", "nbclient", "nbformat", "nbconvert", "hypothesis", "pytest", "pytest-timeout"),
    *("packaging", "psutil", "pyyaml", "jupyter_client", "playwright", "transformers"),
)
OLDER_KERNEL = {"ipykernel": "6.31.0", "pyarrow": "18.1.0", "torch": "2.13.0"}
# By name: package -> version; what is not named is what pip chooses today, and Python that which runs this.
ENVIRONMENTS: dict[str, dict[str, str]] = {
    "colab": {**OLDER_KERNEL, "pandas": "2.2.2", "numpy": "2.0.2", "ipython": "7.34.0"},
    "pandas-2.3": {**OLDER_KERNEL, "pandas": "2.3.3", "numpy": "1.26.4", "ipython": "8.39.0"},
    "torch-2.6": {"torch": "2.6.0"},
    "torch-2.8": {"torch": "2.8.0"},
    "torch-2.11": {"torch": "2.11.0"},
    "torch-2.15": {"torch": "2.15.0"},
    "anywidget-0.9": {"torch": "2.13.0", "anywidget": "0.9.18"},
    "python-3.12": {"python": "3.12", "torch": "2.13.0"},
    "python-3.13": {"python": "3.13", "torch": "2.13.0"},
}
# Of all tests those that a version can change, as far as they need nothing more.
FRAMES = ("tests/compat", "tests/test_schema.py", "tests/trace", "tests/analysis/time", "tests/analysis/query")
SHOWN = ("tests/views/op_table", "tests/views/report", "tests/magics/test_loading.py")
RECORDED = tuple(f"tests/capture/{folder}" for folder in ("profiler", "recorder", "step", "native", "operators"))
# What anywidget draws, in the front ends that it draws in.
DRAWN = ("tests/views/live", "tests/views/static_html", "tests/browser/lab/test_every_widget.py")
HOSTS = ("jupyterlab", "notebook")
# What reads frames of Python, code objects and reference counts, and what prints help.
PYTHON = (*(f"tests/capture/{folder}" for folder in ("raw", "frames", "calls", "check")), "tests/magics")


def chosen_tests(name: str) -> tuple[str, ...]:
    """The tests to run in an environment: recording depends on torch and Python, what is shown on all else."""
    if name.startswith("torch"):
        return ("tests/compat", "tests/trace", *RECORDED)
    if name.startswith("python"):
        return ("tests/compat", "tests/trace", *RECORDED, *PYTHON, "tests/command_line")
    return DRAWN if name.startswith("anywidget") else (*FRAMES, *SHOWN)


def requirements(name: str) -> list[str]:
    """What pip is asked for."""
    pins = ENVIRONMENTS[name]
    packages = (*PACKAGES, *HOSTS) if name.startswith("anywidget") else PACKAGES
    return [f"{package}=={pins[package]}" if package in pins else package for package in packages]
