import Coffer
import Testing

/// Expects an error with this code, and that it says what to do or at least what happened.
@discardableResult
func expect<T>(
    _ code: StoreError.Code, sourceLocation: SourceLocation = #_sourceLocation,
    _ work: () throws -> T
) -> StoreError? {
    do {
        _ = try work()
        Issue.record("nothing was thrown", sourceLocation: sourceLocation)
    } catch let error as StoreError {
        #expect(error.code == code, "\(error)", sourceLocation: sourceLocation)
        #expect(!error.message.isEmpty, sourceLocation: sourceLocation)
        return error
    } catch {
        Issue.record(error, sourceLocation: sourceLocation)
    }
    return nil
}
