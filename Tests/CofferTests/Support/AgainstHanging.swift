import Testing

extension Trait where Self == TimeLimitTrait {
    /// Ends a test that hangs. All tests begin at once and wait for the few threads there are, so
    /// that a limit says nothing of how long one of them takes.
    static var againstHanging: Self { .timeLimit(.minutes(isLongRun ? 120 : 20)) }
}
