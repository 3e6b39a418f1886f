"""What one more property of each type costs a fetched record, in instructions."""

import measure
from systems import COUNTED_ROWS, PRICES

SYSTEMS = ["coffer-fast", "coffer-record"]


def show(engine):
    """Prints a line for each type: with stored properties, and with Codable."""
    engine.build(SYSTEMS)
    figures = measure.Figures(engine)
    figures.count(SYSTEMS, PRICES)
    print(f"{engine.version:22} {'stored':>8} {'Codable':>8}")
    for workload in PRICES:
        counts = [figures.count_of(workload, system) / COUNTED_ROWS for system in SYSTEMS]
        bases = [figures.count_of("price-none", system) / COUNTED_ROWS for system in SYSTEMS]
        extra = counts if workload == "price-none" else [count - base for count, base in zip(counts, bases)]
        print(f"{workload:22} " + " ".join(f"{count:8.0f}" for count in extra))
