"""What every table of the settings is."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of `settings.toml`."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)
