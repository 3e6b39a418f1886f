// What the errors of Swift's coding know that one of Coffer's is to tell.

extension StoreError {
    /// What Coffer has said, by itself or beneath an error of Swift's coding.
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

    /// What was to be decoded, where that is known.
    var expectedType: Any.Type? {
        switch self {
        case .typeMismatch(let type, _), .valueNotFound(let type, _): type
        default: nil
        }
    }
}
