#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// What the process does before it knows a secret.
enum Hardening {
    /// Swift's own crash reporter writes registers and the memory behind them to standard error.
    /// It is set up before `main`; here its signals get their ordinary effect back.
    static func forbidBacktraces() {
        for number in [SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGFPE, SIGBUS, SIGSEGV] {
            signal(number, SIG_DFL)
        }
    }

    /// Makes a failure of the write out of a reader that goes away: the signal would end a change
    /// half-way, or before anybody hears how it ended.
    ///
    /// The handler does nothing. A command that is run for a passphrase does not inherit it, as it
    /// would that the signal is ignored.
    static func outliveReaders() {
        signal(SIGPIPE) { _ in }
    }

    /// A closed standard descriptor would be given to the next file that is opened, a database
    /// maybe, and then be written to. Something that fails when it is used stands in.
    static func fillStandardDescriptors() {
        for (number, mode) in [(0, O_WRONLY), (1, O_RDONLY), (2, O_RDONLY)] as [(Int32, Int32)]
        where fcntl(number, F_GETFD) < 0 {
            // The lowest free number is this one: those below are in use.
            _ = open("/dev/null", mode)
        }
    }
}
