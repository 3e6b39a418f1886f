import Testing

extension Trait where Self == TimeLimitTrait {
    /// Ends a test that hangs. Several tests share the cores, so a limit says nothing about the
    /// duration of one of them.
    static var againstHanging: Self { .timeLimit(.minutes(isLongRun ? 120 : 20)) }
}
