import Coffer
import Foundation

extension Configuration {
    /// The same, with a clock in 2020: a file of which no key fits is searched for about a thousand
    /// epochs, not for one of each hour since 2020.
    public var early: Configuration {
        var configuration = self
        configuration.currentDate = { Date.now - 214_000_000 }
        return configuration
    }
}
