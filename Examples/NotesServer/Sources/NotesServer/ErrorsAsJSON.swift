import Coffer
import Hummingbird

/// Answers every error as JSON: `{"error":{"message":"…"}}`.
///
/// Errors of the store become the status that a client can act upon. Their text stays in the log,
/// because it may show SQL.
struct ErrorsAsJSON<Context: RequestContext>: RouterMiddleware {
    func handle(
        _ request: Request, context: Context,
        next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let error as StoreError {
            context.logger.log(
                level: Self.status(of: error).code < 500 ? .debug : .error,
                "the store refused", metadata: ["error": "\(error)"])
            throw HTTPError(Self.status(of: error), message: "\(error.code)")
        } catch let error as HTTPError where error.body == nil {
            throw HTTPError(
                error.status, headers: error.headers, message: error.status.reasonPhrase)
        }
    }

    private static func status(of error: StoreError) -> HTTPResponse.Status {
        switch error.code {
        case .notFound: .notFound
        case .constraint, .conflict: .conflict
        case .mismatch, .tooBig: .badRequest
        case .busy, .closed, .suspended: .serviceUnavailable
        case .full: .init(code: 507, reasonPhrase: "Insufficient Storage")
        default: .internalServerError
        }
    }
}
