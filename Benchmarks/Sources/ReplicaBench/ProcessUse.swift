import Foundation
import Workloads

/// The resources that this process uses, as Linux tells them.
enum ProcessUse {
    /// User and system time of all threads, in seconds.
    static var cpu: Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    static var threadCount: Int { number(of: "Threads", in: "status") }
    static var residentByteCount: Int { number(of: "VmRSS", in: "status") << 10 }
    /// The most resident memory since `resetPeak()`, or since the process began.
    static var peakByteCount: Int { number(of: "VmHWM", in: "status") << 10 }
    /// Bytes of all writes, to files and elsewhere.
    static var writtenByteCount: Int { number(of: "wchar", in: "io") }

    static var descriptorCount: Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0
    }

    static func resetPeak() throws {
        guard let file = fopen("/proc/self/clear_refs", "w") else { throw Missing() }
        fputs("5", file)
        fclose(file)
    }

    /// Raises the limit of descriptors as far as it goes.
    static func allowDescriptors() {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    private static func number(of name: String, in file: String) -> Int {
        let text = (try? String(contentsOfFile: "/proc/self/\(file)", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix("\(name):") }
        return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
    }
}
