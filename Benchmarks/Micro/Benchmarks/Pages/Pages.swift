import Benchmark
import Coffer
import Fixture

let benchmarks: @Sendable () -> Void = {
    Benchmark.defaultConfiguration = .room(per: .kilo)

    // A sample omits the structure, so that it reads only pages.
    Benchmark.add("authenticate-page") { benchmark in
        try Scratch.withStore { tx in
            try tx.execute("CREATE TABLE page (data BLOB)")
            try tx.execute("INSERT INTO page VALUES (zeroblob(4200000))")
        } body: { store in
            try benchmark.measure(expecting: [1000, 0]) {
                let report = try store.verify(.sample(maximumPageCount: 1000))
                return [report.pageCount, report.damagedPages.count]
            }
        }
    }
}
