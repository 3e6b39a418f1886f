import CWorkload
import Dispatch
import Foundation

/// The options of the command line, and how samples are taken.
public struct Run: Sendable {
    public let system: String
    public let workload: String
    public let rows: Int
    public let repeats: Int
    public let path: String
    public let cacheByteCount: Int
    public let isDurable: Bool

    public init() {
        let arguments = bench_parse(CommandLine.argc, CommandLine.unsafeArgv)
        system = String(cString: arguments.system)
        workload = String(cString: arguments.workload)
        rows = Int(arguments.rows)
        repeats = Int(arguments.repeats)
        path = String(cString: arguments.path)
        cacheByteCount = Int(arguments.cache_kib) << 10
        isDurable = arguments.full_sync
    }

    /// The key of all stores: 32 bytes and 16 bytes of salt.
    public static var key: [UInt8] { withUnsafeBytes(of: bench_key) { Array($0) } }
    /// The key that rekey changes it to, with the same salt.
    public static var otherKey: [UInt8] { withUnsafeBytes(of: bench_other_key) { Array($0) } }
    public static var passphrase: String { String(cString: bench_passphrase) }
    /// As SQLCipher takes it: x'…'.
    public static var keyText: String {
        "x'" + key.map { String(format: "%02x", $0) }.joined() + "'"
    }

    /// The position of the i-th lookup among the rows.
    public func shuffled(_ index: Int) -> Int { Self.shuffled(index, rows) }

    public static func shuffled(_ index: Int, _ count: Int) -> Int {
        Int(bench_shuffled(Int64(index), Int64(count)))
    }

    public var fileByteCount: Int { Int(bench_file_bytes(path)) }

    public func removeFile() { bench_remove(path) }

    /// Runs `body` with the path of a copy in which one bit of a page is changed. It must report
    /// that it found a problem.
    public func requireFound(_ body: (_ copy: String) throws -> Bool) throws {
        let copy = path + ".damaged"
        bench_copy_damaged(path, copy)
        defer { bench_remove(copy) }
        guard try body(copy) else { bench_fail("verify", "did not find a changed bit") }
    }

    // MARK: Samples

    /// Measures `body`, and the release of its result; `check` sums the result up in between.
    public func sample<T>(
        written: Check, units: Double? = nil, _ body: () throws -> T, check: (T) throws -> Check
    ) rethrows {
        bench_start()
        var result: T? = try body()
        bench_stop()
        let read = try result.map(check)
        bench_start()
        result = nil
        bench_stop()
        bench_sample(units ?? Double(rows), written.sum, (read ?? Check()).sum)
    }

    /// Measures work of many tasks.
    public func sample<T: Sendable>(
        written: Check, isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> T,
        check: (T) async throws -> Check
    ) async rethrows {
        bench_start()
        let result = try await body()
        bench_stop()
        let read = try await check(result)
        bench_sample(Double(rows), written.sum, read.sum)
    }

    /// Runs asynchronous work from a synchronous `main`, whose thread callgrind can follow.
    public static func wait(_ body: @escaping @Sendable () async throws -> Void) {
        let done = DispatchSemaphore(value: 0)
        Task {
            do { try await body() } catch { bench_fail("async", "\(error)") }
            done.signal()
        }
        done.wait()
    }

    /// Takes samples of work that can be repeated on one store: once to warm up, then as often as
    /// requested.
    public func samples<T>(
        written: Check, _ body: () throws -> T, check: (T) throws -> Check
    ) rethrows {
        for index in 0...repeats {
            bench_warm(index == 0)
            try sample(written: written, body, check: check)
        }
    }

    /// The same of what another workload wrote, or the system itself before.
    public func samples<T>(
        _ body: () throws -> T, sameAs check: (T) throws -> Check
    ) rethrows {
        for index in 0...repeats {
            bench_warm(index == 0)
            try sample(body, sameAs: check)
        }
    }

    /// Measures writing of items that are made in portions. `body` gets a function that makes the
    /// next ones while the clock is stopped.
    public func portions(
        _ body: (_ make: (ClosedRange<Int>) -> [Item]) throws -> Void, read: () throws -> Check
    ) throws {
        var written = Check()
        var held: [Item] = []
        bench_start()
        try body { range in
            bench_stop()
            held = Item.make(range)
            written.add(Check(held))
            bench_start()
            return held
        }
        bench_stop()
        bench_sample(Double(rows), written.sum, try read().sum)
    }

    /// Measures reading of what another workload wrote; the driver compares the two sums.
    public func sample<T>(
        _ body: () throws -> T, sameAs check: (T) throws -> Check
    ) rethrows {
        bench_start()
        var result: T? = try body()
        bench_stop()
        let read = try result.map(check) ?? Check()
        bench_start()
        result = nil
        bench_stop()
        bench_sample(Double(rows), read.sum, read.sum)
    }

    /// Prints one of several figures of a run.
    public func figure(
        _ workload: String, _ microseconds: Double, units: Double, written: Check, read: Check
    ) {
        bench_figure(workload, microseconds, units, written.sum, read.sum)
    }

    /// Prints a separate figure: how long each call took, in µs.
    public func latencies(_ workload: String, _ calls: [Double], written: Check, read: Check) {
        var calls = calls
        bench_latencies(workload, &calls, Int64(calls.count), written.sum, read.sum)
    }

    /// Prints what a system is and how it is set up, as its engine reports it.
    public func describe(_ key: String, _ value: String) { bench_describe(key, value) }

    /// Says that the system does not do this workload, and ends the process.
    public func skip(_ reason: String) -> Never { bench_skip(reason) }
}
