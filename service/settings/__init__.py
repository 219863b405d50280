"""Settings: `settings.toml`, `.secrets.toml` and `DLO_*` as one frozen, typed object."""

from service.settings.faults import BadSettings, Fault
from service.settings.loading import load, project_root
from service.settings.model import RouteSetting, Settings
from service.settings.shown import shown

__all__ = ["BadSettings", "Fault", "RouteSetting", "Settings", "load", "project_root", "shown"]
