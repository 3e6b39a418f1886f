// error: passing closure as a 'sending' parameter risks causing data races
import Coffer

func share(_ connection: Connection) {
    Task { try connection.execute("SELECT 1") }
    try? connection.execute("SELECT 2")
}
