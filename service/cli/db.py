"""`dlo db`: the schema of the ledger."""

import asyncio

import typer

from service.cli.screen import Output, OutputOption, screen_of
from service.settings import load

# The ledger is imported where it is used: SQLAlchemy and alembic would cost every command a second.

app = typer.Typer(no_args_is_help=True, help="The schema of the ledger.")


@app.command()
def upgrade(context: typer.Context) -> None:
    """Bring the database to the newest schema."""
    from service.ledger import schema
    from service.ledger.reaching import place

    screen, url = screen_of(context), _url()
    before = asyncio.run(schema.current(url))
    after = asyncio.run(schema.upgrade(url))
    moved = "was up to date" if before == after else f"migrated from {before or 'nothing'}"
    screen.say(f"{place(url)}: {moved}")
    screen.stdout.out(after or "", highlight=False)


@app.command()
def current(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """Print the schema the database has, and the one it should have."""
    from service.ledger import schema
    from service.ledger.reaching import place

    screen, url = screen_of(context), _url()
    facts = {
        "database": place(url),
        "current": asyncio.run(schema.current(url)),
        "newest": schema.newest(),
    }
    match output:
        case Output.JSON:
            screen.json(facts)
        case Output.TABLE:
            screen.table(facts, [[value or "(none)" for value in facts.values()]])
    if facts["current"] != facts["newest"]:
        screen.say("the database is not up to date; run: dlo db upgrade")


def _url() -> str:
    return load().database.url.get_secret_value()
