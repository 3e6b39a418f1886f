import Workloads

/// Swift by hand on the C API, as one would write it without a library.
@main struct Main {
    static func main() throws {
        let run = Run()
        switch run.workload {
        case "W1": try Records(run).insert()
        case "W2", "W2d": try Records(run).fetch()
        case "W3": try Records(run).find()
        case "W4": try Records(run).update()
        case "W5-put": try Entries(run).put()
        case "W5-get": try Entries(run).get()
        case "W6-single": try Records(run).insertDurably()
        default: run.skip("not written by hand")
        }
    }
}
