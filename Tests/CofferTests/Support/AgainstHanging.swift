import Testing

extension Trait where Self == TimeLimitTrait {
    /// Ends a test that hangs. All tests begin at once and wait for the few threads there are, so a
    /// limit says nothing about the duration of one of them.
    static var againstHanging: Self { .timeLimit(.minutes(isLongRun ? 120 : 20)) }
}
