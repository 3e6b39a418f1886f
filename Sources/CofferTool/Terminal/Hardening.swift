#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// Protects the process before it reads a secret.
enum Hardening {
    /// Restores the default effect of the signals that Swift's own crash reporter handles. That
    /// reporter is set up before `main`, and writes registers and nearby memory to standard error.
    static func forbidBacktraces() {
        for number in [SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGFPE, SIGBUS, SIGSEGV] {
            signal(number, SIG_DFL)
        }
    }

    /// Makes a write fail if its reader has gone away, instead of letting the signal end the
    /// process. The signal would end a change half-way, or before its result is reported.
    ///
    /// The handler does nothing. A command that is run for a passphrase does not inherit a handler,
    /// but it would inherit that the signal is ignored.
    static func outliveReaders() {
        signal(SIGPIPE) { _ in }
    }

    /// Wraps help at 40 columns where the terminal claims fewer: the parser of the arguments ends
    /// the process if a line has no room behind its indentation.
    static func widenTerminal() {
        var size = winsize()
        let named = getenv("COLUMNS").flatMap { Int(String(cString: $0)) }
        let measured = ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 ? Int(size.ws_col) : nil
        guard let width = named ?? measured, width < 40 else { return }
        // No other thread runs yet.
        setenv("COLUMNS", "40", 1)
    }

    /// Swift's runtime ends the process, without a word, if it gets no descriptors for itself.
    private static let descriptorMin: rlim_t = 16

    /// Raises the limit on open files to what the runtime needs.
    ///
    /// - Throws: `ToolError` `.io` if it may not.
    static func requireDescriptors() throws {
        var limit = rlimit()
        #if canImport(Glibc)
        let resource = __rlimit_resource_t(UInt32(RLIMIT_NOFILE.rawValue))
        #else
        let resource = RLIMIT_NOFILE
        #endif
        guard getrlimit(resource, &limit) == 0, limit.rlim_cur < descriptorMin else { return }
        let allowed = limit.rlim_cur
        limit.rlim_cur = min(descriptorMin, limit.rlim_max)
        guard limit.rlim_cur == descriptorMin, setrlimit(resource, &limit) == 0 else {
            throw ToolError(
                .io, "this process may have \(allowed) files open",
                hint: "Raise the limit (ulimit -n) to \(descriptorMin) or more.")
        }
    }

    /// Opens `/dev/null` for each closed standard descriptor, in a mode that makes its use fail.
    /// Otherwise the next file that is opened, perhaps a database, would get that descriptor and be
    /// written to.
    static func fillStandardDescriptors() {
        for (number, mode) in [(0, O_WRONLY), (1, O_RDONLY), (2, O_RDONLY)] as [(Int32, Int32)]
        where fcntl(number, F_GETFD) < 0 {
            // `open` returns the lowest free number, which is this one: all lower ones are in use.
            _ = open("/dev/null", mode)
        }
    }
}
