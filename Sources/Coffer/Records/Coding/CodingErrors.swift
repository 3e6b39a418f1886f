// Access to what a `StoreError` reports from the errors of Swift's coding.

extension StoreError {
    /// The `StoreError` itself, or the one beneath a `DecodingError`; `nil` if there is none.
    init?(beneath error: any Error) {
        if let known = error as? StoreError {
            self = known
        } else if let known = (error as? DecodingError)?.context?.underlyingError as? StoreError {
            self = known
        } else {
            return nil
        }
    }
}

extension DecodingError {
    var context: Context? {
        switch self {
        case .typeMismatch(_, let context), .valueNotFound(_, let context),
            .keyNotFound(_, let context), .dataCorrupted(let context):
            context
        @unknown default: nil
        }
    }

    /// The type to decode, if the error names it.
    var expectedType: Any.Type? {
        switch self {
        case .typeMismatch(let type, _), .valueNotFound(let type, _): type
        default: nil
        }
    }
}
