import Dispatch
import Synchronization
import Testing

@testable import CofferTool

@Suite(.againstHanging, .onOwnThreads) struct EventLinesTests {
    @Test func `a reader that stalls holds up nobody, and misses only what the next line says`() {
        let lines = EventLines()
        let written = Mutex<[String]>([])
        let (isWriting, mayGoOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        lines.add {
            isWriting.signal()
            mayGoOn.wait()
            written.withLock { $0.append("ready") }
        }
        isWriting.wait()
        for name in ["sent 1", "sent 2", "failed", "sent 3", "sent 4", "stopped"] {
            lines.add(name.hasPrefix("sent") ? "sent" : nil) {
                written.withLock { $0.append(name) }
            }
        }
        #expect(written.withLock(\.self) == [])
        mayGoOn.signal()
        lines.finish()
        #expect(written.withLock(\.self) == ["ready", "sent 2", "failed", "sent 4", "stopped"])
    }
}
