#ifndef COFFER_COMMAND_H
#define COFFER_COMMAND_H

/// Starts a command of the shell in the process group of the caller, so that Ctrl-C reaches both
/// and the command may ask the terminal. No signal is blocked in it, whatever the calling thread
/// blocks.
///
/// - Parameter input: The descriptor that becomes its standard input; -1 for the caller's own.
/// - Parameter environment: Its variables, with NULL after them; NULL for the caller's own. A
///   command with variables of its own inherits no descriptor but the standard ones.
/// - Parameter output: Set to a descriptor that reads its standard output, which the caller closes.
/// - Returns: The number of the process, or an error number, negated.
int coffer_start_command(const char *command, int input, char *const *environment, int *output);

/// Waits for the end of a process.
///
/// - Parameter milliseconds: How long to wait before it is killed; -1 to wait for its own end.
/// - Returns: Its exit code; 256 and the number of the signal that ended it; or an error number,
///   negated.
int coffer_wait_for_command(int process, int milliseconds);

#endif
