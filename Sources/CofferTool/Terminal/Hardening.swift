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
