"""Counts the instructions of fetching a record of a key and one property, for each type of it."""

import measure
from systems import COUNTED_ROWS, PRICES

SYSTEMS = ["coffer-fast", "coffer-record"]


def show(engine):
    """Prints a line for each type: by stored properties, and by Codable."""
    engine.build(SYSTEMS)
    figures = measure.Figures(engine)
    figures.count(SYSTEMS, PRICES)
    print(f"{engine.version:22} {'stored':>8} {'Codable':>8}")
    for workload in PRICES:
        counts = [figures.count_of(workload, system) / COUNTED_ROWS for system in SYSTEMS]
        print(f"{workload:22} " + " ".join(f"{count:8.0f}" for count in counts))
