#ifndef COFFER_COMMAND_H
#define COFFER_COMMAND_H

/// Starts a command of the shell. No signal is blocked in it, whatever the calling thread blocks.
///
/// - Parameter input: The descriptor that becomes its standard input; -1 for the caller's own.
/// - Parameter variables: Variables of its environment, with NULL after them.
/// - Parameter is_apart: Whether it has no other variables, inherits no descriptor but the standard
///   ones, and has a session of its own, without a terminal. Otherwise it is in the process group
///   of the caller, so that Ctrl-C reaches both and the command may ask the terminal. It then also
///   has the descriptors of the caller, and its variables but `COFFER_PATH`, `COFFER_STORE_ID` and
///   `COFFER_SLOT_ID`, which are of another store.
/// - Parameter output: Set to a descriptor that reads its standard output, which the caller closes.
/// - Returns: The number of the process, or an error number, negated.
int coffer_start_command(const char *command, int input, char *const *variables, int is_apart,
                         int *output);

/// Starts a program with the environment of the caller, in a session of its own, without a terminal.
/// It inherits no descriptor but the three that are given, which the caller closes.
///
/// - Parameter arguments: The path of the program first, and NULL after the last.
/// - Returns: The number of the process, or an error number, negated.
int coffer_start_program(char *const *arguments, int input, int output, int error_output);

/// Sends a signal to a command. One that is apart gets it with all processes that it has started.
void coffer_signal_command(int process, int is_apart, int number);

/// Waits for the end of a command.
///
/// - Parameter milliseconds: How long to wait before it is killed; -1 to wait for its own end.
/// - Returns: Its exit code; 256 and the number of the signal that ended it; or an error number,
///   negated.
int coffer_wait_for_command(int process, int is_apart, int milliseconds);

#endif
