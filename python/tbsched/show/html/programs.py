"""Programs out of profiles as HTML."""

from __future__ import annotations

from tbsched.program.program import Program
from tbsched.show.html.pages import card
from tbsched.show.html.parts import table_html, text_html
from tbsched.show.html.svg.programs import measured_html
from tbsched.show.text.programs import kernels_table, program_short, streams_table


def program_html(program: Program) -> str:
    """When it ran, a row for each kernel and for each stream, then what was assumed."""
    kernels, more = kernels_table(program)
    return card(
        program_short(program),
        *measured_html(program),
        table_html(kernels, "Kernels", more=more),
        table_html(streams_table(program), "Streams"),
        text_html(program.assumed, "What the profile does not say", style="note"),
    )
